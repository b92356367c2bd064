// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/check_chain.wgsl.h"
#include "gpu/selfcheck/check_half.wgsl.h"
#include "gpu/selfcheck/check_matrix.wgsl.h"
#include "gpu/selfcheck/check_packed_dot.wgsl.h"
#include "gpu/selfcheck/check_rms_norm.wgsl.h"
#include "gpu/selfcheck/check_subgroups.wgsl.h"
#include "gpu/selfcheck/selfcheck.h"

namespace ptero::gpu {
namespace {

using namespace wgsl;  // the kernels of this folder
using Recorded = CheckCase::Recorded;
using Verdict = CheckCase::Verdict;

template <typename T>
std::vector<T> from_bytes(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Adds a buffer, with contents if there are any. The vector holds as many as are reserved.
Result<const Buffer*> add_buffer(Device& device, Recorded& recorded, std::string label,
                                 uint64_t bytes, std::span<const std::byte> contents = {}) {
  PTERO_ASSIGN_OR_RETURN(Buffer buffer,
                         device.create_buffer(std::move(label), bytes, MemoryKind::other));
  if (!contents.empty()) {
    PTERO_RETURN_IF_ERROR(device.write(buffer, 0, contents));
  }
  recorded.buffers.push_back(std::move(buffer));
  return &recorded.buffers.back();
}

Verdict compare(std::span<const float> got, std::span<const double> want, double tolerance) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(double{got[i]} - want[i]);
    if (!(error <= tolerance * std::max(1.0, std::abs(want[i])))) {
      return {false, fmt::format("element {} is {} and not {}", i, got[i], want[i])};
    }
    largest = std::max(largest, error);
  }
  return {true, fmt::format("largest error {:.1e}", largest)};
}

// A chain of dependent dispatches through two buffers, every link with its own constant.
constexpr uint32_t kChainWidth = 256;
constexpr uint32_t kChainLinks = 1000;
float chain_constant(uint32_t link) {
  return static_cast<float>(link % 7);
}
float chain_input(uint32_t i) {
  return static_cast<float>(i) / 16;
}

CheckCase order_case(std::string_view name, bool reversed) {
  CheckCase check;
  check.name = name;
  check.keys = {{&kCheckChain, {}, {}, {}}};
  check.record = [reversed](Device& device,
                            const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(2);
    std::vector<float> input(kChainWidth);
    for (uint32_t i = 0; i < kChainWidth; ++i) {
      input[i] = chain_input(i);
    }
    const auto bytes = std::as_bytes(std::span(input));
    PTERO_ASSIGN_OR_RETURN(const Buffer* a,
                           add_buffer(device, recorded, "chain a", bytes.size(), bytes));
    PTERO_ASSIGN_OR_RETURN(const Buffer* b, add_buffer(device, recorded, "chain b", bytes.size()));
    const Binding forth[] = {{a}, {b}};
    const Binding back[] = {{b}, {a}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup even, device.bind(kernels[0], forth));
    PTERO_ASSIGN_OR_RETURN(const BindGroup odd, device.bind(kernels[0], back));
    for (uint32_t link = 0; link < kChainLinks; ++link) {
      PTERO_RETURN_IF_ERROR(recorded.step.dispatch(
          kernels[0], link % 2 == 0 ? even : odd,
          CheckChainParams{.n = kChainWidth, .add = chain_constant(link)}, {kChainWidth / 64}));
    }
    if (reversed) {
      recorded.step.reverse_for_test();
    }
    recorded.reads = {{a, 0, bytes.size()}};
    return recorded;
  };
  check.judge = [reversed](const ReadData& data) -> Verdict {
    std::vector<double> want(kChainWidth);
    for (uint32_t i = 0; i < kChainWidth; ++i) {
      want[i] = chain_input(i);
      for (uint32_t link = 0; link < kChainLinks; ++link) {
        want[i] = 0.5 * want[i] + chain_constant(link);
      }
    }
    Verdict verdict = compare(from_bytes<float>(data[0]), want, 1e-6);
    if (!reversed) {
      return verdict;
    }
    // The control: had the order no influence, the check above would prove nothing.
    return verdict.passed ? Verdict{false, "the reversed chain gives the same answer"}
                          : Verdict{true, "the reversed chain differs, as it must"};
  };
  return check;
}

CheckCase norm_chain_case() {
  constexpr uint32_t kRows = 5;
  constexpr uint32_t kWidth = 193;
  static const auto input = [](size_t i) { return std::sin(0.37 * static_cast<double>(i)); };
  CheckCase check;
  check.name = "rms_norm, then add";
  check.keys = {{&kCheckRmsNorm, {}, {}, {}}, {&kCheckAdd, {}, {}, {}}};
  check.record = [](Device& device, const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(3);
    std::vector<float> values(kRows * kWidth);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(input(i));
    }
    const auto bytes = std::as_bytes(std::span(values));
    PTERO_ASSIGN_OR_RETURN(const Buffer* x, add_buffer(device, recorded, "x", bytes.size(), bytes));
    PTERO_ASSIGN_OR_RETURN(const Buffer* norm, add_buffer(device, recorded, "norm", bytes.size()));
    PTERO_ASSIGN_OR_RETURN(const Buffer* y, add_buffer(device, recorded, "y", bytes.size()));
    const Binding norm_bindings[] = {{x}, {norm}};
    const Binding add_bindings[] = {{norm}, {x}, {y}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup norm_group, device.bind(kernels[0], norm_bindings));
    PTERO_ASSIGN_OR_RETURN(const BindGroup add_group, device.bind(kernels[1], add_bindings));
    PTERO_RETURN_IF_ERROR(recorded.step.dispatch(
        kernels[0], norm_group, CheckRmsNormParams{.width = kWidth, .eps = 1e-5f}, {kRows}));
    PTERO_RETURN_IF_ERROR(recorded.step.dispatch(
        kernels[1], add_group, CheckAddParams{.n = kRows * kWidth}, {(kRows * kWidth + 63) / 64}));
    recorded.reads = {{y, 0, bytes.size()}};
    return recorded;
  };
  check.judge = [](const ReadData& data) {
    std::vector<double> want(kRows * kWidth);
    for (size_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (size_t i = 0; i < kWidth; ++i) {
        const double x = static_cast<float>(input(row * kWidth + i));
        sum += x * x;
      }
      for (size_t i = 0; i < kWidth; ++i) {
        const double x = static_cast<float>(input(row * kWidth + i));
        want[row * kWidth + i] = x / std::sqrt(sum / kWidth + 1e-5) + x;
      }
    }
    return compare(from_bytes<float>(data[0]), want, 1e-5);
  };
  return check;
}

