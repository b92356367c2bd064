// SPDX-License-Identifier: BSD-3-Clause
#include "cli/trace.h"

#include <algorithm>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/file_output.h"

namespace ptero::cli {
namespace {

struct TrackInfo {
  int process;
  int thread;
  const char* process_name;
  const char* name;
};
// By Trace::Track.
constexpr TrackInfo kTracks[] = {{1, 1, "host", "load and rows"},
                                 {1, 2, "host", "prompt and tokens"},
                                 {2, 1, "GPU", "compute passes"},
                                 {2, 2, "GPU", "kernels (profiled)"}};

}  // namespace

void Trace::add(Track track, std::string name, Clock::time_point begin, Clock::time_point end) {
  const double from = since_start(begin);
  events_.push_back({track, std::move(name), from, since_start(end) - from});
}

void Trace::add_gpu(const std::vector<gpu::PassTime>& times, Clock::time_point begin,
                    Clock::time_point end) {
  if (times.empty()) {
    return;
  }
  uint64_t last = 0;
  for (const gpu::PassTime& time : times) {
    last = std::max(last, time.end);
  }
  for (const gpu::PassTime& time : times) {
    const double from = since_start(end) - 1e-3 * static_cast<double>(last - time.begin);
    events_.push_back({time.kernel.empty() ? Track::passes : Track::kernels,
                       time.kernel.empty() ? "pass" : std::string(time.kernel),
                       std::max(from, since_start(begin)),
                       1e-3 * static_cast<double>(time.end - time.begin)});
  }
}

Status Trace::write(const std::string& path) const {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const TrackInfo& track : kTracks) {
    for (const auto& [what, name] :
         {std::pair("process_name", track.process_name), std::pair("thread_name", track.name)}) {
      events.push_back({{"ph", "M"},
                        {"pid", track.process},
                        {"tid", track.thread},
                        {"name", what},
                        {"args", {{"name", name}}}});
    }
  }
  for (const Event& event : events_) {
    const TrackInfo& track = kTracks[static_cast<size_t>(event.track)];
    events.push_back({{"ph", "X"},
                      {"pid", track.process},
                      {"tid", track.thread},
                      {"name", event.name},
                      {"ts", event.begin},
                      {"dur", event.duration}});
  }
  const std::string text =
      nlohmann::ordered_json({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}})
          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  return write_file(path, *borrow_bytes(std::as_bytes(std::span(text))));
}

}  // namespace ptero::cli
