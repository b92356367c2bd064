// SPDX-License-Identifier: BSD-3-Clause
#include "pte/data_map.h"

#include <utility>

namespace ptero::pte {
namespace {

std::string origin_of(const ByteRange& range) {
  return range.source() == nullptr ? "memory" : range.source()->name();
}

}  // namespace

Status DataMap::add(const Program& program) {
  std::vector<std::pair<std::string, Entry>> added;
  for (const NamedData& named : program.named_data) {
    PTERO_REJECT_IF(named.segment >= program.segments.size(), invalid_program,
                    "The segment ({}) of the key {:?} is not among the program's {}.",
                    named.segment, named.key, program.segments.size());
    added.push_back({named.key, {program.segments[named.segment], std::nullopt}});
  }
  return add_all(std::move(added));
}

Status DataMap::add(const FlatTensor& file) {
  std::vector<std::pair<std::string, Entry>> added;
  for (const FlatTensorEntry& entry : file.entries) {
    PTERO_REJECT_IF(entry.segment >= file.segments.size(), invalid_program,
                    "The segment ({}) of the key {:?} is not among the file's {}.", entry.segment,
                    entry.key, file.segments.size());
    added.push_back({entry.key, {file.segments[entry.segment], entry.layout}});
  }
  return add_all(std::move(added));
}

Status DataMap::add_all(std::vector<std::pair<std::string, Entry>> added) {
  std::map<std::string, Entry, std::less<>> merged;
  for (auto& [key, entry] : added) {
    const Entry* known = find(key);
    PTERO_REJECT_IF(known != nullptr, invalid_program, "The key {:?} is both in {} and in {}.", key,
                    origin_of(known->data), origin_of(entry.data));
    const std::string origin = origin_of(entry.data);
    const bool inserted = merged.emplace(key, std::move(entry)).second;
    PTERO_REJECT_IF(!inserted, invalid_program, "The key {:?} is in {} twice.", key, origin);
  }
  entries_.merge(merged);
  return ok_status();
}

const DataMap::Entry* DataMap::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace ptero::pte
