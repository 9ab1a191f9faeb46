// SPDX-License-Identifier: Apache-2.0
//
// Figure 4 of Thitikamol and Keleher: misses of the data cache and of TLBs, and the number of
// threads.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "driver/shared_paper.hpp"
#include "driver/shared_paper_data.hpp"

namespace bench {
namespace {

constexpr const char* group = shared_group;
using in_paper::thread_counts;
/// By name, in order.
using misses = std::vector<std::pair<std::string, double>>;

/// What of the machine, and perf's name for it.
struct hardware_event {
  const char* name;
  const char* perf;
};
constexpr std::array events{hardware_event{"data cache", "L1-dcache-load-misses"},
                            hardware_event{"data TLB", "dTLB-load-misses"},
                            hardware_event{"instruction TLB", "iTLB-load-misses"}};

/// Of a command and what it starts. Nothing where the machine counts none of the events.
std::optional<misses> by_perf(const temporary_directory& scratch, const arguments& command,
                              const environment& extra) {
  const std::string file = (scratch.path() / "perf").string();
  std::string names;
  for (const hardware_event& e : events) names += (names.empty() ? "" : ",") + std::string(e.perf);
  arguments words{"perf", "stat", "-x", ";", "-o", file, "-e", names, "--"};
  words.insert(words.end(), command.begin(), command.end());
  if (run_and_capture(words, extra).status != 0) return std::nullopt;
  std::map<std::string, double> counted;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string value, unit, name;
    std::getline(fields, value, ';');
    std::getline(fields, unit, ';');
    std::getline(fields, name, ';');
    for (const hardware_event& e : events) {
      if (name.rfind(e.perf, 0) == 0 && !value.empty() && value.front() >= '0' &&
          value.front() <= '9')
        counted[e.name] = std::stod(value);
    }
  }
  misses found;
  for (const hardware_event& e : events) {
    if (counted.contains(e.name)) found.emplace_back(e.name, counted[e.name]);
  }
  return found.empty() ? std::nullopt : std::optional(found);
}

/// Errors: failure when the program does not end well.
misses by_cachegrind(const temporary_directory& scratch, const arguments& command) {
  const std::string file = (scratch.path() / "cachegrind").string();
  arguments words{"valgrind", "--tool=cachegrind", "--cache-sim=yes",
                  "--cachegrind-out-file=" + file, "--log-file=" + file + ".log"};
  words.insert(words.end(), command.begin(), command.end());
  if (const captured run = run_and_capture(words); run.status != 0)
    throw failure(fmt::format("nine ended with status {} under cachegrind", run.status));
  std::map<std::string, double> counted;
  std::vector<std::string> names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string first;
    fields >> first;
    if (first == "events:") {
      for (std::string name; fields >> name;) names.push_back(name);
    } else if (first == "summary:") {
      double value = 0;
      for (const std::string& name : names) {
        if (fields >> value) counted[name] = value;
      }
    }
  }
  return {{"data cache", counted["D1mr"] + counted["D1mw"]},
          {"last-level cache", counted["DLmr"] + counted["DLmw"]},
          {"instruction cache", counted["I1mr"]}};
}

}  // namespace

void add_caches_figure(report& result, const installation& here, const paper_settings& as) {
  const temporary_directory scratch;
  const bool has_perf = in_path("perf") && by_perf(scratch, {"true"}, {}).has_value();
  if (!has_perf && !in_path("valgrind")) {
    result.add_note(
        "shared.figure_4 was not measured: perf counts no cache misses on this machine, and "
        "valgrind is not installed (./dev bench installs it)");
    result.add_detail(group, "figure_4", nullptr);
    return;
  }
  const auto measure = [&](const char* name, int threads) {
    tell_progress(fmt::format("shared: cache misses of {}, {} threads", name, threads));
    const std::string count = std::to_string(threads);
    if (!has_perf) {
      return by_cachegrind(scratch, {here.program("nine"), name, "--here", "--threads", count});
    }
    const auto found =
        by_perf(scratch,
                {here.program("sojourn"), "run", "-n", std::to_string(as.ranks), "--no-bind",
                 here.program("nine"), name, "--threads", count, "--size", as.size},
                {{"SOJOURN_DELAY", as.delay}});
    if (!found) throw failure("nine did not end well under perf");
    return *found;
  };
  std::string text =
      has_perf ? fmt::format(
                     "Figure 4: misses under lmw by perf, {} size, {} ranks, over those of one "
                     "thread a rank",
                     as.size, as.ranks)
               : std::string(
                     "Figure 4: misses by cachegrind over those of one thread, small size. perf "
                     "counts none on this\nmachine, and valgrind runs no faults of shared memory: "
                     "so these are the threads of one process,\nwhich take turns on one core. Of "
                     "TLBs cachegrind knows nothing.");
  nlohmann::json rows = nlohmann::json::array();
  bar_chart chart{has_perf ? "Figure 4: cache and TLB misses, eight threads over one"
                           : "Figure 4: cache misses, eight threads over one",
                  "over those of one thread",
                  {"misses"},
                  {}};
  bool is_first = true;
  for (const nine_application& a : as.applications) {
    misses one;
    bar_group bars{a.name, {}};
    for (const int threads : thread_counts) {
      const misses found = measure(a.name, threads);
      if (is_first) {
        text += fmt::format("\n{:<14} {:>2}", "", "T");
        for (const auto& [name, value] : found) text += fmt::format(" {:>26}", name);
        is_first = false;
      }
      if (threads == 1) one = found;
      text += fmt::format("\n{:<14} {:>2}", threads == 1 ? a.name : "", threads);
      nlohmann::json row{{"application", a.name}, {"threads", threads}};
      for (std::size_t i = 0; i < found.size() && i < one.size(); ++i) {
        const double over = one[i].second == 0 ? 0 : found[i].second / one[i].second;
        text += fmt::format(" {:>26}", fmt::format("{:.0f} ({:.2f})", found[i].second, over));
        row[found[i].first] = found[i].second;
        if (threads == thread_counts.back())
          bars.bars.push_back({std::string(1, found[i].first.front()), {over}});
      }
      rows.push_back(row);
    }
    chart.groups.push_back(bars);
  }
  text +=
      "\nThe paper gives no numbers: misses mostly grow with the number of threads, of Ocean much; "
      "WaterSp\nhas fewer TLB misses with four threads than with one.";
  result.add_text(text);
  result.add_detail(group, "figure_4", rows);
  result.add_detail(group, "figure_4_by", has_perf ? "perf" : "cachegrind");
  write_svg(as.figures / "shared_figure_4.svg", chart);
}

}  // namespace bench
