// SPDX-License-Identifier: BSD-3-Clause
// Bytes by key: what a delegate's constants and external tensors refer to. One map is merged from
// the program's own named data and any number of .ptd files.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "pte/flat_tensor.h"
#include "pte/program.h"

namespace ptero::pte {

class DataMap {
 public:
  struct Entry {
    ByteRange data;
    std::optional<TensorLayout> layout;  // only from .ptd files
  };

  // Adds every entry of the program or file, or none: code invalid_program when a key is already
  // there, even with equal bytes, because the two files then disagree about who owns it.
  Status add(const Program& program);
  Status add(const FlatTensor& file);

  // Null if there is no such key. Valid until the next add().
  const Entry* find(std::string_view key) const;

  size_t size() const { return entries_.size(); }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  Status add_all(std::vector<std::pair<std::string, Entry>> added);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace ptero::pte
