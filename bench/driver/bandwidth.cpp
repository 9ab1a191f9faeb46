// SPDX-License-Identifier: Apache-2.0
//
// Bandwidth by size: calls whose argument the callee has in a buffer of its user at the end, beside
// memcpy in one process, MPI and UCX. Each side goes each way that it has, and its best counts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "driver/benchmarks.hpp"
#include "driver/messaging_peers.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kibi = 1024;
constexpr std::array<std::uint64_t, 14> sizes{
    64,         256,         kibi,        4 * kibi,    16 * kibi,    64 * kibi,    256 * kibi,
    512 * kibi, 1024 * kibi, 1280 * kibi, 4096 * kibi, 16384 * kibi, 32768 * kibi, 65536 * kibi};
/// The worst of these is the figure.
constexpr std::uint64_t counts_from = 4 * kibi;

/// A way to send, under a name that says whose it is.
struct way {
  std::string name;
  worker* of;
  std::string operation;
};

batch_plan plan_of(const settings& chosen, std::uint64_t bytes) {
  const std::uint64_t moved = chosen.work.quick ? 4 * kibi * kibi : 64 * kibi * kibi;
  const std::uint64_t most = chosen.work.quick ? 200 : 2000;
  return {.iterations = std::clamp<std::uint64_t>(moved / bytes, 2, most),
          .repeats = bytes >= 4096 * kibi ? 1u : 3u,
          .bytes = bytes};
}

/// Messages under way at a time where several are: of 4 MiB in all, at most 64.
std::uint64_t window_of(std::uint64_t bytes) {
  return std::clamp<std::uint64_t>(4096 * kibi / bytes, 2, 64);
}

struct side {
  const char* key;
  std::vector<way> ways;
};

std::vector<side> sides_for(worker& ours, const messaging_peers& peers, std::uint64_t bytes) {
  const std::string windows = fmt::format("stream.{}", window_of(bytes));
  std::vector<side> all{{"ours",
                         {{"calls with a view", &ours, "rpc_view"},
                          {"one-way calls with a view", &ours, "view_stream"},
                          {"vectors given away", &ours, "rpc_moved"}}},
                        {"memcpy", {{"memcpy", &ours, "memcpy"}}}};
  if (peers.mpi() != nullptr) {
    all.push_back({"mpi",
                   {{"MPI, one at a time", peers.mpi(), "there"},
                    {fmt::format("MPI, {} at a time", window_of(bytes)), peers.mpi(), windows}}});
  }
  if (peers.ucx() != nullptr) {
    all.push_back({"ucx",
                   {{"UCX, one at a time", peers.ucx(), "there"},
                    {fmt::format("UCX, {} at a time", window_of(bytes)), peers.ucx(), windows}}});
  }
  return all;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < kibi) return fmt::format("{} B", bytes);
  if (bytes < kibi * kibi) return fmt::format("{} KiB", bytes / kibi);
  return fmt::format("{:g} MiB", static_cast<double>(bytes) / (kibi * kibi));
}

/// What the rounds of one size gave.
struct outcome {
  std::uint64_t bytes;
  samples all;
  std::vector<std::pair<std::string, std::string>> best;  // of each side, by its key

  const std::string* best_of(std::string_view side) const {
    for (const auto& [key, name] : best) {
      if (key == side) return &name;
    }
    return nullptr;
  }
  /// Bytes a nanosecond are gigabytes a second.
  double rate_of(std::string_view side) const {
    return static_cast<double>(bytes) / median(all.find(*best_of(side))->second);
  }
};

outcome measure(worker& ours, const messaging_peers& peers, const settings& chosen,
                std::uint64_t bytes) {
  tell_progress(fmt::format("rpc: bandwidth of {}", size_text(bytes)));
  const batch_plan plan = plan_of(chosen, bytes);
  const std::vector<side> sides = sides_for(ours, peers, bytes);
  std::vector<contender> contenders;
  for (const side& s : sides) {
    for (const way& w : s.ways) {
      contenders.push_back({w.name, [&w, plan] { return w.of->median_of(w.operation, plan); }});
    }
  }
  // Large ones take long, and differ little from round to round.
  const int part = bytes >= 4096 * kibi ? 3 : 1;
  outcome found{bytes, interleave((chosen.work.rounds() + part - 1) / part, contenders), {}};
  for (const side& s : sides) {
    std::vector<std::string> names;
    for (const way& w : s.ways) names.push_back(w.name);
    found.best.emplace_back(s.key, quickest(found.all, names));
  }
  return found;
}

