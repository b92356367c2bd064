// SPDX-License-Identifier: BSD-3-Clause
// Device memory of a session as it is planned, for sets of options of planning, and what this
// process takes: on a software adapter the driver's memory is the process's, as far as it was
// written, which weights and caches are once they are loaded. Each set is measured in a process of
// its own.
// Usage: memory_bench [MODEL.pte [OPTION=VALUE[,OPTION=VALUE ...] ...]], with PTERO_ADAPTER to
// choose an adapter. The first set is what the others are compared with; "-" is the defaults.
// Without a model: the attention of the 16 layers of Llama 3.2 1B with contexts of 2048 and 8192.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/byte_source.h"
#include "common/bench.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "graph/model.h"
#include "graph/session.h"
#include "inspect/load.h"
#include "ops/all_operators.h"
#include "passes/passes.h"

namespace {

using namespace ptero;

struct Figures {
  uint64_t planned = 0;
  uint64_t cache = 0;
  uint64_t scratch = 0;
  uint64_t allocated = 0;
  uint64_t process = 0;  // more than before the model was loaded
};

// Bytes of this process that no file backs.
Result<uint64_t> process_bytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) {
      kib += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  PTERO_REJECT_IF(kib == 0, unsupported, "This system does not tell what a process takes.");
  return kib * 1024;
}

// Attention of the 16 layers of Llama 3.2 1B, up to 512 tokens a run.
pte::Graph llama_attention(uint32_t context) {
  pte::Graph graph;
  const auto add = [&](pte::GraphValue value) {
    graph.values.push_back(std::move(value));
    return static_cast<uint32_t>(graph.values.size() - 1);
  };
  const auto tensor = [&](uint32_t rows, uint32_t heads) {
    pte::GraphTensor made;
    made.dims = {1, rows, heads, 64};
    return add(std::move(made));
  };
  const auto cache = [&] {
    const uint32_t id = tensor(context, 8);
    auto& made = std::get<pte::GraphTensor>(graph.values[id]);
    made.constant_id = static_cast<uint32_t>(graph.constants.size());
    pte::GraphConstant constant;
    constant.data =
        ByteRange::whole(own_bytes(std::vector<std::byte>(uint64_t{context} * 8 * 64 * 4)));
    graph.constants.push_back(std::move(constant));
    return id;
  };
  uint32_t q = tensor(512, 32);
  const uint32_t k = tensor(512, 8);
  const uint32_t v = tensor(512, 8);
  const uint32_t position = add(pte::SymInt{});
  graph.inputs = {q, k, v, position};
  const uint32_t null = add(pte::Null{});
  const uint32_t yes = add(true);
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t k_cache = cache();
    const uint32_t v_cache = cache();
    const uint32_t y = tensor(512, 32);
    graph.chain.push_back({i,
                           "sdpa_with_kv_cache.default",
                           {q, k, v, k_cache, v_cache, position, null, null, null, yes, null, y}});
    q = y;
  }
  graph.outputs = {q};
  return graph;
}

// "attention 2048", or the one delegate of a file's method forward.
Result<pte::Graph> find_graph(const std::string& model) {
  constexpr std::string_view kAttention = "attention ";
  if (model.starts_with(kAttention)) {
    return llama_attention(static_cast<uint32_t>(std::stoul(model.substr(kAttention.size()))));
  }
  PTERO_ASSIGN_OR_RETURN(const inspect::LoadedFile file, inspect::load_file(model, {}));
  PTERO_REJECT_IF(!file.program || file.program->delegates.empty() ||
                      file.program->delegates[0].size() != 1 ||
                      !file.program->delegates[0][0].graph,
                  unsupported, "{} has no method of one Vulkan delegate.", model);
  return *file.program->delegates[0][0].graph;
}

