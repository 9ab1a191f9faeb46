// SPDX-License-Identifier: Apache-2.0
//
// The distributed B-tree of Hsieh, Wang and Weihl (1993): their Tables 1 to 4, and the tree with
// fan-out 10 that their text tells of. 10,000 keys, 16 requesters, pages placed at random.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "driver/benchmarks.hpp"

namespace bench {
namespace {

constexpr int requesters = 16;
constexpr double word_bytes = 4;  // of the paper's machine

/// What the paper gives for a scheme without hardware support, in operations each 1,000 cycles and
/// in words each 10; 0 where it gives nothing. Its shared memory and its replicated root are not
/// there in ours.
struct scheme {
  const char* name;
  const char* via;  ///< Ours, or empty.
  double throughput;
  double bandwidth;
};
struct table {
  const char* title;
  int think;
  int fanout;
  std::array<scheme, 5> schemes;
};
constexpr std::array<table, 3> tables{{{"Tables 1 and 2: no think time, fan-out 100",
                                        0,
                                        100,
                                        {{{"SM", "", 1.837, 75},
                                          {"RPC", "rpc", 0.3828, 7.3},
                                          {"RPC w/repl.", "", 0.6060, 7.0},
                                          {"CP", "migrate", 0.8018, 3.5},
                                          {"CP w/repl.", "", 1.155, 3.8}}}},
                                       {"Tables 3 and 4: think time 10,000 cycles, fan-out 100",
                                        10'000,
                                        100,
                                        {{{"SM", "", 1.071, 16},
                                          {"RPC", "rpc", 0, 0},
                                          {"RPC w/repl.", "", 0, 0},
                                          {"CP", "migrate", 0, 0},
                                          {"CP w/repl.", "", 0.9816, 2.5}}}},
                                       {"In the text: no think time, fan-out 10",
                                        0,
                                        10,
                                        {{{"SM", "", 2.427, 0},
                                          {"RPC", "rpc", 0, 0},
                                          {"RPC w/repl.", "", 0, 0},
                                          {"CP", "migrate", 0, 0},
                                          {"CP w/repl.", "", 2.076, 0}}}}}};

/// A run, or the medians of several.
struct outcome {
  double operations_a_second = 0;
  double bytes_an_operation = 0;
  double messages_an_operation = 0;
};

outcome run_once(const installation& here, const temporary_directory& scratch, const table& t,
                 const char* via, const settings& chosen) {
  const std::string keys = (scratch.path() / "keys").string();
  const std::string file = (scratch.path() / "figures.json").string();
  arguments words = here.job(2, "btree");
  for (const std::string& word :
       {std::string("--keys"), keys, std::string("--workload"), std::string("paper"),
        std::string("--requesters"), std::to_string(requesters), std::string("--think"),
        std::to_string(t.think), std::string("--fanout"), std::to_string(t.fanout),
        std::string("--via"), std::string(via), std::string("--ops"),
        std::string(chosen.work.quick ? "5000" : "100000"), std::string("--json"), file}) {
    words.push_back(word);
  }
  if (const captured run = run_and_capture(words); run.status != 0) {
    throw failure(fmt::format("btree ended with status {}", run.status));
  }
  std::ifstream in(file);
  const nlohmann::json figures = nlohmann::json::parse(in).at("figures");
  return {figures.at("operations_per_second"), figures.at("bytes_per_operation"),
          figures.at("messages_per_operation")};
}

/// 10,000 keys, the same on any machine.
void write_keys(const temporary_directory& scratch) {
  std::ofstream out(scratch.path() / "keys");
  std::uint64_t state = 1;
  for (int i = 0; i < 10'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out << fmt::format("{:016x}\n", state);
  }
}

std::string or_dash(double value) { return value == 0 ? "-" : fmt::format("{:.4g}", value); }

}  // namespace

void add_btree_tables(report& result, const installation& here, const settings& chosen,
                      double ticks_a_ns) {
  if (!here.has("btree")) {
    result.add_note("Tables 1 to 4 of the paper were not measured: btree was not built.");
    return;
  }
  const temporary_directory scratch;
  write_keys(scratch);
  const int runs = chosen.work.quick ? 1 : 5;
  std::string text = fmt::format(
      "B-tree of 10,000 keys, {} requesters on 2 ranks (the paper: 16 on 64 processors)\n"
      "{:<12} {:>18} {:>18}   {:>10} {:>14} {:>14} {:>10}\n{:<12} {:>18} {:>18}   {:>10} {:>14} "
      "{:>14} {:>10}\n",
      requesters, "", "the paper's", "the paper's", "Sojourn", "", "", "messages", "scheme",
      "ops/1000 cycles", "words/10 cycles", "ops/s", "ops/1000 ticks", "words/10 ticks", "an op");
  nlohmann::json rows = nlohmann::json::array();
  for (const table& t : tables) {
    tell_progress(
        fmt::format("migrate: the paper's B-tree, think {}, fan-out {}", t.think, t.fanout));
    // The policies take turns.
    std::array<std::vector<double>, 5> rates;
    std::array<outcome, 5> last;
    for (int run = 0; run < runs; ++run) {
      for (std::size_t s = 0; s < t.schemes.size(); ++s) {
        if (*t.schemes[s].via == '\0') continue;
        last[s] = run_once(here, scratch, t, t.schemes[s].via, chosen);
        rates[s].push_back(last[s].operations_a_second);
      }
    }
    text += fmt::format("{}\n", t.title);
    for (std::size_t s = 0; s < t.schemes.size(); ++s) {
      const scheme& of_paper = t.schemes[s];
      if (rates[s].empty() && of_paper.throughput == 0) continue;
      nlohmann::json row = {
          {"think_cycles", t.think}, {"fanout", t.fanout}, {"scheme", of_paper.name}};
      if (of_paper.throughput != 0) row["paper_ops_per_1000_cycles"] = of_paper.throughput;
      if (of_paper.bandwidth != 0) row["paper_words_per_10_cycles"] = of_paper.bandwidth;
      std::string ours = fmt::format("{:>10} {:>14} {:>14} {:>10}", "-", "-", "-", "-");
      if (!rates[s].empty()) {
        const double a_second = median(rates[s]);
        const double a_tick = a_second / (ticks_a_ns * 1e9);
        const double words_a_tick = a_tick * last[s].bytes_an_operation / word_bytes;
        ours = fmt::format("{:>10.0f} {:>14.4f} {:>14.4f} {:>10.2f}", a_second, a_tick * 1000,
                           words_a_tick * 10, last[s].messages_an_operation);
        row["via"] = of_paper.via;
        row["ops_per_second"] = a_second;
        row["ops_per_1000_ticks"] = a_tick * 1000;
        row["words_per_10_ticks"] = words_a_tick * 10;
        row["messages_per_operation"] = last[s].messages_an_operation;
      }
      text += fmt::format("{:<12} {:>18} {:>18}   {}\n", of_paper.name,
                          or_dash(of_paper.throughput), or_dash(of_paper.bandwidth), ours);
      rows.push_back(std::move(row));
    }
  }
  text +=
      "A word has 4 bytes. CP: by migration. The paper's shared memory (SM) and replicated root "
      "(repl.) are not built.";
  result.add_text(text);
  result.add_detail("migrate", "tables_1_to_4", rows);
}

}  // namespace bench
