// SPDX-License-Identifier: BSD-3-Clause
// What `ptero bench` measured, and how it is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "graph/memory_report.h"

namespace ptero::cli {

struct BenchRow {
  std::string test;                 // "pp512", "tg128 @ d512"
  std::string failure;              // empty: it ran
  std::vector<double> rates;        // tokens per second, one a repetition
  std::vector<double> first_token;  // seconds from the prompt to it, one a repetition
  // Seconds in which the GPU worked, per token, from a repetition of its own with time stamps; none
  // without them.
  std::optional<double> gpu_seconds;
  // Per token, as the ones below. Seconds of the process on all cores.
  double cpu_seconds = 0;
  double dispatches = 0;
  double submits = 0;
  double operator_calls = 0;
  double bytes_read_back = 0;
};

// A kernel's part of a profiled run.
struct KernelShare {
  std::string kernel;
  double dispatches = 0;  // per token
  double seconds = 0;     // per token
  double share = 0;       // of the GPU's time; together 1
};
struct BenchProfile {
  std::string test;                  // "pp512"
  std::vector<KernelShare> kernels;  // the largest first
};
BenchProfile make_profile(std::string test, const std::vector<gpu::KernelTime>& times,
                          double tokens);

struct BenchReport {
  std::string model;
  std::string adapter;
  std::string driver;
  double load_seconds = 0;
  uint64_t device_bytes_peak = 0;
  uint64_t host_bytes_peak = 0;
  std::optional<graph::MemoryReport> memory;  // of a session
  bool show_memory = false;                   // in md; JSON always does
  std::vector<BenchRow> rows;
  std::vector<BenchProfile> profiles;
};

// `format`: md, json or csv.
void print_report(const BenchReport& report, std::string_view format);

}  // namespace ptero::cli
