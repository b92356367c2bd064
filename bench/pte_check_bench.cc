// SPDX-License-Identifier: BSD-3-Clause
// Load-time gate: what do the readers' checks cost beside reading the file?
//
// Makes a .pte of about 1 GB shaped like a 4-bit language model (32 layers, 7 packed linears each,
// weights in named segments), then measures, medians of several runs with the file in the page
// cache: reading all its bytes with read(), and mapping, verifying, checking and decoding it down
// to the graph. Exit status 1 when the second takes more than 5 % of the first. A cached file is
// the hard case: from a disk, reading only gets slower.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"
#include "schema/program_generated.h"
#include "schema/vkgraph_generated.h"

namespace ptero::pte {
namespace {

namespace fb = fbs::program;
namespace fg = fbs::vkgraph;

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr int kRuns = 9;
constexpr double kGate = 0.05;

constexpr uint32_t kLayers = 32;
constexpr uint32_t kLinearsPerLayer = 7;
constexpr uint32_t kInner = 4096;
constexpr uint32_t kOuter = 2048;
constexpr uint32_t kGroupSize = 32;
constexpr uint64_t kWeightBytes = uint64_t{kOuter} * kInner / 2;
constexpr uint64_t kScaleBytes = uint64_t{kInner} / kGroupSize * kOuter * sizeof(float);
constexpr uint64_t kAlignment = 128;
constexpr uint32_t kDelegateHeaderSize = 32;

uint64_t aligned_up(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

std::string key_of(size_t constant) {
  return fmt::format("{:064x}", constant);
}

template <typename T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A chain of linears and the small operators between them, about as many values and calls a layer
// as a Llama has.
class GraphMaker {
 public:
  std::string make() {
    const int32_t group = value(fg::GraphTypes::Int, fg::CreateInt(builder_, kGroupSize));
    const int32_t none = value(fg::GraphTypes::Null, fg::CreateNull(builder_));
    int32_t x = tensor({1, 127, kInner});
    const std::vector<uint32_t> inputs = {static_cast<uint32_t>(x)};
    for (uint32_t i = 0; i < kLayers * kLinearsPerLayer; ++i) {
      const int32_t weight = constant(fg::VkDataType::UINT8, {kOuter, kInner / 2}, kWeightBytes);
      const int32_t scales =
          constant(fg::VkDataType::FLOAT32, {kInner / kGroupSize, kOuter}, kScaleBytes);
      const int32_t half = tensor({1, 127, kOuter});
      call("et_vk.linear_q4gsw.default", {x, weight, scales, group, none, half});
      const int32_t sigmoid = tensor({1, 127, kOuter});
      call("aten.sigmoid.default", {half, sigmoid});
      const int32_t product = tensor({1, 127, kOuter});
      call("aten.mul.Tensor", {half, sigmoid, product});
      const std::vector<int32_t> pair = {half, product};
      const int32_t list = value(fg::GraphTypes::ValueList,
                                 fg::CreateValueList(builder_, builder_.CreateVector(pair)));
      const int32_t dim = value(fg::GraphTypes::Int, fg::CreateInt(builder_, -1));
      x = tensor({1, 127, kInner});
      call("aten.cat.default", {list, dim, x});
    }
    const std::vector<uint32_t> outputs = {static_cast<uint32_t>(x)};
    const auto graph =
        fg::CreateVkGraph(builder_, builder_.CreateString("0"), builder_.CreateVector(chain_),
                          builder_.CreateVector(values_), builder_.CreateVector(inputs),
                          builder_.CreateVector(outputs), builder_.CreateVector(constants_));
    fg::FinishVkGraphBuffer(builder_, graph);
    std::string blob(4, '\0');
    blob += "VH00";
    append<uint16_t>(blob, 30);
    append<uint32_t>(blob, kDelegateHeaderSize);
    append(blob, static_cast<uint32_t>(builder_.GetSize()));
    append(blob, static_cast<uint32_t>(kDelegateHeaderSize + builder_.GetSize()));
    append<uint64_t>(blob, 0);
    blob.resize(kDelegateHeaderSize);
    blob.append(reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize());
    return blob;
  }

  const std::vector<uint64_t>& constant_sizes() const { return sizes_; }
  size_t value_count() const { return values_.size(); }
  size_t call_count() const { return chain_.size(); }

 private:
  template <typename T>
  int32_t value(fg::GraphTypes type, Offset<T> content) {
    values_.push_back(fg::CreateVkValue(builder_, type, content.Union()));
    return static_cast<int32_t>(values_.size() - 1);
  }

  int32_t tensor(const std::vector<uint32_t>& dims) {
    return value(fg::GraphTypes::VkTensor,
                 fg::CreateVkTensor(builder_, fg::VkDataType::FLOAT32, builder_.CreateVector(dims),
                                    -1, static_cast<int32_t>(values_.size() % 8)));
  }

  int32_t constant(fg::VkDataType type, const std::vector<uint32_t>& dims, uint64_t bytes) {
    const size_t id = sizes_.size();
    sizes_.push_back(bytes);
    constants_.push_back(
        fg::CreateVkBytes(builder_, UINT64_MAX, bytes, builder_.CreateString(key_of(id))));
    return value(fg::GraphTypes::VkTensor,
                 fg::CreateVkTensor(builder_, type, builder_.CreateVector(dims),
                                    static_cast<int32_t>(id), -1));
  }

  void call(const char* name, const std::vector<int32_t>& args) {
    chain_.push_back(fg::CreateOperatorCall(builder_, static_cast<uint32_t>(chain_.size()),
                                            builder_.CreateString(name),
                                            builder_.CreateVector(args)));
  }

  FlatBufferBuilder builder_;
  std::vector<Offset<fg::VkValue>> values_;
  std::vector<Offset<fg::OperatorCall>> chain_;
  std::vector<Offset<fg::VkBytes>> constants_;
  std::vector<uint64_t> sizes_;
};

// The program's flatbuffer for segment 0 (the delegate) and one more for each constant.
std::string program_flatbuffer(const std::vector<uint64_t>& segment_sizes) {
  FlatBufferBuilder builder;
  const auto tensor = [&](const std::vector<int32_t>& sizes) {
    std::vector<uint8_t> order;
    for (size_t i = 0; i < sizes.size(); ++i) {
      order.push_back(static_cast<uint8_t>(i));
    }
    return fb::CreateEValue(
        builder, fb::KernelTypes::Tensor,
        fb::CreateTensor(builder, fbs::ScalarType::FLOAT, 0, builder.CreateVector(sizes),
                         builder.CreateVector(order))
            .Union());
  };
  const std::vector<Offset<fb::EValue>> values = {tensor({1, 127, kInner}),
                                                  tensor({1, 127, kInner})};
  const std::vector<int32_t> args = {0, 1};
  const std::vector<Offset<fb::Instruction>> instructions = {fb::CreateInstruction(
      builder, fb::InstructionArguments::DelegateCall,
      fb::CreateDelegateCall(builder, 0, builder.CreateVector(args)).Union())};
  const std::vector<Offset<fb::Chain>> chains = {
      fb::CreateChain(builder, 0, 0, builder.CreateVector(instructions))};
  const std::vector<Offset<fb::BackendDelegate>> delegates = {fb::CreateBackendDelegate(
      builder, builder.CreateString("VulkanBackend"),
      fb::CreateBackendDelegateDataReference(builder, fb::DataLocation::SEGMENT, 0))};
  const std::vector<int32_t> inputs = {0};
  const std::vector<int32_t> outputs = {1};
  const std::vector<int64_t> arenas = {0};
  const std::vector<Offset<fb::ExecutionPlan>> plans = {fb::CreateExecutionPlan(
      builder, builder.CreateString("forward"), 0, builder.CreateVector(values),
      builder.CreateVector(inputs), builder.CreateVector(outputs), builder.CreateVector(chains), 0,
      builder.CreateVector(delegates), builder.CreateVector(arenas))};
  std::vector<Offset<fb::DataSegment>> segments;
  std::vector<Offset<fb::NamedData>> named;
  uint64_t offset = 0;
  for (size_t i = 0; i < segment_sizes.size(); ++i) {
    segments.push_back(fb::CreateDataSegment(builder, offset, segment_sizes[i]));
    offset += aligned_up(segment_sizes[i]);
    if (i > 0) {
      named.push_back(fb::CreateNamedData(builder, builder.CreateString(key_of(i - 1)),
                                          static_cast<uint32_t>(i)));
    }
  }
  fb::FinishProgramBuffer(builder, fb::CreateProgram(builder, 0, builder.CreateVector(plans), 0, 0,
                                                     builder.CreateVector(segments), 0, 0,
                                                     builder.CreateVector(named)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

void write_padded(std::ofstream& file, const std::string& bytes) {
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const std::string padding(static_cast<size_t>(aligned_up(bytes.size()) - bytes.size()), '\0');
  file.write(padding.data(), static_cast<std::streamsize>(padding.size()));
}

void write_model(const std::filesystem::path& path) {
  GraphMaker graph;
  const std::string blob = graph.make();
  std::vector<uint64_t> sizes = {blob.size()};
  sizes.insert(sizes.end(), graph.constant_sizes().begin(), graph.constant_sizes().end());
  const std::string flatbuffer = program_flatbuffer(sizes);
  uint64_t data_size = 0;
  for (const uint64_t size : sizes) {
    data_size += aligned_up(size);
  }
  std::string head = flatbuffer.substr(0, 8);
  uint32_t root = 0;
  std::memcpy(&root, head.data(), sizeof(root));
  root += 32;
  std::memcpy(head.data(), &root, sizeof(root));
  head += "eh00";
  append<uint32_t>(head, 32);
  append<uint64_t>(head, flatbuffer.size() + 32);
  append<uint64_t>(head, aligned_up(flatbuffer.size() + 32));
  append<uint64_t>(head, data_size);
  head += flatbuffer.substr(8);

  std::mt19937_64 random(1);
  std::string weights(kWeightBytes, '\0');
  for (size_t i = 0; i < weights.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(weights.data() + i, &word, sizeof(word));
  }
  std::ofstream file(path, std::ios::binary);
  write_padded(file, head);
  write_padded(file, blob);
  for (const uint64_t size : graph.constant_sizes()) {
    write_padded(file, weights.substr(0, static_cast<size_t>(size)));
  }
  fmt::print("model: {} constants, {} values, {} calls\n", graph.constant_sizes().size(),
             graph.value_count(), graph.call_count());
}

double median_ms(const std::function<bool()>& work) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (!work()) {
      return -1;
    }
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

bool read_bytes(const std::filesystem::path& path) {
  std::FILE* file = std::fopen(path.string().c_str(), "rb");
  if (file == nullptr) {
    return false;
  }
  std::setvbuf(file, nullptr, _IONBF, 0);
  std::vector<char> block(1 << 20);
  while (std::fread(block.data(), 1, block.size(), file) != 0) {
  }
  std::fclose(file);
  return true;
}

Status check_file(const std::filesystem::path& path) {
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr file, map_file(path.string()));
  PTERO_ASSIGN_OR_RETURN(const Program program, read_program(ByteRange::whole(file)));
  DataMap data;
  PTERO_RETURN_IF_ERROR(data.add(program));
  PTERO_ASSIGN_OR_RETURN(
      const Delegate delegate,
      read_delegate(delegate_bytes(program, program.plans.front().delegates.front())));
  PTERO_RETURN_IF_ERROR(read_graph(delegate, data));
  return ok_status();
}

int run() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      fmt::format("ptero_pte_check_bench_{}.pte", std::random_device()());
  write_model(path);
  const Status status = check_file(path);
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.error().to_string());
    std::filesystem::remove(path);
    return 2;
  }
  const double bytes = static_cast<double>(std::filesystem::file_size(path));
  const double read_ms = median_ms([&] { return read_bytes(path); });
  const double check_ms = median_ms([&] { return check_file(path).ok(); });
  std::filesystem::remove(path);
  if (read_ms < 0 || check_ms < 0) {
    fmt::print(stderr, "The model in {} cannot be read.\n", path.string());
    return 2;
  }
  const double ratio = check_ms / read_ms;
  fmt::print("file: {:.2f} GB\n", bytes / 1e9);
  fmt::print("read, page cache warm: {:.1f} ms, median of {} ({:.2f} GB/s)\n", read_ms, kRuns,
             bytes / 1e6 / read_ms);
  fmt::print("map, check and decode: {:.3f} ms, median of {}\n", check_ms, kRuns);
  fmt::print("checking takes {:.2f} % of reading; the limit is {:.0f} %\n", 100 * ratio,
             100 * kGate);
  return ratio <= kGate ? 0 : 1;
}

}  // namespace
}  // namespace ptero::pte

int main() {
  return ptero::pte::run();
}
