// SPDX-License-Identifier: Apache-2.0
#include "counting_network/counting_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/fault.hpp"
#include "counting_network/shared_network.hpp"
#include "counting_network/wiring.hpp"

namespace apps {

using sojourn::global_ptr;
using sojourn::via;

std::uint64_t output_counter::take() {
  ++taken_;
  return std::exchange(next_, next_ + step_);
}

balancer::output balancer::traverse() {
  const bool bottom = std::exchange(bottom_next_, !bottom_next_);
  return outputs_[bottom ? 1 : 0];
}

namespace {

constexpr int width = counting_network::width;
constexpr int per_stage = width / 2;

/// A request's walk. Under via::migrate these frames move from balancer to balancer, and the number
/// goes straight back to whoever asked.
std::uint64_t walk(global_ptr<balancer> at, via how) {
  for (;;) {
    const balancer::output way = at.call<&balancer::traverse>(how);
    if (way.counter) return way.counter.call<&output_counter::take>(how);
    at = way.next;
  }
}

}  // namespace

counting_network counting_network::create() {
  const int ranks = sojourn::rank_count();
  counting_network network;
  for (int b = 0; b < balancers; ++b) {
    network.balancers_[b] = sojourn::make<balancer>(b % ranks);
  }
  std::array<balancer::output, width> ahead;  // Of each wire, seen from the stage before.
  for (int i = 0; i < width; ++i) {
    network.counters_[i] =
        sojourn::make<output_counter>(i % ranks, std::uint64_t(i), std::uint64_t{width});
    ahead[bitonic.outputs()[i]] = {nullptr, network.counters_[i]};
  }
  for (int s = stages - 1; s >= 0; --s) {
    for (int j = 0; j < per_stage; ++j) {
      const auto [top, bottom] = bitonic.stages()[s].joints[j];
      const global_ptr<balancer> b = network.balancers_[s * per_stage + j];
      b.call<&balancer::connect>(via::rpc, ahead[top], ahead[bottom]);
      ahead[top] = ahead[bottom] = {b, nullptr};
    }
  }
  for (int i = 0; i < width; ++i) network.entries_[i] = ahead[i].next;
  return network;
}

void counting_network::destroy() const {
  for (auto b : balancers_) sojourn::destroy(b);
  for (auto c : counters_) sojourn::destroy(c);
}

std::uint64_t counting_network::take(int wire, via how) const {
  return sojourn::activate(walk, entries_[wire % width], how);
}

std::array<std::uint64_t, counting_network::width> counting_network::counts() const {
  std::array<std::uint64_t, width> all{};
  for (int i = 0; i < width; ++i) all[i] = counters_[i].call<&output_counter::taken>(via::rpc);
  return all;
}

namespace {

/// What is wrong with the numbers that were handed out; empty when nothing is.
std::string check_numbers(std::span<const std::uint64_t> numbers) {
  std::vector<std::uint64_t> sorted(numbers.begin(), numbers.end());
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == i) continue;
    return i > 0 && sorted[i] == sorted[i - 1]
               ? fmt::format("{} was handed out twice", sorted[i])
               : fmt::format("{} was not handed out, but {} was", i, sorted[i]);
  }
  return {};
}

std::string check_steps(const std::array<std::uint64_t, width>& counts) {
  for (int i = 0; i + 1 < width; ++i) {
    if (counts[i] < counts[i + 1] || counts[i] > counts.back() + 1) {
      return fmt::format("the counters lack the step property: they handed out {}",
                         fmt::join(counts, ", "));
    }
  }
  return {};
}

}  // namespace

counting_result run_counting(const counting_options& options) {
  const bool first = sojourn::rank_me() == 0;
  const auto requesters = static_cast<std::uint64_t>(options.requesters);
  counting_network network;
  shared_network in_shared_memory;
  global_ptr<std::uint64_t> drawn;  // All numbers, requester by requester, on rank 0.
  if (first) {
    if (options.in_shared_memory) {
      in_shared_memory = shared_network::create();
    } else {
      network = counting_network::create();
    }
    drawn = sojourn::make_array<std::uint64_t>(0, options.requests);
  }
  network = sojourn::broadcast(network);
  in_shared_memory = sojourn::broadcast(in_shared_memory);
  drawn = sojourn::broadcast(drawn);

  // Requester r draws the numbers whose turn lies in [begin(r), begin(r + 1)).
  const auto begin = [&](std::uint64_t r) { return options.requests * r / requesters; };
  std::vector<std::vector<std::uint64_t>> mine(requesters);
  const auto take = [&](int requester) {
    return options.in_shared_memory ? in_shared_memory.take(requester)
                                    : network.take(requester, options.how);
  };
  counting_result result;
  const std::uint64_t faults_before = sojourn::shared::counters_now().faults_remote;
  result.measured = measure(options.requesters, [&](int requester, histogram& latencies) {
    const auto r = static_cast<std::uint64_t>(requester);
    const std::uint64_t requests = begin(r + 1) - begin(r);
    mine[r].reserve(requests);
    for (std::uint64_t i = 0; i < requests; ++i) {
      mine[r].push_back(timed(latencies, [&] { return take(requester); }));
      think(options.think_cycles);
    }
  });
  if (options.in_shared_memory) {
    const std::uint64_t here = sojourn::shared::counters_now().faults_remote - faults_before;
    const std::uint64_t visits = options.requests * shared_network::visits;
    result.measured.misses = std::min(sojourn::reduce(here, std::plus<>{}), visits);
    result.measured.hits = visits - result.measured.misses;
  }

  for (std::uint64_t r = 0; r < requesters; ++r) {
    if (!mine[r].empty()) {
      sojourn::put(std::span(std::as_const(mine[r])),
                   drawn + static_cast<std::ptrdiff_t>(begin(r)));
    }
  }
  sojourn::barrier();
  std::string wrong;
  if (first) {
    wrong = check_numbers({drawn.local(), options.requests});
    if (wrong.empty()) {
      wrong = check_steps(options.in_shared_memory ? in_shared_memory.counts() : network.counts());
    }
    options.in_shared_memory ? in_shared_memory.destroy() : network.destroy();
    sojourn::destroy_array(drawn, options.requests);
  }
  result.wrong = first_fault(wrong);
  return result;
}

}  // namespace apps
