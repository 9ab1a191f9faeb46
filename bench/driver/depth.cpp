// SPDX-License-Identifier: Apache-2.0
// How the cost of a child that blocks depends on the frames that are taken away with it, and on
// those of its callers, which stay.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr std::array<std::uint64_t, 4> depths{1, 10, 100, 1000};

/// What a block takes beyond a child that finds what it needs, over `peer`, round by round.
comparison block_over(const samples& all, const std::string& block, const std::string& find,
                      const std::vector<double>& peer) {
  const std::vector<double>& blocked = all.find(block)->second;
  const std::vector<double>& found = all.find(find)->second;
  comparison pairs;
  std::vector<double> ratios, costs;
  for (std::size_t round = 0; round < blocked.size(); ++round) {
    costs.push_back(blocked[round] - found[round]);
    ratios.push_back(costs.back() / peer[round]);
  }
  pairs.take_ratios(std::move(ratios));
  pairs.ours_ns = median(costs);
  pairs.peer_ns = median(peer);
  return pairs;
}

}  // namespace

void add_depth(report& result, const installation& here, const settings& chosen) {
  tell_progress("hybrid: blocks with few and many frames");
  worker forks("bench_hybrid", {here.program("bench_hybrid"), "--cpus", "0"}, 1);
  worker heap("bench_hybrid", {here.program("bench_hybrid"), "--cpus", "0"}, 1,
              environment{{"SOJOURN_EXECUTION", "heap"}});
  // A batch takes about a tenth of a millisecond; the frames that stay are made once a batch.
  const auto batch = [](worker& of, const std::string& operation, std::uint64_t depth) {
    const std::uint64_t frames = operation == "below.block" ? 1 : depth;
    const batch_plan plan{.iterations = 20'000 / (frames + 20), .repeats = 5, .bytes = depth};
    return [&of, operation, plan] { return of.median_of(operation, plan); };
  };
  std::vector<contender> contenders;
  for (const std::uint64_t depth : depths) {
    const auto add = [&](const char* name, worker& of, const char* operation) {
      contenders.push_back({fmt::format("{} {}", name, depth), batch(of, operation, depth)});
    };
    add("block", forks, "taken.block");
    add("find", forks, "taken.find");
    add("copy", forks, "taken.copy");
    add("below", forks, "below.block");
    add("heap", heap, "taken.block");
  }
  const samples all = interleave(chosen.work.rounds(), contenders);
  const auto of = [&](const char* name, std::uint64_t depth) -> const std::vector<double>& {
    return all.find(fmt::format("{} {}", name, depth))->second;
  };
  for (const std::uint64_t depth : {100, 1000}) {
    result.add_ratio(
        "hybrid", fmt::format("block_over_memcpy_{}", depth),
        fmt::format("a block with {} frames over memcpy() of them, out and in again", depth), 3,
        block_over(all, fmt::format("block {}", depth), fmt::format("find {}", depth),
                   of("copy", depth)));
  }
  result.add_ratio("hybrid", "block_above_1000_over_10",
                   "fork, block and join above 1000 frames that stay over above 10", 1.1,
                   compare(all, "below 1000", "below 10"));

  std::string text =
      "A child that blocks, beyond one that finds what it needs: nanoseconds, with its join\n"
      "frames      taken away  memcpy  ratio  on the heap  frames that stay: fork, block, join\n";
  nlohmann::json rows = nlohmann::json::array();
  for (const std::uint64_t depth : depths) {
    const comparison pairs = block_over(all, fmt::format("block {}", depth),
                                        fmt::format("find {}", depth), of("copy", depth));
    const double on_heap = median(of("heap", depth)) - median(of("find", depth));
    text += fmt::format("{:<10} {:>11.0f} {:>7.0f} {:>6.1f} {:>12.0f} {:>37.0f}\n", depth,
                        pairs.ours_ns, pairs.peer_ns, pairs.ratio_median, on_heap,
                        median(of("below", depth)));
    rows.push_back({{"frames", depth},
                    {"block_ns", to_thousandths(pairs.ours_ns)},
                    {"memcpy_ns", to_thousandths(pairs.peer_ns)},
                    {"heap_ns", to_thousandths(on_heap)},
                    {"below_ns", to_thousandths(median(of("below", depth)))}});
  }
  text +=
      "On the heap: a child with a context of its own, which blocks, over the same one in place\n"
      "that does not. The copies lie in the caches, and the kernel has no part in them.";
  result.add_text(text);
  result.add_detail("hybrid", "depth", rows);
}

}  // namespace bench