// Half-precision bits of small integers, which are exact.
uint16_t half_bits(uint32_t value) {
  if (value == 0) {
    return 0;
  }
  uint32_t exponent = 0;
  while (value >> (exponent + 1) != 0) {
    ++exponent;
  }
  return static_cast<uint16_t>((exponent + 15) << 10 | ((value << 10 >> exponent) & 0x3ff));
}

CheckCase half_case() {
  constexpr uint32_t kCount = 64;
  // 11 bits hold squares up to 45 * 45 exactly.
  static const auto half_input = [](uint32_t i) { return i % 46; };
  CheckCase check;
  check.name = "half precision";
  check.keys = {{&kCheckHalf, {}, {}, {Feature::shader_f16}}};
  check.record = [](Device& device, const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(2);
    std::vector<uint16_t> values(kCount);
    for (uint32_t i = 0; i < kCount; ++i) {
      values[i] = half_bits(half_input(i));
    }
    PTERO_ASSIGN_OR_RETURN(const Buffer* x, add_buffer(device, recorded, "x", kCount * 2,
                                                       std::as_bytes(std::span(values))));
    PTERO_ASSIGN_OR_RETURN(const Buffer* y, add_buffer(device, recorded, "y", kCount * 4));
    const Binding bindings[] = {{x}, {y}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(kernels[0], bindings));
    PTERO_RETURN_IF_ERROR(
        recorded.step.dispatch(kernels[0], group, CheckHalfParams{.n = kCount}, {1}));
    recorded.reads = {{y, 0, kCount * 4}};
    return recorded;
  };
  check.judge = [](const ReadData& data) {
    std::vector<double> want(kCount);
    for (uint32_t i = 0; i < kCount; ++i) {
      want[i] = half_input(i) * half_input(i);
    }
    return compare(from_bytes<float>(data[0]), want, 0);
  };
  return check;
}

