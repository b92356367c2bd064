// SPDX-License-Identifier: BSD-3-Clause
#include "cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/memory.h"

namespace ptero::cli {
namespace {

using Json = nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// What the host's clock says that a token takes.
double wall_seconds(const BenchRow& row) {
  const double rate = mean(row.rates);
  return rate > 0 ? 1 / rate : 0;
}

void print_markdown(const BenchReport& report) {
  fmt::print(
      "{} on {} ({}), loaded in {:.2f} s, device memory {:.1f} MiB at most, process {:.1f} MiB\n\n",
      report.model, report.adapter, report.driver, report.load_seconds,
      mebibytes(report.device_bytes_peak), mebibytes(report.host_bytes_peak));
  fmt::print(
      "| test | t/s | wall ms/token | GPU ms/token | first token ms | CPU-s/token "
      "| dispatches/token | submits/token | operator calls/token | bytes read/token |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const BenchRow& row : report.rows) {
    if (!row.failure.empty()) {
      fmt::print("| {} | failed: {} | | | | | | | | |\n", row.test, row.failure);
      continue;
    }
    fmt::print(
        "| {} | {:.2f} ± {:.2f} | {:.3f} | {} | {:.1f} | {:.4f} | {:.1f} | {:.2f} | {:.2f} "
        "| {:.0f} |\n",
        row.test, mean(row.rates), deviation(row.rates), 1e3 * wall_seconds(row),
        row.gpu_seconds ? fmt::format("{:.3f}", 1e3 * *row.gpu_seconds) : "-",
        1e3 * mean(row.first_token), row.cpu_seconds, row.dispatches, row.submits,
        row.operator_calls, row.bytes_read_back);
  }
  fmt::print("\nGPU time is from one more repetition, with time stamps around every pass.\n");
  if (report.show_memory && report.memory) {
    fmt::print("\n{}", memory_table(*report.memory));
  }
  for (const BenchProfile& profile : report.profiles) {
    double total = 0;
    for (const KernelShare& kernel : profile.kernels) {
      total += kernel.seconds;
    }
    fmt::print(
        "\nKernels of {} by GPU time, {:.3f} ms a token; profiled with a pass for each "
        "dispatch, which is slower than a run\n\n"
        "| kernel | dispatches/token | ms/token | share |\n|---|---:|---:|---:|\n",
        profile.test, 1e3 * total);
    for (const KernelShare& kernel : profile.kernels) {
      fmt::print("| {} | {:.1f} | {:.4f} | {:.1f} % |\n", kernel.kernel, kernel.dispatches,
                 1e3 * kernel.seconds, 100 * kernel.share);
    }
  }
}

// As a field of CSV: quoted where it has to be.
std::string csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

void print_csv(const BenchReport& report) {
  fmt::print(
      "model,adapter,driver,test,tokens_per_second,deviation,wall_seconds_per_token,"
      "gpu_seconds_per_token,first_token_seconds,cpu_seconds_per_token,dispatches_per_token,"
      "submits_per_token,operator_calls_per_token,bytes_read_back_per_token,load_seconds,"
      "device_bytes_peak,host_bytes_peak,failed,error\n");
  for (const BenchRow& row : report.rows) {
    const bool failed = !row.failure.empty();
    fmt::print("{},{},{},{},", csv(report.model), csv(report.adapter), csv(report.driver),
               csv(row.test));
    if (failed) {
      fmt::print(",,,,,,,,,,");
    } else {
      fmt::print("{:.4f},{:.4f},{:.6f},{},{:.6f},{:.6f},{:.2f},{:.3f},{:.3f},{:.1f},",
                 mean(row.rates), deviation(row.rates), wall_seconds(row),
                 row.gpu_seconds ? fmt::format("{:.6f}", *row.gpu_seconds) : "",
                 mean(row.first_token), row.cpu_seconds, row.dispatches, row.submits,
                 row.operator_calls, row.bytes_read_back);
    }
    fmt::print("{:.3f},{},{},{},{}\n", report.load_seconds, report.device_bytes_peak,
               report.host_bytes_peak, failed ? 1 : 0, csv(row.failure));
  }
}

Json json_of(const BenchRow& row) {
  Json entry = {{"test", row.test}, {"failed", !row.failure.empty()}};
  if (!row.failure.empty()) {
    entry["error"] = row.failure;
    return entry;
  }
  entry["tokens_per_second"] = mean(row.rates);
  entry["deviation"] = deviation(row.rates);
  entry["samples"] = row.rates;
  entry["wall_seconds_per_token"] = wall_seconds(row);
  entry["gpu_seconds_per_token"] = row.gpu_seconds ? Json(*row.gpu_seconds) : Json(nullptr);
  entry["first_token_seconds"] = mean(row.first_token);
  entry["cpu_seconds_per_token"] = row.cpu_seconds;
  entry["dispatches_per_token"] = row.dispatches;
  entry["submits_per_token"] = row.submits;
  entry["operator_calls_per_token"] = row.operator_calls;
  entry["bytes_read_back_per_token"] = row.bytes_read_back;
  return entry;
}

void print_json(const BenchReport& report) {
  Json out = {{"model", report.model},
              {"adapter", report.adapter},
              {"driver", report.driver},
              {"load_seconds", report.load_seconds},
              {"device_bytes_peak", report.device_bytes_peak},
              {"host_bytes_peak", report.host_bytes_peak},
              {"rows", Json::array()}};
  if (report.memory) {
    out["memory"] = to_json(*report.memory);
  }
  for (const BenchRow& row : report.rows) {
    out["rows"].push_back(json_of(row));
  }
  for (const BenchProfile& profile : report.profiles) {
    Json kernels = Json::array();
    for (const KernelShare& kernel : profile.kernels) {
      kernels.push_back({{"kernel", kernel.kernel},
                         {"dispatches_per_token", kernel.dispatches},
                         {"gpu_seconds_per_token", kernel.seconds},
                         {"share", kernel.share}});
    }
    out["profiles"].push_back({{"test", profile.test}, {"kernels", std::move(kernels)}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

BenchProfile make_profile(std::string test, const std::vector<gpu::KernelTime>& times,
                          double tokens) {
  std::map<std::string_view, KernelShare> by_name;
  double total = 0;
  for (const gpu::KernelTime& time : times) {
    const double seconds = 1e-9 * static_cast<double>(time.nanoseconds);
    KernelShare& share = by_name[time.kernel];
    share.dispatches += 1 / tokens;
    share.seconds += seconds / tokens;
    total += seconds / tokens;
  }
  BenchProfile profile{std::move(test), {}};
  for (auto& [name, share] : by_name) {
    share.kernel = name;
    share.share = total > 0 ? share.seconds / total : 0;
    profile.kernels.push_back(std::move(share));
  }
  std::sort(profile.kernels.begin(), profile.kernels.end(),
            [](const KernelShare& a, const KernelShare& b) { return a.seconds > b.seconds; });
  return profile;
}

void print_report(const BenchReport& report, std::string_view format) {
  if (format == "json") {
    print_json(report);
  } else if (format == "csv") {
    print_csv(report);
  } else {
    print_markdown(report);
  }
}

}  // namespace ptero::cli
