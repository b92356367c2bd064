// SPDX-License-Identifier: BSD-3-Clause
// What the benchmark programs that use a GPU share: the adapter, time, and how a program ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"

namespace ptero::bench {

// The adapter that PTERO_ADAPTER names, or the best one.
Result<gpu::Adapter> find_adapter();
Result<gpu::Device> open_device(gpu::DeviceOptions options = {});

// Microseconds, by the clock and of the process on all cores. On a machine that is shared, or on a
// software adapter, the second says more.
struct Times {
  double wall = 0;
  double processor = 0;

  Times operator/(double count) const { return {wall / count, processor / count}; }
};

class Watch {
 public:
  Times stop() const {
    return {std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
                .count(),
            1e6 * static_cast<double>(std::clock() - processor_start_) / CLOCKS_PER_SEC};
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::clock_t processor_start_ = std::clock();
};

// The middle value; of an even number the upper one. `values` must not be empty.
double median(std::vector<double> values);

// Runs `body` twice and for as long as `warm_up` says, which a GPU that has been idle needs to
// reach its clock, then `runs` times: the median by the clock, and the least of the process.
Result<Times> time_runs(int runs, const std::function<Status()>& body,
                        std::chrono::milliseconds warm_up = {});

// Prints the error, if there is one, as the program's; returns the exit status.
int finish(std::string_view program, const Status& status);

}  // namespace ptero::bench
