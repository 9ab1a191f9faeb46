// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "driver/benchmarks.hpp"
#include "driver/svg_chart.hpp"

namespace bench {
namespace {

constexpr std::array<int, 5> requester_counts{8, 16, 32, 48, 64};
constexpr std::array<int, 2> think_times{0, 10'000};
constexpr std::array<const char*, 2> policies{"rpc", "migrate"};
constexpr int balancer_count = 24;  // More ranks than balancers would have none.

/// One run of the network, or the medians of several.
struct outcome {
  double requests_a_second = 0;
  double bytes_a_request = 0;
  double messages_a_request = 0;
  double bytes_a_second() const { return requests_a_second * bytes_a_request; }
};

struct curve_point {
  int think = 0;
  int requesters = 0;
  std::array<outcome, policies.size()> by_policy;
};

int ranks_for_this_host() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return std::clamp(CPU_COUNT(&cores), 2, balancer_count);
}

outcome run_network(const installation& here, const temporary_directory& scratch, int ranks,
                    int requesters, int think, const std::string& policy, int requests) {
  const std::string file = (scratch.path() / "figures.json").string();
  arguments words = here.job(ranks, "counting_network");
  for (const std::string& word :
       {std::string("--requesters"), std::to_string(requesters), std::string("--requests"),
        std::to_string(requests), std::string("--think"), std::to_string(think),
        std::string("--via"), policy, std::string("--json"), file})
    words.push_back(word);
  const captured run = run_and_capture(words);
  if (run.status != 0)
    throw failure(fmt::format("counting_network ended with status {}", run.status));
  std::ifstream in(file);
  const nlohmann::json figures = nlohmann::json::parse(in).at("figures");
  return {figures.at("operations_per_second"), figures.at("bytes_per_operation"),
          figures.at("messages_per_operation")};
}

/// The policies take turns, so that each round of both sees the same machine.
curve_point measure_point(const installation& here, const temporary_directory& scratch, int ranks,
                          int requesters, int think, const settings& chosen) {
  const int runs = chosen.work.quick ? 1 : 3;
  const int requests = chosen.work.quick ? 2'000 : 40'000;
  std::array<std::vector<outcome>, policies.size()> all;
  for (int run = 0; run < runs; ++run)
    for (std::size_t p = 0; p < policies.size(); ++p)
      all[p].push_back(run_network(here, scratch, ranks, requesters, think, policies[p], requests));
  curve_point point{think, requesters, {}};
  for (std::size_t p = 0; p < policies.size(); ++p) {
    std::sort(all[p].begin(), all[p].end(), [](const outcome& a, const outcome& b) {
      return a.requests_a_second < b.requests_a_second;
    });
    point.by_policy[p] = all[p][all[p].size() / 2];
  }
  return point;
}

std::string table_of(const std::vector<curve_point>& points, int ranks) {
  std::string text = fmt::format(
      "Counting network, {} ranks: throughput and bandwidth (the paper's Figures 2 and 3)\n"
      "{:>7} {:>11}  {:>12} {:>12}  {:>10} {:>10}  {:>9} {:>9}\n"
      "{:>7} {:>11}  {:>12} {:>12}  {:>10} {:>10}  {:>9} {:>9}\n",
      ranks, "think", "", "requests/s", "", "MB/s", "", "messages", "a request", "cycles",
      "requesters", "rpc", "migrate", "rpc", "migrate", "rpc", "migrate");
  for (const curve_point& at : points) {
    const auto& [rpc, migrate] = at.by_policy;
    text += fmt::format(
        "{:>7} {:>11}  {:>12.0f} {:>12.0f}  {:>10.1f} {:>10.1f}  {:>9.2f} {:>9.2f}\n", at.think,
        at.requesters, rpc.requests_a_second, migrate.requests_a_second, rpc.bytes_a_second() / 1e6,
        migrate.bytes_a_second() / 1e6, rpc.messages_a_request, migrate.messages_a_request);
  }
  return text;
}

template <class Value>
chart chart_of(const std::vector<curve_point>& points, int think, const char* title,
               const char* y_label, Value value) {
  chart result{fmt::format("{}, think time {} cycles", title, think), "requesters", y_label, {}};
  for (std::size_t p = 0; p < policies.size(); ++p) {
    series line{policies[p], {}};
    for (const curve_point& at : points)
      if (at.think == think) line.points.emplace_back(at.requesters, value(at.by_policy[p]));
    result.lines.push_back(line);
  }
  return result;
}

/// Returns the names of the files written.
std::vector<std::string> draw(const std::vector<curve_point>& points,
                              const std::filesystem::path& folder) {
  std::vector<std::string> files;
  const auto write = [&](const std::string& name, const chart& what) {
    write_svg(folder / name, what);
    files.push_back((folder / name).string());
  };
  for (const int think : think_times) {
    write(fmt::format("figure_2_throughput_think_{}.svg", think),
          chart_of(points, think, "Counting network, throughput", "requests a millisecond",
                   [](const outcome& o) { return o.requests_a_second / 1e3; }));
    write(fmt::format("figure_3_bandwidth_think_{}.svg", think),
          chart_of(points, think, "Counting network, bandwidth", "MB a second",
                   [](const outcome& o) { return o.bytes_a_second() / 1e6; }));
  }
  return files;
}

nlohmann::json json_of(const std::vector<curve_point>& points) {
  nlohmann::json rows = nlohmann::json::array();
  for (const curve_point& at : points) {
    for (std::size_t p = 0; p < policies.size(); ++p)
      rows.push_back({{"think_cycles", at.think},
                      {"requesters", at.requesters},
                      {"via", policies[p]},
                      {"requests_per_second", at.by_policy[p].requests_a_second},
                      {"bytes_per_second", at.by_policy[p].bytes_a_second()},
                      {"messages_per_request", at.by_policy[p].messages_a_request}});
  }
  return rows;
}

}  // namespace

void add_network_figures(report& result, const installation& here, const settings& chosen) {
  if (!here.has("counting_network")) {
    result.add_text("Figures 2 and 3 were not measured: counting_network was not built.");
    return;
  }
  const temporary_directory scratch;
  const int ranks = ranks_for_this_host();
  std::vector<curve_point> points;
  for (const int think : think_times) {
    for (const int requesters : requester_counts) {
      tell_progress(
          fmt::format("migrate: counting network, think {}, {} requesters", think, requesters));
      points.push_back(measure_point(here, scratch, ranks, requesters, think, chosen));
    }
  }
  std::string text = table_of(points, ranks);
  for (const std::string& file : draw(points, chosen.figures)) text += "written: " + file + "\n";
  text.pop_back();
  result.add_text(text);
  result.add_detail("migrate", "network", json_of(points));
}

}  // namespace bench
