// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 nine sor --threads 2
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/application.hpp"
#include "nine/kernel/applications.hpp"
#include "nine/kernel/threads_machine.hpp"
#include "nine/shared_machine.hpp"

namespace {

using namespace apps;

std::string list_of_applications() {
  std::string text;
  for (const auto& a : nine::applications())
    text += fmt::format("  {:14} {}; paper: {}; small: {}\n", a.name, a.what, a.paper_input,
                        a.small_input);
  return text;
}

using counter_values = decltype(sojourn::shared::counters().values());

struct outcome {
  double seconds = 0;
  double checksum = 0;
  std::string difference{};            ///< From the serial reference; empty when there is none.
  std::vector<double> rank_seconds{};  ///< Of each rank; on rank 0.
  counter_values counted{};            ///< While it ran, by all ranks together.
};

outcome run_here(nine::application& program, int threads) {
  nine::threads_machine m(threads);
  const std::uint64_t start_ns = sojourn::now_ns();
  nine::run_on_threads(program, m);
  const double seconds = static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9;
  return {.seconds = seconds, .checksum = program.checksum(), .difference = program.check()};
}

outcome run_on_ranks(nine::application& program, int threads) {
  nine::shared_machine m(threads);
  sojourn::barrier();
  const counter_values before = sojourn::shared::counters_now().values();
  const std::uint64_t start_ns = sojourn::now_ns();
  nine::run_on_ranks(program, m, threads);
  outcome o;
  o.seconds = static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9;
  o.counted = sojourn::shared::counters_now().values();
  for (std::size_t i = 0; i < before.size(); ++i) o.counted[i] -= before[i];
  o.counted = sojourn::reduce(o.counted, sojourn::elementwise(std::plus<>{}));
  o.rank_seconds = sojourn::gather(o.seconds);
  if (sojourn::rank_me() == 0) {
    o.checksum = program.checksum();
    o.difference = program.check();
  }
  // What rank 0 reads of others must be there until it has read it.
  sojourn::barrier();
  return o;
}

nlohmann::ordered_json to_json(const counter_values& counted) {
  nlohmann::ordered_json all;
  const auto names = sojourn::shared::counter_names();
  for (std::size_t i = 0; i < counted.size(); ++i) all[names[i]] = counted[i];
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  command_line options(
      "Nine programs for shared memory, on memory that the ranks share page by page: those of\n"
      "Thitikamol and Keleher, Per-Node Multi-Threading and Remote Latency, rewritten. Every run\n"
      "is compared with a serial reference.\n\n" +
          list_of_applications(),
      "nine");
  std::string name = "sor";
  std::string size = "small";
  int threads = 1;
  bool here = false;
  json_report json;
  options.add("application", name, "Which of the nine");
  options.add("--size", size, "small, or paper: that of the paper's Table 1")
      .one_of({"small", "paper"});
  options.add("--threads", threads, "Threads of each rank").between(1, 64);
  options.add_flag("--here", here,
                   "Threads of one process in place of ranks, for comparison: the same source");
  json.add_to(options);

  return run_application(options, argc, argv, [&]() -> int {
    const auto* entry = nine::find_application(name);
    if (entry == nullptr)
      throw refusal(2,
                    fmt::format("nine: there is no application {}: nine --help lists them", name));
    if (here && sojourn::rank_count() != 1)
      throw refusal(2, "nine: --here is for a job of one rank: leave out `sojourn run -n`");
    json.open();
    const auto program =
        entry->make(size == "paper" ? nine::problem_size::paper : nine::problem_size::small);
    const outcome o = here ? run_here(*program, threads) : run_on_ranks(*program, threads);
    if (!sojourn::broadcast(o.difference.empty()))
      throw refusal(1, fmt::format("nine: {}: {}", name, o.difference));
    const char* input = size == "paper" ? entry->paper_input : entry->small_input;
    say(json.readable(),
        fmt::format("{} ({}), {} {} of {} threads: {:.3f} s, checksum {:.12g}, as the serial "
                    "reference\n",
                    name, input, sojourn::rank_count(), here ? "process" : "ranks", threads,
                    o.seconds, o.checksum));
    nlohmann::ordered_json figures{
        {"application", name},        {"input", input}, {"ranks", sojourn::rank_count()},
        {"threads_of_rank", threads}, {"here", here},   {"seconds", o.seconds},
        {"checksum", o.checksum}};
    if (!here) {
      figures["rank_seconds"] = o.rank_seconds;
      figures["counters"] = to_json(o.counted);
    }
    json.write(figures);
    return 0;
  });
}
