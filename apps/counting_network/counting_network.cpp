// SPDX-License-Identifier: Apache-2.0
#include "counting_network/counting_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "common/fault.hpp"

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

/// The bitonic wiring, as a table. A wire is followed through balancers: the wire that enters at a
/// balancer's top leaves at its top.
class wiring {
 public:
  struct joint {
    int top, bottom;  // Wires.
  };
  struct stage {
    std::array<joint, per_stage> joints{};
    int count = 0;
  };

  constexpr wiring() {
    std::array<int, width> wires{};
    for (int i = 0; i < width; ++i) wires[i] = i;
    count_on(wires.data(), width);
    outputs_ = wires;
  }

  constexpr const std::array<stage, counting_network::stages>& stages() const { return stages_; }
  /// The wires in the order of the counters at their ends.
  constexpr const std::array<int, width>& outputs() const { return outputs_; }

 private:
  /// Bitonic[n]: two Bitonic[n/2] side by side, then Merger[n].
  constexpr void count_on(int* wires, int n) {
    if (n == 1) return;
    count_on(wires, n / 2);
    count_on(wires + n / 2, n / 2);
    merge(wires, n);
  }

  /// Merger[n] of the sequences x (first half) and y (second half): one Merger[n/2] takes x's even
  /// and y's odd wires, another the rest; a last row of balancers joins their outputs pairwise.
  constexpr void merge(int* wires, int n) {
    const int half = n / 2;
    if (half > 1) {
      std::array<int, width> one{}, other{};
      for (int i = 0; i < half; i += 2) {
        one[i / 2] = wires[i];
        other[i / 2] = wires[i + 1];
        one[(half + i) / 2] = wires[half + i + 1];
        other[(half + i) / 2] = wires[half + i];
      }
      merge(one.data(), half);
      merge(other.data(), half);
      for (int i = 0; i < half; ++i) {
        wires[2 * i] = one[i];
        wires[2 * i + 1] = other[i];
      }
    }
    for (int i = 0; i < n; i += 2) join(wires[i], wires[i + 1]);
  }

  constexpr void join(int top, int bottom) {
    const int at = std::max(depth_[top], depth_[bottom]);
    depth_[top] = depth_[bottom] = at + 1;
    stages_[at].joints[stages_[at].count++] = {top, bottom};
  }

  std::array<stage, counting_network::stages> stages_{};
  std::array<int, width> depth_{};
  std::array<int, width> outputs_{};
};

constexpr wiring bitonic;
static_assert(std::ranges::all_of(bitonic.stages(),
                                  [](const wiring::stage& s) { return s.count == per_stage; }));

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
  global_ptr<std::uint64_t> drawn;  // All numbers, requester by requester, on rank 0.
  if (first) {
    network = counting_network::create();
    drawn = sojourn::make_array<std::uint64_t>(0, options.requests);
  }
  network = sojourn::broadcast(network);
  drawn = sojourn::broadcast(drawn);

  // Requester r draws the numbers whose turn lies in [begin(r), begin(r + 1)).
  const auto begin = [&](std::uint64_t r) { return options.requests * r / requesters; };
  std::vector<std::vector<std::uint64_t>> mine(requesters);
  counting_result result;
  result.measured = measure(options.requesters, [&](int requester, histogram& latencies) {
    const auto r = static_cast<std::uint64_t>(requester);
    const std::uint64_t requests = begin(r + 1) - begin(r);
    mine[r].reserve(requests);
    for (std::uint64_t i = 0; i < requests; ++i) {
      mine[r].push_back(timed(latencies, [&] { return network.take(requester, options.how); }));
      think(options.think_cycles);
    }
  });

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
    if (wrong.empty()) wrong = check_steps(network.counts());
    network.destroy();
    sojourn::destroy_array(drawn, options.requests);
  }
  result.wrong = first_fault(wrong);
  return result;
}

}  // namespace apps
