// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 btree --workload A --via migrate
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "btree/experiment.hpp"
#include "common/application.hpp"
#include "common/key_file.hpp"
#include "common/random.hpp"

namespace {

struct settings {
  std::string keys = "/usr/share/dict/words";
  std::string layout = "random";
  std::string workload = "A";
  bool integers = false;
  bool in_shared_memory = false;
  apps::btree_options tree;
  apps::run_options run;
  apps::json_report json;
};

std::vector<apps::text_key> to_keys(const std::vector<std::string>& lines, apps::text_key) {
  return {lines.begin(), lines.end()};
}
/// Integers that are as far apart as any: the lines' hashes.
std::vector<std::uint64_t> to_keys(const std::vector<std::string>& lines, std::uint64_t) {
  std::vector<std::uint64_t> keys;
  for (const std::string& line : lines) keys.push_back(apps::hash_text(line));
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

void stop_if(const std::string& wrong) {
  if (!wrong.empty()) throw apps::refusal(1, wrong);
}

template <class Key, class Value, class Tree = apps::btree<Key, Value>>
int run_experiment(settings& s) {
  constexpr std::size_t paper_keys = 10000;
  s.json.open();
  const apps::workload& what = apps::workload_named(s.workload);
  std::vector<Key> keys = to_keys(apps::read_keys(s.keys, apps::text_key::capacity()), Key{});
  if (s.workload == "paper" && keys.size() > paper_keys) {
    // From all over the file.
    for (std::size_t i = 0; i < paper_keys; ++i) keys[i] = keys[i * keys.size() / paper_keys];
    keys.resize(paper_keys);
  }
  const std::size_t records = keys.size();

  apps::experiment<Key, Value, Tree> experiment(std::move(keys), s.tree);
  apps::run_options filling = s.run;
  // By one requester in shared memory, where those of other ranks would only take the pages to and
  // fro.
  if (s.in_shared_memory) filling.requesters = 1;
  const apps::run_result load = experiment.load(filling);
  stop_if(load.wrong);
  const apps::tree_shape shape = experiment.shape();
  const apps::run_result run = experiment.run(what, s.run);
  stop_if(run.wrong);
  experiment.destroy();

  const char* how = apps::name_of(s.run.how, s.in_shared_memory);
  apps::say(s.json.readable(),
            fmt::format("B-link tree of {} keys in {} pages, {} levels, fan-out {}, {} layout\n"
                        "pages on each rank: {}\n"
                        "filled by {} requesters on {} ranks, via {}:\n{}"
                        "workload {} ({}), think {} cycles, via {}:\n{}"
                        "the tree is in order and equals std::map\n",
                        records, shape.pages(), shape.height(), s.tree.fanout, s.layout,
                        fmt::join(shape.pages_on, " "), filling.requesters, sojourn::rank_count(),
                        how, apps::to_text(load.measured), what.name, what.description,
                        s.run.think_cycles, how, apps::to_text(run.measured)));
  s.json.write({{"ranks", sojourn::rank_count()},
                {"keys", records},
                {"fanout", s.tree.fanout},
                {"layout", s.layout},
                {"replicated_levels", s.tree.replicated},
                {"pages_per_level", shape.pages_at},
                {"pages_per_rank", shape.pages_on},
                {"requesters", s.run.requesters},
                {"think_cycles", s.run.think_cycles},
                {"via", how},
                {"workload", what.name},
                {"load", apps::to_json(load.measured)},
                {"figures", apps::to_json(run.measured)}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Fills a B-link tree whose pages lie on all ranks with the keys of a file, and runs a\n"
      "workload on it: YCSB's A to E, or the paper's (10,000 keys). Checked: every answer, the\n"
      "structure of the tree, and that it equals std::map.",
      "btree");
  settings s;
  options.add("--keys", s.keys, "A file of keys, one a line");
  options.add("--fanout", s.tree.fanout, "Most keys or children of a page").between(2, 128);
  options.add("--layout", s.layout, "Where new pages go").one_of({"random", "subtree"});
  options
      .add("--replicated-levels", s.tree.replicated,
           "Levels of pages, from the root down, of which each rank has a copy")
      .between(0, 2);
  options.add("--workload", s.workload, "Mix of operations")
      .one_of({"A", "B", "C", "D", "E", "paper"});
  options.add("--ops", s.run.operations, "Operations of all requesters together")
      .between(std::uint64_t{1}, std::uint64_t{1} << 28);
  options
      .add("--requesters", s.run.requesters, "Requesters in the whole job, spread over the ranks")
      .between(1, 4096);
  options.add("--think", s.run.think_cycles, "Cycles between two requests")
      .between(std::uint64_t{0}, apps::think_cycles_max);
  apps::add_via(options, s.run.how, s.in_shared_memory);
  options.add_flag("--ints", s.integers, "64-bit integers as keys and values, instead of texts");
  s.json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    s.tree.placement = s.layout == "subtree" ? apps::layout::subtree : apps::layout::random;
    if (s.in_shared_memory) {
      if (s.tree.replicated != 0)
        throw apps::refusal(2, "--via shared: nothing is replicated; drop --replicated-levels");
      if (!s.integers) throw apps::refusal(2, "--via shared: of integers alone; add --ints");
      return run_experiment<std::uint64_t, std::uint64_t, apps::shared_tree>(s);
    }
    return s.integers ? run_experiment<std::uint64_t, std::uint64_t>(s)
                      : run_experiment<apps::text_key, apps::text_value>(s);
  });
}
