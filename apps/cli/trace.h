// SPDX-License-Identifier: BSD-3-Clause
// Events over time in the format that Perfetto and Chrome's about:tracing read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/pass_times.h"

namespace ptero::cli {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Track : uint8_t { rows, steps, passes, kernels };

  // Times count from here.
  Trace() : start_(Clock::now()) {}

  void add(Track track, std::string name, Clock::time_point begin, Clock::time_point end);
  // What the GPU did in a run on the host between `begin` and `end`. Its clock is another one: its
  // last work is taken to have ended when the run did, so that it may be shown a little late.
  void add_gpu(const std::vector<gpu::PassTime>& times, Clock::time_point begin,
               Clock::time_point end);
  // Code io when the file cannot be written.
  Status write(const std::string& path) const;

 private:
  struct Event {
    Track track;
    std::string name;
    double begin;     // microseconds
    double duration;  // microseconds
  };
  double since_start(Clock::time_point time) const {
    return std::chrono::duration<double, std::micro>(time - start_).count();
  }

  Clock::time_point start_;
  std::vector<Event> events_;
};

}  // namespace ptero::cli
