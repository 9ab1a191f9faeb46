// SPDX-License-Identifier: Apache-2.0
#include "uts/search.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

namespace apps::uts {

namespace {

/// What a thread begins with: an argument, so it goes wherever the thread is handed to.
struct open_nodes {
  static constexpr std::size_t most = 32;
  std::uint32_t count = 0;
  std::array<node, most> nodes;
};

// Of this rank: whatever thread ends here adds to them.
tally found_here;
std::uint64_t threads_here;

void explore(search_options options, open_nodes start) {
  // In the frame, for what a thread has on the heap of its rank does not travel with it.
  std::array<node, 2 * tree::children_max> open;
  std::size_t count = start.count;
  std::copy_n(start.nodes.begin(), count, open.begin());

  tally found;
  while (count > 0 && found.nodes < options.grain && count + tree::children_max <= open.size()) {
    const node n = open[--count];
    const int children = options.tree.child_count(n);
    found += {1, children == 0, n.depth};
    for (int i = 0; i < children; ++i) open[count++] = tree::child(n, i);
  }
  found_here += found;
  ++threads_here;

  const std::size_t share = std::min((count + 1) / 2, open_nodes::most);
  for (std::size_t first = 0; first < count; first += share) {
    open_nodes part{static_cast<std::uint32_t>(std::min(share, count - first)), {}};
    std::copy_n(open.begin() + static_cast<std::ptrdiff_t>(first), part.count, part.nodes.begin());
    // Nobody joins it: finish waits for all.
    sojourn::spawn(explore, options, part).detach();
  }
}

}  // namespace

search_result search(const search_options& options) {
  found_here = {};
  threads_here = 0;
  sojourn::barrier();
  const sojourn::counters before = sojourn::counters_now();
  const std::uint64_t start_ns = sojourn::now_ns();
  if (sojourn::rank_me() == 0) {
    sojourn::finish(
        [&] { sojourn::spawn(explore, options, open_nodes{1, {options.tree.root()}}).detach(); });
  }
  // The others wait here, and run what is handed to them.
  sojourn::barrier();
  search_result r;
  r.seconds = sojourn::broadcast(static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9);
  r.spent = sojourn::reduce(sojourn::counters_now() - before, std::plus<>{});
  r.found = sojourn::reduce(found_here, std::plus<>{});
  r.threads = sojourn::reduce(threads_here, std::plus<>{});
  r.busiest = sojourn::reduce(found_here.nodes,
                              [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  return r;
}

tally search_alone(const tree& t) {
  tally found;
  std::vector<node> open{t.root()};
  while (!open.empty()) {
    const node n = open.back();
    open.pop_back();
    const int children = t.child_count(n);
    found += {1, children == 0, n.depth};
    for (int i = 0; i < children; ++i) open.push_back(tree::child(n, i));
  }
  return found;
}

search_result search_by_loop(const tree& t) {
  search_result r;
  sojourn::barrier();
  if (sojourn::rank_me() == 0) {
    const std::uint64_t start_ns = sojourn::now_ns();
    r.found = search_alone(t);
    r.seconds = static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9;
    r.busiest = r.found.nodes;
  }
  r.found = sojourn::broadcast(r.found);
  r.busiest = sojourn::broadcast(r.busiest);
  r.seconds = sojourn::broadcast(r.seconds);
  return r;
}

}  // namespace apps::uts