Result<Figures> measure(const std::string& model, const graph::PlanOptions& options) {
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, bench::open_device());
  PTERO_ASSIGN_OR_RETURN(pte::Graph graph, find_graph(model));
  PTERO_ASSIGN_OR_RETURN(const uint64_t before, process_bytes());
  PTERO_ASSIGN_OR_RETURN(const auto loaded, gpu::wait_for(graph::GraphModel::load(
                                                device, std::move(graph), ops::all_operators(),
                                                passes::standard_passes(), options)));
  PTERO_ASSIGN_OR_RETURN(const auto session, graph::GraphSession::create(loaded));
  // What is still on its way goes through, so that its copies on the host are freed.
  for (int i = 0; i < 2; ++i) {
    PTERO_RETURN_IF_ERROR(device.submit(gpu::Step()));
    PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished()));
  }
  PTERO_ASSIGN_OR_RETURN(const uint64_t after, process_bytes());
  const graph::BytesByKind planned = session->planned_bytes();
  const auto of = [&](gpu::MemoryKind kind) { return planned[static_cast<size_t>(kind)]; };
  return Figures{.planned = graph::sum(planned),
                 .cache = of(gpu::MemoryKind::cache),
                 .scratch = of(gpu::MemoryKind::scratch),
                 .allocated = graph::sum(device.stats().bytes_by_kind),
                 .process = after - before};
}

// In a process of its own; the driver keeps what it once took.
Result<Figures> measure_apart(const std::string& path, const graph::PlanOptions& options) {
  int ends[2] = {};
  PTERO_REJECT_IF(pipe(ends) != 0, io, "There is no pipe to be had.");
  const pid_t child = fork();
  PTERO_REJECT_IF(child < 0, io, "There is no process to be had.");
  if (child == 0) {
    const Result<Figures> figures = measure(path, options);
    if (!figures.ok()) {
      fmt::print(stderr, "memory_bench: {}\n", figures.error().to_string());
      _exit(1);
    }
    const bool written = write(ends[1], &*figures, sizeof(Figures)) == sizeof(Figures);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Figures figures;
  const bool read_all = read(ends[0], &figures, sizeof figures) == sizeof figures;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  PTERO_REJECT_IF(!read_all, internal, "A measurement failed.");
  return figures;
}

Result<graph::PlanOptions> parse(std::string_view set) {
  graph::PlanOptions options;
  graph::set_from_environment(options);
  while (!set.empty() && set != "-") {
    const size_t comma = set.find(',');
    PTERO_RETURN_IF_ERROR(graph::set(options, set.substr(0, comma)));
    set = comma == std::string_view::npos ? std::string_view() : set.substr(comma + 1);
  }
  return options;
}

Status compare(const std::string& model, const std::vector<std::string>& sets) {
  fmt::print("| {:<43} | {:>9} | {:>9} | {:>9} | {:>9} | {:>9} | {:>8} | {:>8} |\n",
             "MiB of " + model.substr(model.find_last_of('/') + 1), "cache", "scratch", "planned",
             "allocated", "process", "planned-", "process-");
  const auto mib = [](double bytes) { return bytes / (1 << 20); };
  std::vector<Figures> all;
  for (const std::string& set : sets) {
    PTERO_ASSIGN_OR_RETURN(const graph::PlanOptions options, parse(set));
    PTERO_ASSIGN_OR_RETURN(const Figures figures, measure_apart(model, options));
    all.push_back(figures);
    const auto less = [&](uint64_t Figures::* member) {
      return mib(static_cast<double>(all.front().*member) - static_cast<double>(figures.*member));
    };
    fmt::print(
        "| {:<43} | {:>9.1f} | {:>9.1f} | {:>9.1f} | {:>9.1f} | {:>9.1f} | {:>8.1f} | {:>8.1f} |\n",
        set, mib(static_cast<double>(figures.cache)), mib(static_cast<double>(figures.scratch)),
        mib(static_cast<double>(figures.planned)), mib(static_cast<double>(figures.allocated)),
        mib(static_cast<double>(figures.process)), less(&Figures::planned),
        less(&Figures::process));
    std::fflush(stdout);
  }
  return ok_status();
}

Status run(const std::vector<std::string>& arguments) {
  std::vector<std::string> sets = {"-", "enable_f16_kv_cache", "scratch_pool=false",
                                   "sdpa_route=materialized",
                                   "sdpa_route=materialized,scratch_pool=false"};
  if (arguments.size() > 1) {
    sets.assign(arguments.begin() + 1, arguments.end());
  }
  const auto models = arguments.empty()
                          ? std::vector<std::string>{"attention 2048", "attention 8192"}
                          : std::vector<std::string>{arguments.front()};
  for (const std::string& model : models) {
    PTERO_RETURN_IF_ERROR(compare(model, sets));
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::finish("memory_bench", run({argv + 1, argv + argc}));
}