CheckCase subgroup_case() {
  constexpr uint32_t kGroups = 17;
  CheckCase check;
  check.name = "subgroup reductions";
  check.keys = {{&kCheckSubgroups, {}, {}, {Feature::subgroups}}};
  check.record = [](Device& device, const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(2);
    std::vector<uint32_t> values(kGroups * 64);
    for (uint32_t i = 0; i < values.size(); ++i) {
      values[i] = i * i;
    }
    const auto bytes = std::as_bytes(std::span(values));
    PTERO_ASSIGN_OR_RETURN(const Buffer* x, add_buffer(device, recorded, "x", bytes.size(), bytes));
    PTERO_ASSIGN_OR_RETURN(const Buffer* y, add_buffer(device, recorded, "y", kGroups * 4));
    const Binding bindings[] = {{x}, {y}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(kernels[0], bindings));
    PTERO_RETURN_IF_ERROR(
        recorded.step.dispatch(kernels[0], group, std::span<const std::byte>(), {kGroups}));
    recorded.reads = {{y, 0, kGroups * 4}};
    return recorded;
  };
  check.judge = [](const ReadData& data) -> Verdict {
    const std::vector<uint32_t> got = from_bytes<uint32_t>(data[0]);
    for (uint32_t group = 0; group < kGroups; ++group) {
      uint32_t want = 0;
      for (uint32_t i = group * 64; i < group * 64 + 64; ++i) {
        want += i * i;
      }
      if (got[group] != want) {
        return {false, fmt::format("sum {} is {} and not {}", group, got[group], want)};
      }
    }
    return {true, "exact"};
  };
  return check;
}

CheckCase packed_dot_case() {
  constexpr uint32_t kCount = 256;
  // Bytes that meet every sign, -128 included.
  static const auto word = [](uint32_t i) { return (i * 0x9e3779b1u) ^ 0x80ff017fu; };
  CheckCase check;
  check.name = "packed dot products";
  check.keys = {{&kCheckPackedDot, {}, {}, {Feature::packed_dot}}};
  check.record = [](Device& device, const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(3);
    std::vector<uint32_t> a(kCount);
    std::vector<uint32_t> b(kCount);
    for (uint32_t i = 0; i < kCount; ++i) {
      a[i] = word(i);
      b[i] = word(i + kCount);
    }
    PTERO_ASSIGN_OR_RETURN(const Buffer* a_buffer, add_buffer(device, recorded, "a", kCount * 4,
                                                              std::as_bytes(std::span(a))));
    PTERO_ASSIGN_OR_RETURN(const Buffer* b_buffer, add_buffer(device, recorded, "b", kCount * 4,
                                                              std::as_bytes(std::span(b))));
    PTERO_ASSIGN_OR_RETURN(const Buffer* y, add_buffer(device, recorded, "y", kCount * 4));
    const Binding bindings[] = {{a_buffer}, {b_buffer}, {y}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(kernels[0], bindings));
    PTERO_RETURN_IF_ERROR(recorded.step.dispatch(kernels[0], group,
                                                 CheckPackedDotParams{.n = kCount}, {kCount / 64}));
    recorded.reads = {{y, 0, kCount * 4}};
    return recorded;
  };
  check.judge = [](const ReadData& data) -> Verdict {
    const std::vector<int32_t> got = from_bytes<int32_t>(data[0]);
    for (uint32_t i = 0; i < kCount; ++i) {
      int32_t want = 0;
      for (int byte = 0; byte < 4; ++byte) {
        want += static_cast<int8_t>(word(i) >> (8 * byte)) *
                static_cast<int8_t>(word(i + kCount) >> (8 * byte));
      }
      if (got[i] != want) {
        return {false, fmt::format("product {} is {} and not {}", i, got[i], want)};
      }
    }
    return {true, "exact"};
  };
  return check;
}

