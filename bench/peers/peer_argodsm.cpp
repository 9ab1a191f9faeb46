// SPDX-License-Identifier: Apache-2.0
//
// ArgoDSM's read miss of a page: two processes, of which the second stores to pages that it is home
// of, and the first loads them. Started by mpirun; with --cpus each process is pinned to a core.
//
//   miss    a load of a byte of a page that the other process has changed since, `iterations` pages
//           in order. How many come together is said by ARGO_LOAD_SIZE
//
// The values are checked. Between two commands each process sleeps in read() on its own FIFO.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "argo.hpp"

#include "common/command_channel.hpp"

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages_max = 4096;
/// A half has its home on each process, as pages are dealt out in blocks or in turn: so many pages
/// are looked through for those whose home is the second process.
constexpr std::size_t all_bytes = 2 * pages_max * page_bytes;

unsigned char* bytes = nullptr;
unsigned char stores = 0;

std::vector<std::size_t> pages_of_second() {
  std::vector<std::size_t> found;
  for (std::size_t page = 0; page < 2 * pages_max && found.size() < pages_max; ++page) {
    if (argo::get_homenode(bytes + page * page_bytes) == 1) found.push_back(page);
  }
  return found;
}

std::vector<double> misses(const bench::batch_plan& plan) {
  static const std::vector<std::size_t> pages = pages_of_second();
  const std::size_t count = std::min<std::size_t>(plan.iterations, pages.size());
  std::vector<double> found;
  for (std::uint64_t round = 0; round <= plan.repeats && count != 0; ++round) {
    ++stores;
    if (argo::node_id() == 1) {
      for (std::size_t i = 0; i < count; ++i) bytes[pages[i] * page_bytes] = stores;
    }
    argo::barrier();
    if (argo::node_id() == 0) {
      unsigned wrong = 0;
      const std::uint64_t start_ns = bench::clock_ns();
      for (std::size_t i = 0; i < count; ++i) {
        const volatile unsigned char* at = bytes + pages[i] * page_bytes;
        wrong += *at != stores ? 1 : 0;
      }
      const std::uint64_t ns = bench::clock_ns() - start_ns;
      if (wrong != 0) {
        std::fprintf(stderr, "peer_argodsm: a page has an old value\n");
        std::exit(1);
      }
      if (round != 0) found.push_back(static_cast<double>(ns) / static_cast<double>(count));
    }
    argo::barrier();
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "miss");
  argo::init(2 * all_bytes);
  const int me = argo::node_id();
  if (argo::number_of_nodes() != 2) {
    if (me == 0) std::fprintf(stderr, "peer_argodsm: needs 2 processes (mpirun -n 2)\n");
    argo::finalize();
    return 2;
  }
  if (options.cpus_given && options.cpus.size() > 1 &&
      !bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(me)])) {
    std::perror("peer_argodsm: cannot pin to the core given with --cpus");
    return 2;
  }
  bytes = argo::conew_array<unsigned char>(all_bytes);
  if (options.commands.empty()) {
    const auto found = misses(options.plan);
    if (me == 0) bench::print_samples("argodsm", options, found);
  } else {
    bench::command_channel channel(options, me);
    while (const auto next = channel.next()) {
      const bool known = next->operation == "miss";
      const auto found = known ? misses(next->plan) : std::vector<double>();
      if (me != 0) continue;
      if (known && !found.empty())
        channel.answer(found);
      else
        channel.refuse("peer_argodsm does not know this operation, or has no page for it");
    }
  }
  argo::codelete_array(bytes);
  argo::finalize();
  return 0;
}
