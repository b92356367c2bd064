// SPDX-License-Identifier: BSD-3-Clause
// Crafted corruptions: each file tells one lie, and each lie has a sentence of its own as answer.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "gguf/limits.h"
#include "gguf/reader.h"
#include "gguf/test_file.h"

namespace ptero::gguf {
namespace {

using test::append;
using test::append_string;
using test::Bytes;
using test::TestFile;

constexpr auto kF32 = static_cast<uint32_t>(TensorType::f32);
constexpr auto kQ40 = static_cast<uint32_t>(TensorType::q4_0);

// What a lie is told about: 2 keys (one an array) and 2 tensors of 32 bytes each.
TestFile honest_file() {
  TestFile file;
  file.text("general.architecture", "llama");
  file.strings("tokens", {"a", "b"});
  const std::vector<float> values(8, 0.5f);
  file.tensor("first", {4, 2}, values);
  file.tensor("second", {8}, values);
  return file;
}

struct Corruption {
  const char* name;
  void (*lie)(TestFile&);
  const char* sentence;
  ErrorCode code = ErrorCode::invalid_program;
};

// One more key, in the raw.
Bytes& raw_key(TestFile& file) {
  return file.keys.emplace_back();
}
// Another second tensor.
void second(TestFile& file, const std::vector<uint64_t>& dims, uint32_t type = kF32,
            uint64_t offset = 32) {
  file.tensors.pop_back();
  file.info("second", dims, type, offset);
}

constexpr Corruption kCorruptions[] = {
    // The head.
    {"wrong magic", [](TestFile& f) { f.magic = "GGML"; },
     "The file starts with \"GGML\" where a GGUF file has \"GGUF\"."},
    {"magic backwards", [](TestFile& f) { f.magic = "FUGG"; },
     "The file starts with \"FUGG\" where a GGUF file has \"GGUF\"."},
    {"version 0", [](TestFile& f) { f.version = 0; },
     "The GGUF version (0) is none that is read (2 and 3).", ErrorCode::unsupported},
    {"version 1", [](TestFile& f) { f.version = 1; },
     "The GGUF version (1) is none that is read (2 and 3).", ErrorCode::unsupported},
    {"version 4", [](TestFile& f) { f.version = 4; },
     "The GGUF version (4) is none that is read (2 and 3).", ErrorCode::unsupported},
    {"big-endian", [](TestFile& f) { f.version = 0x03000000; },
     "The GGUF file is big-endian (version 3 in that order), which is not read.",
     ErrorCode::unsupported},
    {"2^63 tensors", [](TestFile& f) { f.tensor_count = uint64_t{1} << 63; },
     "The number of tensors (9223372036854775808) exceeds the limit (65536)."},
    {"2^64 - 1 keys", [](TestFile& f) { f.key_count = UINT64_MAX; },
     "The number of keys (18446744073709551615) exceeds the limit (65536)."},
    {"more keys than bytes", [](TestFile& f) { f.key_count = 60000; },
     "The numbers of keys (60000) and tensors (2) need 840066 bytes, and the file has 264."},
    {"more tensors than bytes", [](TestFile& f) { f.tensor_count = 65536; },
     "The numbers of keys (2) and tensors (65536) need 2162716 bytes, and the file has 264."},
    {"one key more", [](TestFile& f) { f.key_count = 3; },
     // The tensor's name reads as a key.
     "The name of tensor 0 (length 562949953421312 at byte 136) exceeds the file's 288 bytes."},
    {"one tensor more", [](TestFile& f) { f.tensor_count = 3; }, "The name of tensor 2 is empty."},
    // Names of keys.
    {"empty key", [](TestFile& f) { f.u32("", 1); }, "The name of key 2 is empty."},
    {"key of 2^63 bytes", [](TestFile& f) { append(raw_key(f), uint64_t{1} << 63); },
     "The name of key 2 (length 9223372036854775808 at byte 117) exceeds the file's 288 bytes."},
    {"key of 2^64 - 1 bytes", [](TestFile& f) { append(raw_key(f), UINT64_MAX); },
     "The name of key 2 (length 18446744073709551615 at byte 117) exceeds the file's 288 bytes."},
    {"key that wraps", [](TestFile& f) { append(raw_key(f), UINT64_MAX - 117); },
     "The name of key 2 (length 18446744073709551498 at byte 117) exceeds the file's 288 bytes."},
    {"key beyond the end", [](TestFile& f) { append(raw_key(f), uint64_t{164}); },
     "The name of key 2 (length 164 at byte 117) exceeds the file's 288 bytes."},
    {"key of 64 KiB", [](TestFile& f) { f.u32(std::string(65536, 'k'), 1); },
     "The name of key 2 has 65536 bytes; the limit is 65535."},
    {"key that is not UTF-8", [](TestFile& f) { f.u32("k\xff", 1); },
     "The name of key 2 (at byte 117) is no UTF-8 text."},
    {"key that ends within a character", [](TestFile& f) { f.u32("k\xe2\x82", 1); },
     "The name of key 2 (at byte 117) is no UTF-8 text."},
    {"key twice", [](TestFile& f) { f.u32("tokens", 1); },
     "The key \"tokens\" stands in the file twice."},
    // Values.
    {"value of type 13", [](TestFile& f) { f.key("k", static_cast<ValueType>(13)); },
     "The type of k (13) is none that is known (0 to 12)."},
    {"value of type 2^32 - 1", [](TestFile& f) { f.key("k", static_cast<ValueType>(UINT32_MAX)); },
     "The type of k (4294967295) is none that is known (0 to 12)."},
    {"boolean 2", [](TestFile& f) { f.number("k", ValueType::boolean, uint8_t{2}); },
     "The value of k (2) is no boolean (0 or 1)."},
    {"string of 2^63 bytes",
     [](TestFile& f) { append(f.key("k", ValueType::string), uint64_t{1} << 63); },
     "The value of k (length 9223372036854775808 at byte 130) exceeds the file's 288 bytes."},
    {"string that wraps",
     [](TestFile& f) { append(f.key("k", ValueType::string), UINT64_MAX - 129); },
     "The value of k (length 18446744073709551486 at byte 130) exceeds the file's 288 bytes."},
    {"string of 17 MiB", [](TestFile& f) { f.text("k", std::string(size_t{17} << 20, 'x')); },
     "The value of k has 17825792 bytes; the limit is 16777216."},
    {"string that is not UTF-8", [](TestFile& f) { f.text("k", "\xc3\x28"); },
     "The value of k (at byte 130) is no UTF-8 text."},
    {"string of a longer form", [](TestFile& f) { f.text("k", "\xc0\x80"); },
     "The value of k (at byte 130) is no UTF-8 text."},
    {"string with half a surrogate", [](TestFile& f) { f.text("k", "\xed\xa0\x80"); },
     "The value of k (at byte 130) is no UTF-8 text."},
    {"string beyond Unicode", [](TestFile& f) { f.text("k", "\xf4\x90\x80\x80"); },
     "The value of k (at byte 130) is no UTF-8 text."},
    // Arrays.
    {"elements of type 77", [](TestFile& f) { f.array("k", static_cast<ValueType>(77), 1); },
     "The element type of k (77) is none that is known (0 to 12)."},
    {"array of arrays", [](TestFile& f) { f.array("k", ValueType::array, 1); },
     "The value of k is an array of arrays, which is not read.", ErrorCode::unsupported},
    {"2^63 elements", [](TestFile& f) { f.array("k", ValueType::uint8, uint64_t{1} << 63); },
     "The number of elements (9223372036854775808) of k exceeds what the file's last 178 bytes "
     "hold."},
    {"elements whose bytes wrap",
     [](TestFile& f) { f.array("k", ValueType::uint64, (uint64_t{1} << 61) + 1); },
     "The number of elements (2305843009213693953) of k exceeds what the file's last 178 bytes "
     "hold."},
    {"more strings than lengths fit", [](TestFile& f) { f.array("k", ValueType::string, 23); },
     "The number of elements (23) of k exceeds what the file's last 178 bytes hold."},
    {"one string too many", [](TestFile& f) { f.array("k", ValueType::string, 22); },
     // The length of the tensor's name is that of a string.
     "The string 1 of k (length 17179869186 at byte 155) exceeds the file's 320 bytes."},
    {"more numbers than there are", [](TestFile& f) { f.array("k", ValueType::int32, 45); },
     "The number of elements (45) of k exceeds what the file's last 178 bytes hold."},
    {"token that is not UTF-8", [](TestFile& f) { f.strings("k", {"a", "\x80", "c"}); },
     "The string 1 of k (at byte 151) is no UTF-8 text."},
    {"token of 2^63 bytes",
     [](TestFile& f) { append(f.array("k", ValueType::string, 1), uint64_t{1} << 63); },
     "The string 0 of k (length 9223372036854775808 at byte 142) exceeds the file's 320 bytes."},
    {"token of 2 MiB", [](TestFile& f) { f.strings("k", {std::string(size_t{2} << 20, 'x')}); },
     "The string 0 of k has 2097152 bytes; the limit is 1048576."},
    {"boolean 255 in an array",
     [](TestFile& f) { f.numbers<uint8_t>("k", ValueType::boolean, {0, 1, 255}); },
     "The element 2 of k (255) is no boolean (0 or 1)."},
    // The alignment.
    {"alignment 0", [](TestFile& f) { f.u32("general.alignment", 0); },
     "The value of general.alignment (0) is no power of two."},
    {"alignment 33", [](TestFile& f) { f.u32("general.alignment", 33); },
     "The value of general.alignment (33) is no power of two."},
    {"alignment 2^32 - 1", [](TestFile& f) { f.u32("general.alignment", UINT32_MAX); },
     "The value of general.alignment (4294967295) is no power of two."},
    {"alignment 1", [](TestFile& f) { f.u32("general.alignment", 1); },
     "The value of general.alignment (1) does not lie between 8 and 1048576."},
    {"alignment 2^31", [](TestFile& f) { f.u32("general.alignment", 1u << 31); },
     "The value of general.alignment (2147483648) does not lie between 8 and 1048576."},
    {"alignment of another type",
     [](TestFile& f) { f.number("general.alignment", ValueType::uint64, uint64_t{32}); },
     "The value of general.alignment has the type uint64 instead of uint32."},
    {"alignment as text", [](TestFile& f) { f.text("general.alignment", "32"); },
     "The value of general.alignment has the type string instead of uint32."},
    // Tensors.
    {"tensor without a name", [](TestFile& f) { f.info("", {8}, kF32, 64); },
     "The name of tensor 2 is empty."},
    {"tensor with a long name", [](TestFile& f) { f.info(std::string(256, 't'), {8}, kF32, 64); },
     "The name of tensor 2 has 256 bytes; the limit is 255."},
    {"tensor name of 2^63 bytes",
     [](TestFile& f) {
       Bytes& out = f.tensors.emplace_back();
       append(out, uint64_t{1} << 63);
       out.resize(64);
     },
     "The name of tensor 2 (length 9223372036854775808 at byte 200) exceeds the file's 352 bytes."},
    {"tensor name that is not UTF-8", [](TestFile& f) { f.info("\xfe", {8}, kF32, 64); },
     "The name of tensor 2 (at byte 200) is no UTF-8 text."},
    {"tensor twice", [](TestFile& f) { f.info("first", {8}, kF32, 64); },
     "The tensor \"first\" stands in the file twice."},
    {"rank 0", [](TestFile& f) { second(f, {}); },
     "The number of dimensions (0) of second does not lie between 1 and 4."},
    {"rank 5", [](TestFile& f) { second(f, {1, 1, 1, 1, 8}); },
     "The number of dimensions (5) of second does not lie between 1 and 4."},
    {"rank 2^32 - 1",
     [](TestFile& f) {
       Bytes& out = f.tensors.back();
       const size_t rank = 8 + 6;
       out.resize(rank);
       append(out, UINT32_MAX);
       out.resize(40);
     },
     "The number of dimensions (4294967295) of second does not lie between 1 and 4."},
    {"dimension 0", [](TestFile& f) { second(f, {4, 0}); }, "Dimension 1 of second is 0."},
    {"dimensions whose product wraps",
     [](TestFile& f) { second(f, {uint64_t{1} << 32, uint64_t{1} << 32}); },
     "The number of elements of second does not fit into 64 bits (dimension 1 is 4294967296)."},
    {"dimensions whose product wraps to 8",
     [](TestFile& f) { second(f, {8, (uint64_t{1} << 61) + 1}); },
     "The number of elements of second does not fit into 64 bits (dimension 1 is "
     "2305843009213693953)."},
    {"dimensions whose bytes wrap", [](TestFile& f) { second(f, {uint64_t{1} << 62, 2}); },
     "The size of second does not fit into 64 bits."},
    {"tensor type 4", [](TestFile& f) { second(f, {8}, 4); },
     "The type (4) of second is none that is known."},
    {"tensor type 2^32 - 1", [](TestFile& f) { second(f, {8}, UINT32_MAX); },
     "The type (4294967295) of second is none that is known."},
    {"half a block", [](TestFile& f) { second(f, {48}, kQ40); },
     "The rows of second (48 elements) are no whole blocks of Q4_0 (32 elements)."},
    {"blocks across rows", [](TestFile& f) { second(f, {16, 2}, kQ40); },
     "The rows of second (16 elements) are no whole blocks of Q4_0 (32 elements)."},
    {"offset that is not aligned", [](TestFile& f) { second(f, {8}, kF32, 36); },
     "The offset (36) of second is no multiple of the alignment (32)."},
    {"offset behind the end", [](TestFile& f) { second(f, {8}, kF32, 96); },
     "The data of second (32 bytes at offset 96) exceeds the 64 bytes of tensor data."},
    {"offset that wraps", [](TestFile& f) { second(f, {8}, kF32, UINT64_MAX - 31); },
     "The data of second (32 bytes at offset 18446744073709551584) exceeds the 64 bytes of tensor "
     "data."},
    {"tensor past the end", [](TestFile& f) { second(f, {9}); },
     "The data of second (36 bytes at offset 32) exceeds the 64 bytes of tensor data."},
    {"tensor of 2^62 bytes", [](TestFile& f) { second(f, {uint64_t{1} << 60}); },
     "The data of second (4611686018427387904 bytes at offset 32) exceeds the 64 bytes of tensor "
     "data."},
    {"tensors in one place", [](TestFile& f) { second(f, {8}, kF32, 0); },
     "The data of first and second overlap (bytes 224 to 256 and from 224 on)."},
    {"tensor reaches into the next",
     [](TestFile& f) {
       f.tensors.erase(f.tensors.begin());
       f.info("first", {9}, kF32, 0);
     },
     "The data of first and second overlap (bytes 192 to 228 and from 224 on)."},
    {"data cut off", [](TestFile& f) { f.data.pop_back(); },
     "The data of second (32 bytes at offset 32) exceeds the 63 bytes of tensor data."},
    {"data missing", [](TestFile& f) { f.data.clear(); },
     "The data of first (32 bytes at offset 0) exceeds the 0 bytes of tensor data."},
    {"padding missing",
     [](TestFile& f) {
       f.data.clear();
       f.padded = false;
     },
     "The data of the tensors would start at byte 224, behind the file's 200 bytes."},
};

TEST_CASE("the honest file is read") {
  const Result<File> file = read_gguf(honest_file().range());
  REQUIRE_MESSAGE(file.ok(), file.error().to_string());
  CHECK(file->tensors.size() == 2);
}

TEST_CASE("each lie has its sentence") {
  static_assert(std::size(kCorruptions) >= 70);
  std::set<std::string> names;
  for (const Corruption& corruption : kCorruptions) {
    CAPTURE(std::string(corruption.name));
    CHECK(names.insert(corruption.name).second);
    TestFile file = honest_file();
    corruption.lie(file);
    const Result<File> result = read_gguf(file.range());
    REQUIRE(!result.ok());
    CHECK(result.error().message() == std::string(corruption.sentence));
    CHECK(result.error().code() == corruption.code);
  }
}

// A source that cannot be looked at, so that reading goes through the window.
class Unmapped final : public ByteSource {
 public:
  explicit Unmapped(Bytes bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return ok_status();
  }

 private:
  Bytes bytes_;
  std::string name_ = "unmapped";
};

TEST_CASE("lies are answered alike where the source cannot be looked at") {
  for (const Corruption& corruption : kCorruptions) {
    CAPTURE(std::string(corruption.name));
    TestFile file = honest_file();
    corruption.lie(file);
    const Result<File> result =
        read_gguf(ByteRange::whole(std::make_shared<Unmapped>(file.bytes())));
    REQUIRE(!result.ok());
    CHECK(result.error().message() == std::string(corruption.sentence));
  }
}

TEST_CASE("a file cut anywhere is refused") {
  const Bytes whole = honest_file().bytes();
  std::set<std::string> sentences;
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const Result<File> result = read_gguf(ByteRange::whole(own_bytes(std::move(cut))));
    REQUIRE(!result.ok());
    CHECK(result.error().code() == ErrorCode::invalid_program);
    sentences.insert(result.error().message());
  }
  CHECK(sentences.contains(
      "The file (23 bytes) is shorter than the head of a GGUF file (24 bytes)."));
  CHECK(
      sentences.contains("The file ends at byte 196, within the offset of second (at byte 192)."));
}

}  // namespace
}  // namespace ptero::gguf
