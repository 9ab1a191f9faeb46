// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 graph_walk --via migrate
//
// Random walks on a skewed graph: few vertices are the ends of many edges. Each walk counts where
// it ends, as for page rank by simulation.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "common/requests.hpp"
#include "common/zipf.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

class vertex {
 public:
  static constexpr std::size_t edges_max = 16;

  void connect(global_ptr<vertex> to) { edges_[degree_++] = to; }
  std::uint64_t degree() const { return degree_; }
  global_ptr<vertex> edge(std::uint64_t i) const { return edges_[i]; }
  void end_here() { ++walks_; }
  std::uint64_t walks() const { return walks_; }

 private:
  std::uint64_t degree_ = 0;
  std::array<global_ptr<vertex>, edges_max> edges_{};
  std::uint64_t walks_ = 0;
};

/// Which edge a walk takes at its step number `step`.
std::uint64_t choice(std::uint64_t seed, int step, std::uint64_t degree) {
  return apps::mix64(seed + static_cast<std::uint64_t>(step)) % degree;
}

/// Returns where it ends.
global_ptr<vertex> walk(global_ptr<vertex> at, int steps, std::uint64_t seed, via how) {
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t degree = at.call<&vertex::degree>(how);
    at = at.call<&vertex::edge>(how, choice(seed, step, degree));
  }
  at.call<&vertex::end_here>(how);
  return at;
}

/// The same graph on every rank, as numbers.
class plan {
 public:
  explicit plan(std::uint64_t vertices) : popularity_(vertices) {}

  std::uint64_t degree(std::uint64_t v) const {
    apps::random_source random(v);
    return 1 + random.below(vertex::edges_max);
  }
  std::uint64_t edge(std::uint64_t v, std::uint64_t i) const {
    apps::random_source random(v * vertex::edges_max + i + 1);
    return popularity_.draw_scrambled(random);
  }
  std::uint64_t end_of_walk(std::uint64_t at, int steps, std::uint64_t seed) const {
    for (int step = 0; step < steps; ++step) at = edge(at, choice(seed, step, degree(at)));
    return at;
  }

 private:
  apps::zipf popularity_;
};

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Random walks on a graph whose vertices are dealt out to the ranks, and of which few have\n"
      "most of the edges that come in. Checked: each walk ends where a walk on one rank does.",
      "graph_walk");
  apps::requests requests(5'000);
  std::uint64_t vertices = 4096;
  int steps = 16;
  requests.add_to(options);
  options.add("--vertices", vertices, "Vertices").between(std::uint64_t{1}, std::uint64_t{1} << 22);
  options.add("--steps", steps, "Edges that a walk follows").between(0, 1 << 16);

  return apps::run_application(options, argc, argv, [&]() -> int {
    requests.open_json();
    const plan numbers(vertices);
    const apps::dealt_out<vertex> graph(vertices);
    graph.for_mine([&](std::uint64_t v, global_ptr<vertex> here) {
      for (std::uint64_t i = 0; i < numbers.degree(v); ++i)
        here.call<&vertex::connect>(graph[numbers.edge(v, i)]);
    });
    sojourn::barrier();

    std::string wrong;
    const apps::figures measured =
        requests.make(1, [&](std::uint64_t, apps::random_source& random) {
          const std::uint64_t first = random.below(vertices);
          const std::uint64_t seed = random.next();
          const global_ptr<vertex> end =
              sojourn::activate(walk, graph[first], steps, seed, requests.how());
          if (end != graph[numbers.end_of_walk(first, steps, seed)]) {
            wrong = fmt::format("a walk from vertex {} went astray", first);
          }
        });

    std::uint64_t walks = 0;
    graph.for_mine([&](std::uint64_t, global_ptr<vertex> v) { walks += v.call<&vertex::walks>(); });
    walks = sojourn::reduce(walks, std::plus<>{});
    if (walks != requests.operations()) wrong = fmt::format("{} walks have ended", walks);
    return requests.report(fmt::format("walks of {} steps on {} vertices", steps, vertices),
                           measured, wrong, {{"vertices", vertices}, {"steps", steps}});
  });
}
