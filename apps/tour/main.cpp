// SPDX-License-Identifier: Apache-2.0
// The tour: the same programs, reaching remote objects by calls and by migration, side by side.
//   sojourn run -n 4 tour
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "btree/experiment.hpp"
#include "common/application.hpp"
#include "common/key_file.hpp"
#include "common/progress.hpp"
#include "common/race.hpp"
#include "counting_network/counting_network.hpp"

namespace {

using sojourn::via;
using text_experiment = apps::experiment<apps::text_key, apps::text_value>;

struct settings {
  std::string keys = "/usr/share/dict/words";
  std::string layout = "random";
  apps::btree_options tree;
  int requesters = 16;
  int rounds = 9;
  std::uint64_t operations = 0;  ///< In each run; 0: as many as take a fifth of a second.
  apps::json_report json;
};

constexpr double run_seconds = 0.2;
/// Further rounds are left out after this time, three being enough for a median.
constexpr double budget_seconds = 35;

struct stage {
  const char* name;
  const char* key;  ///< In the JSON report.
  const char* about;
  apps::race race;
  std::uint64_t operations = 0;
};
enum : std::size_t { ycsb_c, ycsb_a, counting };

class tour {
 public:
  explicit tour(settings& s) : settings_(s) {}

  int run() {
    settings_.json.open();
    progress_.now("reading the keys");
    const auto lines = apps::read_keys(settings_.keys, apps::text_key::capacity());
    text_experiment tree({lines.begin(), lines.end()}, settings_.tree);
    progress_.now(fmt::format("filling the tree with {} keys", lines.size()));
    const apps::run_result filled = tree.load({.requesters = settings_.requesters});
    stop_if(filled.wrong);
    for (std::size_t i = 0; i < stages_.size(); ++i) choose_operations(tree, i);
    for (int round = 0; round < settings_.rounds && !late(round); ++round) {
      for (std::size_t i = 0; i < stages_.size(); ++i) run_round(tree, i, round);
    }
    apps::say(settings_.json.readable(), table(filled.measured, tree.shape()));
    settings_.json.write(report(lines.size(), filled.measured));
    tree.destroy();
    return 0;
  }

 private:
  static void stop_if(const std::string& wrong) {
    if (!wrong.empty()) throw apps::refusal(1, wrong);
  }

  /// One run; every run is checked.
  apps::figures measure(text_experiment& tree, std::size_t i, via how, std::uint64_t operations) {
    if (i == counting) {
      const apps::counting_result result = apps::run_counting(
          {.requesters = settings_.requesters, .requests = operations, .how = how});
      stop_if(result.wrong);
      return result.measured;
    }
    const apps::run_result result =
        tree.run(apps::workload_named(i == ycsb_a ? "A" : "C"),
                 {.requesters = settings_.requesters, .operations = operations, .how = how});
    stop_if(result.wrong);
    return result.measured;
  }

  /// A short run each way tells how much one of the wanted length does; it also warms up.
  void choose_operations(text_experiment& tree, std::size_t i) {
    constexpr std::uint64_t trial = 2000;
    progress_.now(fmt::format("trying {}", stages_[i].name));
    const apps::figures by_rpc = measure(tree, i, via::rpc, trial);
    const apps::figures by_migration = measure(tree, i, via::migrate, trial);
    const double seconds = (by_rpc.seconds + by_migration.seconds) / 2;
    const auto enough = static_cast<std::uint64_t>(trial * run_seconds / seconds);
    stages_[i].operations = settings_.operations > 0
                                ? settings_.operations
                                : std::clamp<std::uint64_t>(enough, trial, 1'000'000);
  }

  void run_round(text_experiment& tree, std::size_t i, int round) {
    stage& s = stages_[i];
    progress_.now(fmt::format("round {} of {}: {}", round + 1, settings_.rounds, s.name));
    // Each way goes first as often as the other.
    const bool rpc_first = round % 2 == 0;
    apps::figures one = measure(tree, i, rpc_first ? via::rpc : via::migrate, s.operations);
    apps::figures other = measure(tree, i, rpc_first ? via::migrate : via::rpc, s.operations);
    if (!rpc_first) std::swap(one, other);
    s.race.add(one, other);
  }