CheckCase matrix_case(MatrixShape shape, uint32_t subgroup_size) {
  static const auto x_value = [](uint32_t i) { return i * 7 % 13; };
  static const auto w_value = [](uint32_t i) { return i * 5 % 11; };
  CheckCase check;
  check.name = "matrix units";
  check.keys = {{&kCheckMatrix,
                 fmt::format("const kM = {}u;\nconst kN = {}u;\nconst kK = {}u;\n", shape.m,
                             shape.n, shape.k),
                 {{"subgroup_size", double(subgroup_size)}},
                 {Feature::shader_f16, Feature::subgroups, Feature::subgroup_matrix}}};
  check.record = [shape](Device& device, const std::vector<Kernel>& kernels) -> Result<Recorded> {
    Recorded recorded;
    recorded.buffers.reserve(3);
    std::vector<uint16_t> x(shape.m * shape.k);
    std::vector<uint16_t> w(shape.k * shape.n);
    for (uint32_t i = 0; i < x.size(); ++i) {
      x[i] = half_bits(x_value(i));
    }
    for (uint32_t i = 0; i < w.size(); ++i) {
      w[i] = half_bits(w_value(i));
    }
    PTERO_ASSIGN_OR_RETURN(const Buffer* x_buffer, add_buffer(device, recorded, "x", x.size() * 2,
                                                              std::as_bytes(std::span(x))));
    PTERO_ASSIGN_OR_RETURN(const Buffer* w_buffer, add_buffer(device, recorded, "w", w.size() * 2,
                                                              std::as_bytes(std::span(w))));
    const uint64_t y_bytes = uint64_t{shape.m} * shape.n * 4;
    PTERO_ASSIGN_OR_RETURN(const Buffer* y, add_buffer(device, recorded, "y", y_bytes));
    const Binding bindings[] = {{x_buffer}, {w_buffer}, {y}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(kernels[0], bindings));
    PTERO_RETURN_IF_ERROR(
        recorded.step.dispatch(kernels[0], group, std::span<const std::byte>(), {1}));
    recorded.reads = {{y, 0, y_bytes}};
    return recorded;
  };
  check.judge = [shape](const ReadData& data) {
    std::vector<double> want(shape.m * shape.n);
    for (uint32_t m = 0; m < shape.m; ++m) {
      for (uint32_t n = 0; n < shape.n; ++n) {
        for (uint32_t k = 0; k < shape.k; ++k) {
          want[m * shape.n + n] += x_value(m * shape.k + k) * w_value(k * shape.n + n);
        }
      }
    }
    return compare(from_bytes<float>(data[0]), want, 0);  // small integers: exact
  };
  return check;
}

CheckCase unavailable(std::string_view name, std::string reason) {
  CheckCase check;
  check.name = name;
  check.missing = std::move(reason);
  return check;
}

}  // namespace

std::vector<CheckCase> self_check_cases(const Device& device) {
  std::vector<CheckCase> cases;
  cases.push_back(order_case("order of 1,000 dispatches", false));
  cases.push_back(order_case("order matters (control)", true));
  cases.push_back(norm_chain_case());
  const auto add = [&](std::string_view name, FeatureSet needs, auto make) {
    for (const Feature feature : needs) {
      if (!device.features().contains(feature)) {
        cases.push_back(
            unavailable(name, fmt::format("{} is not available", feature_name(feature))));
        return;
      }
    }
    cases.push_back(make());
  };
  add("half precision", {Feature::shader_f16}, half_case);
  add("subgroup reductions", {Feature::subgroups}, subgroup_case);
  add("packed dot products", {Feature::packed_dot}, packed_dot_case);
  add("matrix units", {Feature::shader_f16, Feature::subgroups, Feature::subgroup_matrix}, [&] {
    for (const MatrixShape& shape : device.adapter().matrix_shapes) {
      if (shape.input == MatrixType::f16 && shape.result == MatrixType::f32) {
        return matrix_case(shape, device.adapter().subgroup_max_size);
      }
    }
    return unavailable("matrix units", "the adapter's matrices do not multiply f16 into f32");
  });
  return cases;
}

}  // namespace ptero::gpu
