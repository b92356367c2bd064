// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "convert/convert.h"
#include "convert/test_model.h"
#include "gguf/reader.h"

namespace ptero::convert {
namespace {

using test::TensorType;
using test::TestModel;

// Programs that are kept are named by the version, so other bytes need another one.
#if defined(__x86_64__)  // elsewhere sums may be rounded in another way
TEST_CASE("the converter's version stands for its bytes") {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash = (hash ^ std::to_integer<uint64_t>(byte)) * 1099511628211u;
    }
  };
  for (const char* architecture : {"llama", "qwen3"}) {
    for (const WeightFormat format : {WeightFormat::q4, WeightFormat::f16}) {
      for (const TensorType type : {TensorType::q4_0, TensorType::f32}) {
        TestModel model;
        model.architecture = architecture;
        model.type = type;
        model.head_norms = model.architecture == "qwen3";
        model.make();
        const auto file = gguf::read_gguf(model.file.range());
        REQUIRE(file.ok());
        const auto converted = convert_gguf(*file, {.weights = format});
        REQUIRE(converted.ok());
        const pte::Program& program = converted->program;
        add(std::as_bytes(std::span(program.plans[0].name)));
        for (size_t i = 1; i < program.segments.size(); ++i) {
          const auto named = std::ranges::find(program.named_data, i, &pte::NamedData::segment);
          const std::string key = named == program.named_data.end() ? "graph" : named->key;
          add(std::as_bytes(std::span(key)));
          if (!key.starts_with("rope.")) {  // by the machine's sines
            const auto bytes = program.segments[i].copy(1 << 24);
            REQUIRE(bytes.ok());
            add(*bytes);
          }
        }
        for (const pte::ExecutionPlan& plan : program.plans) {
          add(std::as_bytes(std::span(plan.name)));
        }
      }
    }
  }
  // If this fails and what is converted has become another, raise kConverterVersion.
  CHECK(kConverterVersion == 3);
  CHECK(hash == 18289307276981037003u);
}
#endif

}  // namespace
}  // namespace ptero::convert
