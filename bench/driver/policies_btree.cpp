// SPDX-License-Identifier: Apache-2.0
//
// The distributed B-tree of Hsieh, Wang and Weihl under each word: their Tables 1 to 4.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "driver/policies.hpp"
#include "driver/policies_paper.hpp"

namespace bench {
namespace {

using in_paper::scheme;

/// 10,000 keys, the same on any machine.
void write_keys(const std::string& file) {
  std::ofstream out(file);
  std::uint64_t state = 1;
  for (int i = 0; i < 10'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out << fmt::format("{:016x}\n", state);
  }
}

std::string or_dash(double value) { return value == 0 ? "-" : fmt::format("{:.4g}", value); }

/// What the paper has, and after it what only we have.
std::vector<scheme> lines_of(const in_paper::btree_table& table,
                             const std::vector<policy_row>& rows) {
  std::vector<scheme> lines = table.schemes;
  for (const policy_row& row : rows) {
    const auto stands_beside = [&](const scheme& s) { return row.name == s.row; };
    if (std::ranges::none_of(lines, stands_beside)) lines.push_back({"", row.name.c_str(), 0, 0});
  }
  return lines;
}

std::string line_of_ours(const policy_runs& runs, int ranks, double ticks_a_ns) {
  const double a_tick = runs.per_second() / (ticks_a_ns * 1e9);
  const auto hits = runs.hit_rate();
  return fmt::format(
      "{:<26} {:>5} {:>10.0f} ({:>8.0f} to {:>8.0f}) {:>10.4f} {:>10.4f} {:>9.2f} "
      "{:>9.1f} {:>6}",
      runs.row, ranks, runs.per_second(), runs.per_second(0.25), runs.per_second(0.75),
      a_tick * 1000, a_tick * runs.words() * 10, runs.messages(), runs.words(),
      hits ? fmt::format("{:.1f}%", *hits * 100) : "-");
}

}  // namespace

void add_policies_btree(report& result, const installation& here, const policy_plan& plan,
                        double ticks_a_ns, automatic_choices& choices) {
  const temporary_directory scratch;
  const std::string keys = (scratch.path() / "keys").string();
  write_keys(keys);
  std::string text = fmt::format(
      "B-tree of 10,000 keys, pages placed at random, 16 requesters; medians of {} rounds (more "
      "than 4 ranks: 5 at most), and "
      "quartiles of the operations a second\n"
      "{:<17} {:>9} {:>8}   {:<26} {:>5} {:>10} {:>22} {:>10} {:>10} {:>9} {:>9} {:>6}\n"
      "{:<17} {:>9} {:>8}   {:<26} {:>5} {:>10} {:>22} {:>10} {:>10} {:>9} {:>9} {:>6}\n",
      plan.rounds, "the paper's", "ops/1000", "words/10", "ours", "ranks", "ops/s", "", "ops/1000",
      "words/10", "messages", "words", "hits", "", "cycles", "cycles", "", "", "", "", "ticks",
      "ticks", "an op", "an op", "");
  nlohmann::json rows = nlohmann::json::array();
  // On any number of ranks as many, because they let the tree grow.
  const std::uint64_t operations = plan.quick ? 5'000 : 10'000;
  for (const in_paper::btree_table& table : in_paper::btree_tables) {
    std::vector<std::vector<policy_runs>> by_ranks;
    policy_program tree{"btree",
                        {"--keys", keys, "--ints", "--workload", "paper", "--think",
                         std::to_string(table.think), "--fanout", std::to_string(table.fanout)},
                        policy_rows(true, operations)};
    for (const char* word : {"rpc", "migrate"}) {
      tree.rows.push_back({fmt::format("{} + replicated root", word),
                           {"--via", word, "--replicated-levels", "1"},
                           operations});
    }
    for (const int ranks : plan.ranks) {
      tell_progress(fmt::format("policies: B-tree, think {}, fan-out {}, {} ranks", table.think,
                                table.fanout, ranks));
      by_ranks.push_back(run_in_turns(here, tree, ranks, plan.rounds_on(ranks)));
      if (ranks == plan.ranks.front())
        choices.add(fmt::format("btree, think {}, fan-out {}", table.think, table.fanout),
                    by_ranks.back());
    }
    text += fmt::format("{}\n", table.title);
    for (const scheme& line : lines_of(table, tree.rows)) {
      std::string paper = fmt::format("{:<17} {:>9} {:>8}", line.name, or_dash(line.throughput),
                                      or_dash(line.bandwidth));
      bool has_ours = false;
      for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
        const policy_runs* ours = find_row(by_ranks[r], line.row);
        if (ours == nullptr) continue;
        text += fmt::format("{}   {}\n", paper, line_of_ours(*ours, plan.ranks[r], ticks_a_ns));
        paper = fmt::format("{:<17} {:>9} {:>8}", "", "", "");
        has_ours = true;
        nlohmann::json row = json_of(*ours, plan.ranks[r]);
        row["think_cycles"] = table.think;
        row["fanout"] = table.fanout;
        row["operations_per_1000_ticks"] = ours->per_second() / (ticks_a_ns * 1e6);
        if (*line.name != '\0') row["paper_scheme"] = line.name;
        if (line.throughput != 0) row["paper_operations_per_1000_cycles"] = line.throughput;
        if (line.bandwidth != 0) row["paper_words_per_10_cycles"] = line.bandwidth;
        rows.push_back(std::move(row));
      }
      if (!has_ours) text += fmt::format("{}   -\n", paper);
    }
    if (table.fanout == 10 && table.think == 0) {
      const policy_runs* rpc = find_row(by_ranks.back(), "rpc");
      const policy_runs* migrate = find_row(by_ranks.back(), "migrate");
      result.add_value(
          {policies_group, "rpc_messages_over_migrate",
           fmt::format("B-tree, fan-out 10, {} ranks: messages an op, rpc over migrate",
                       plan.ranks.back()),
           to_thousandths(rpc->messages() / migrate->messages()), 1.8,
           fmt::format("{:.2f}", rpc->messages()), fmt::format("{:.2f}", migrate->messages()),
           std::nullopt, 0, true});
      const policy_runs* called = find_row(by_ranks.back(), "rpc + replicated root");
      const policy_runs* moved = find_row(by_ranks.back(), "migrate + replicated root");
      result.add_value({policies_group, "rpc_messages_over_migrate_replicated_root",
                        "the same, both with a replicated root",
                        to_thousandths(called->messages() / moved->messages()), std::nullopt,
                        fmt::format("{:.2f}", called->messages()),
                        fmt::format("{:.2f}", moved->messages()), std::nullopt, 0, true});
    }
  }
  text +=
      "A word has 4 bytes, headers are counted; keys and values have 8 bytes. Ticks are those of "
      "the time-stamp\ncounter. CP: migration; SM: the paper's shared memory in hardware, beside "
      "which ours is in pages of 4 KiB,\nof which a node has one, and makes a twentieth of the "
      "operations (shared); HW, hardware: messages by hardware.\nA page of the tree has room for "
      "128 entries, whatever the fan-out, and is copied as a whole (cache).";
  result.add_text(text);
  result.add_detail(policies_group, "tables_1_to_4", rows);
}

}  // namespace bench
