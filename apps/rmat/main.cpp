// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 rmat --form triangles
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "common/application.hpp"
#include "rmat/forms.hpp"

namespace {

using namespace apps::rmat;

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// The same by one process.
result run_alone(const std::string& form, const serial_graph& graph, vertex hub) {
  result r;
  std::vector<std::uint32_t> values;
  const auto start = std::chrono::steady_clock::now();
  if (form == "bfs") {
    values = search_alone(graph, hub);
  } else if (form == "components") {
    values = components_alone(graph);
  } else {
    r.number = triangles_alone(graph);
  }
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  r.all = summary(values);
  if (form == "bfs") r.number = r.all.found;
  for (vertex v = 0; form == "components" && v < values.size(); ++v) r.number += values[v] == v;
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Searches a random graph of 2^scale vertices (R-MAT, as in Graph500), which lies in a\n"
      "dist_graph. --form says what for: bfs, the vertices that are reached from one of them,\n"
      "level by level; components, the parts that hang together; triangles, how many there are.\n"
      "Every run is checked against a loop in one process, which is timed, too.",
      "rmat");
  settings chosen;
  std::string form = "bfs";
  apps::json_report json;
  options.add("--form", form, "bfs, components or triangles")
      .one_of({"bfs", "components", "triangles"});
  options.add("--scale", chosen.scale, "The graph has 2^scale vertices").between(1u, 28u);
  options.add("--degree", chosen.degree, "Edges for each vertex, of which some are equal or loops")
      .between(1u, 1024u);
  options.add("--repeats", chosen.repeats, "How often it is done; the median counts")
      .between(1u, 1000u);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const int ranks = sojourn::rank_count();
    const vertex hub = hub_of(chosen);
    const std::uint64_t start_ns = sojourn::now_ns();
    const graph_type graph = make_graph(chosen);
    const double build_seconds = static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9;
    const std::size_t arcs = graph.arcs_all();
    const auto run = [&] {
      return form == "bfs"          ? run_search(graph, hub)
             : form == "components" ? run_components(graph)
                                    : run_triangles(graph);
    };
    std::vector<double> times;
    result r;
    for (unsigned i = 0; i < chosen.repeats; ++i) {
      r = run();
      times.push_back(r.seconds);
    }
    const double seconds = median(times);

    double seconds_alone = 0;
    bool wrong = false;
    if (sojourn::rank_me() == 0) {
      const serial_graph serial(chosen);
      wrong = serial.arcs() != arcs;
      std::vector<double> alone;
      for (unsigned i = 0; i < chosen.repeats; ++i) {
        const result expected = run_alone(form, serial, hub);
        wrong = wrong || expected.number != r.number || expected.all != r.all;
        alone.push_back(expected.seconds);
      }
      seconds_alone = median(alone);
    }
    if (sojourn::broadcast(wrong)) throw apps::refusal(1, "a loop in one process finds otherwise");
    const char* const what = form == "bfs"          ? "vertices reached"
                             : form == "components" ? "components"
                                                    : "triangles";
    apps::say(json.readable(),
              fmt::format("rmat, {}: 2^{} vertices, {} arcs, {} {}, on {} ranks; as a loop finds\n"
                          "{:.3f} ms, {:.3f} ms in one loop; {:.0f} ms to make the graph; {} "
                          "messages of {} bytes\n",
                          form, chosen.scale, arcs, r.number, what, ranks, seconds * 1e3,
                          seconds_alone * 1e3, build_seconds * 1e3, r.spent.messages(),
                          r.spent.messages() == 0 ? 0 : r.spent.bytes() / r.spent.messages()));
    json.write({{"form", form},
                {"ranks", ranks},
                {"scale", chosen.scale},
                {"arcs", arcs},
                {"number", r.number},
                {"seconds", seconds},
                {"seconds_alone", seconds_alone},
                {"seconds_build", build_seconds},
                {"messages", r.spent.messages()},
                {"bytes", r.spent.bytes()}});
    graph.destroy_all();
    return 0;
  });
}