  /// All ranks have to come to the same answer.
  bool late(int round) const {
    return sojourn::broadcast(round >= 3 && progress_.elapsed_seconds() > budget_seconds);
  }

  static const char* winner(const apps::race& r) {
    switch (r.who()) {
      case apps::race::winner::first:
        return "rpc";
      case apps::race::winner::second:
        return "migrate";
      default:
        return "tie";
    }
  }

  std::string table(const apps::figures& filled, const apps::tree_shape& shape) const {
    std::string text = fmt::format(
        "\n{} ranks, {} requesters; a B-link tree of {} keys in {} pages ({} levels, fan-out {}, "
        "{}\n"
        "layout), filled by migration at {:.0f} inserts a second; medians of {} rounds, all "
        "checked\n"
        "\n{:<17}{:<9}{:>12}{:>14}{:>11}{:>10}{:>10}   {}\n",
        sojourn::rank_count(), settings_.requesters, shape.keys, shape.pages(), shape.height(),
        settings_.tree.fanout, settings_.layout, filled.per_second(), stages_[0].race.rounds(), "",
        "via", "operations/s", "messages/op", "bytes/op", "p50 us", "p99 us", "better");
    for (const stage& s : stages_) {
      const std::string who = winner(s.race);
      const double ratio = who == "rpc" ? 1 / s.race.ratio() : s.race.ratio();
      const std::string better = who == "tie" ? "tie" : fmt::format("{}, {:.2f} times", who, ratio);
      text += row(s.name, "rpc", s.race.first(), who == "rpc" ? better : "");
      text += row(s.about, "migrate", s.race.second(), who == "rpc" ? "" : better);
    }
    return text + "\n";
  }

  static std::string row(const char* name, const char* how, const apps::figures& f,
                         const std::string& better) {
    const std::string line =
        fmt::format("{:<17}{:<9}{:>12.0f}{:>14.2f}{:>11.0f}{:>10.1f}{:>10.1f}   {}", name, how,
                    f.per_second(), f.messages_each(), f.bytes_each(), f.p50_us, f.p99_us, better);
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  nlohmann::ordered_json report(std::size_t keys, const apps::figures& filled) const {
    nlohmann::ordered_json stages;
    for (const stage& s : stages_) {
      stages[s.key] = {{"rpc", apps::to_json(s.race.first())},
                       {"migrate", apps::to_json(s.race.second())},
                       {"migrate_over_rpc", s.race.ratio()},
                       {"better", winner(s.race)}};
    }
    return {{"ranks", sojourn::rank_count()},
            {"requesters", settings_.requesters},
            {"keys", keys},
            {"fanout", settings_.tree.fanout},
            {"layout", settings_.layout},
            {"rounds", stages_[0].race.rounds()},
            {"seconds", std::round(progress_.elapsed_seconds() * 1000) / 1000},
            {"fill", apps::to_json(filled)},
            {"stages", stages}};
  }

  settings& settings_;
  apps::progress progress_{"tour"};
  std::array<stage, 3> stages_{{
      {"YCSB C", "ycsb_c", "  all reads", {}, 0},
      {"YCSB A", "ycsb_a", "  half updates", {}, 0},
      {"counting", "counting_network", "  network 8x8", {}, 0},
  }};
};

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Fills a B-link tree with the keys of a file, runs YCSB C and A on it and draws numbers from "
      "a\n"
      "counting network: each by remote calls and by migration, in turns. Prints one table.",
      "tour");
  settings s;
  options.add("--keys", s.keys, "A file of keys, one a line");
  options.add("--ops", s.operations, "Operations of each run")
      .between(std::uint64_t{1}, std::uint64_t{1} << 28)
      .default_text("as many as take 0.2 s");
  options.add("--requesters", s.requesters, "Requesters in the whole job, spread over the ranks")
      .between(1, 4096);
  options.add("--rounds", s.rounds, "Runs each way").between(1, 1000);
  options.add("--fanout", s.tree.fanout, "Most keys or children of a page").between(2, 128);
  options.add("--layout", s.layout, "Where new pages go").one_of({"random", "subtree"});
  s.json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    s.tree.placement = s.layout == "subtree" ? apps::layout::subtree : apps::layout::random;
    return tour(s).run();
  });
}
