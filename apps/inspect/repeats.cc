// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/repeats.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace ptero::inspect {
namespace {

constexpr size_t kMinSize = 3;
constexpr size_t kMaxSize = 500;

class Finder {
 public:
  explicit Finder(const std::vector<Box>& boxes) : boxes_(boxes) {
    std::map<std::tuple<Box::Kind, std::string, std::string>, int> numbers;
    for (const Box& box : boxes) {
      const auto [entry, added] =
          numbers.try_emplace({box.kind, box.same, box.title}, static_cast<int>(numbers.size()));
      classes_.push_back(entry->second);
    }
  }

  void find(size_t begin, size_t end, std::vector<Repeat>& found) const {
    const Repeat best = best_in(begin, end);
    if (best.count == 0) {
      return;
    }
    find(begin, best.start, found);
    found.push_back(best);
    find(best.start + best.size * best.count, end, found);
  }

 private:
  // The repetition that covers most boxes; among equals the one with the shortest stretch.
  Repeat best_in(size_t begin, size_t end) const {
    Repeat best;
    for (size_t size = kMinSize; size <= std::min(kMaxSize, (end - begin) / 2); ++size) {
      // Stretches where box i is of the class of box i + size.
      for (size_t i = begin; i + size < end;) {
        size_t run = 0;
        while (i + run + size < end && classes_[i + run] == classes_[i + run + size]) {
          ++run;
        }
        if (run >= size) {
          const Repeat repeat = best_wired(i, size, run);
          if (repeat.size * repeat.count > best.size * best.count) {
            best = repeat;
          }
        }
        i += run + 1;
      }
    }
    return best;
  }

  // Where in the run do the stretches begin? Only cuts at the right place leave the wiring alike,
  // and of those that cover as much, the one with the fewest sources outside is the layer.
  Repeat best_wired(size_t begin, size_t size, size_t run) const {
    Repeat best;
    for (size_t shift = 0; shift < size && run - shift >= size; ++shift) {
      Repeat repeat{begin + shift, size, (run - shift) / size + 1};
      if (repeat.count < best.count) {
        break;
      }
      repeat.count = wired_alike(repeat);
      if (repeat.count >= 2 &&
          (repeat.count > best.count ||
           (repeat.count == best.count && outside_sources(repeat) < outside_sources(best)))) {
        best = repeat;
      }
    }
    return best;
  }

  // Boxes before the first repetition that it takes something from.
  size_t outside_sources(const Repeat& repeat) const {
    std::set<size_t> sources;
    for (size_t box = repeat.start; box < repeat.start + repeat.size; ++box) {
      for (const Arrow& arrow : boxes_[box].arrows) {
        if (arrow.from < repeat.start) {
          sources.insert(arrow.from);
        }
      }
    }
    return sources.size();
  }

  // How many repetitions from the start on are wired like the first.
  size_t wired_alike(const Repeat& repeat) const {
    for (size_t k = 1; k < repeat.count; ++k) {
      for (size_t box = 0; box < repeat.size; ++box) {
        if (!arrows_alike(repeat, repeat.start + box, k)) {
          return k;
        }
      }
    }
    return repeat.count;
  }

  bool arrows_alike(const Repeat& repeat, size_t first, size_t k) const {
    const std::vector<Arrow>& arrows = boxes_[first].arrows;
    const size_t shift = k * repeat.size;
    const std::vector<Arrow>& others = boxes_[first + shift].arrows;
    if (arrows.size() != others.size()) {
      return false;
    }
    for (size_t i = 0; i < arrows.size(); ++i) {
      const size_t from = arrows[i].from;
      const size_t other = others[i].from;
      if (from >= repeat.start) {
        if (other != from + shift) {
          return false;
        }
      } else if (other >= repeat.start) {
        // Taken over from the repetition before; every later one takes it from the same place.
        const size_t block = (other - repeat.start) / repeat.size;
        const size_t second = boxes_[first + repeat.size].arrows.at(i).from;
        if (block + 1 != k || other != second + (k - 1) * repeat.size) {
          return false;
        }
      } else if (other != from ||
                 (k > 1 && boxes_[first + repeat.size].arrows.at(i).from != from)) {
        return false;  // either all take it from one shared box, or none but the first does
      }
    }
    return true;
  }

  const std::vector<Box>& boxes_;
  std::vector<int> classes_;
};

}  // namespace

std::vector<Repeat> find_repeats(const std::vector<Box>& boxes) {
  std::vector<Repeat> found;
  Finder(boxes).find(0, boxes.size(), found);
  return found;
}

}  // namespace ptero::inspect