void add_table(report& result, const std::vector<outcome>& outcomes) {
  std::string text = fmt::format(
      "Bandwidth by size, GB/s: each side's best way (medians)\n"
      "{:>9} {:>8} {:>8} {:>8} {:>8}  {:>8}  {}\n",
      "size", "memcpy", "Sojourn", "OpenMPI", "UCX", "over MPI", "ours");
  nlohmann::json rows = nlohmann::json::array();
  for (const outcome& o : outcomes) {
    nlohmann::json row = {{"bytes", o.bytes}};
    const auto cell = [&](const char* side) {
      if (o.best_of(side) == nullptr) {
        row[std::string(side) + "_gb_s"] = nullptr;
        return std::string("-");
      }
      row[std::string(side) + "_gb_s"] = to_thousandths(o.rate_of(side));
      row[std::string(side) + "_way"] = *o.best_of(side);
      return fmt::format("{:.2f}", o.rate_of(side));
    };
    std::string over = "-";
    if (o.best_of("mpi") != nullptr) {
      const double ratio =
          inverse(compare(o.all, *o.best_of("ours"), *o.best_of("mpi"))).ratio_median;
      row["over_mpi"] = to_thousandths(ratio);
      over = fmt::format("{:.2f}", ratio);
    }
    const std::string memcpy_cell = cell("memcpy");
    const std::string ours_cell = cell("ours");
    const std::string mpi_cell = cell("mpi");
    text += fmt::format("{:>9} {:>8} {:>8} {:>8} {:>8}  {:>8}  {}\n", size_text(o.bytes),
                        memcpy_cell, ours_cell, mpi_cell, cell("ucx"), over, *o.best_of("ours"));
    for (const auto& [name, batches] : o.all) {
      row["ways"][name] = to_thousandths(static_cast<double>(o.bytes) / median(batches));
    }
    rows.push_back(std::move(row));
  }
  text.pop_back();
  result.add_text(text);
  result.add_detail("rpc", "bandwidth", rows);
}

/// Of the sizes that count, the one that does worst against a peer.
void add_worst(report& result, const std::vector<outcome>& outcomes, const std::string& side,
               const std::string& key, const std::string& what, std::optional<double> reach,
               const std::string& why_not) {
  if (!why_not.empty()) return result.add_missing("rpc", key, what, reach, why_not, true);
  const outcome* worst = nullptr;
  comparison pairs;
  for (const outcome& o : outcomes) {
    if (o.bytes < counts_from) continue;
    const comparison next = inverse(compare(o.all, *o.best_of("ours"), *o.best_of(side)));
    if (worst != nullptr && next.ratio_median >= pairs.ratio_median) continue;
    worst = &o;
    pairs = next;
  }
  const auto rate = [&](std::string_view of) {
    return fmt::format("{:.2f} GB/s", worst->rate_of(of));
  };
  result.add_ratio_of({"rpc", key, fmt::format("{} ({})", what, size_text(worst->bytes)),
                       std::nullopt, reach, rate("ours"), rate(side), std::nullopt, 0, true},
                      pairs);
  result.add_detail("rpc", key + "_bytes", worst->bytes);
}

}  // namespace

void add_bandwidth(report& result, worker& ours, const messaging_peers& peers,
                   const settings& chosen) {
  std::vector<outcome> outcomes;
  for (const std::uint64_t bytes : sizes) {
    outcomes.push_back(measure(ours, peers, chosen, bytes));
  }
  add_worst(result, outcomes, "mpi", "bandwidth_over_mpi_worst",
            "bandwidth of calls over MPI's, the worst of 4 KiB to 64 MiB", 1.0, peers.why_no_mpi());
  add_worst(result, outcomes, "ucx", "bandwidth_over_ucx_worst", "the same over UCX's",
            std::nullopt, peers.why_no_ucx());
  add_table(result, outcomes);
}

}  // namespace bench
