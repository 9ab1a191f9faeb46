// SPDX-License-Identifier: Apache-2.0
//
// What many ranks cost, one batch at a time as the driver commands; peer_mpi_scale is the same for
// MPI.
//
//   barrier     one barrier() over all ranks
//   broadcast   one broadcast() of `bytes` bytes, 8 or 4096; the root goes round, so that no rank
//               runs ahead
//   reduce      one reduce() of `bytes` bytes, 8 or 4096: all ranks have the sums
//   pairs       round trip of a call with `bytes` bytes each way, 64, between ranks 2i and 2i+1,
//   all
//               pairs at once: of the slowest pair
//   corner      the same between ranks 0 and 1, while the others wait in the runtime
//   load.W      calls of 64 bytes each way from W fibers of rank 0 to rank 1, back to back: the
//               50th, 99th and 99.9th percentile
//   cpus        the cores that the ranks run on
//   memory      bytes of memory of a rank, its share of what ranks share included: the mean
//
// All payloads are checked. Commands arrive at rank 0, which sleeps in read() between them, and are
// broadcast. Without one (`--operation nothing`) the job begins and ends, to see what that takes.

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/command_channel.hpp"
#include "common/payload.hpp"
#include "common/percentiles.hpp"
#include "common/resident.hpp"

namespace {

using namespace sojourn;
using bench::batch_plan;

constexpr std::size_t call_bytes = 64;
using block = std::array<unsigned char, call_bytes>;

/// The buffers of this rank's user.
block sent;
block received;

[[noreturn]] void wrong(const char* what) {
  throw std::runtime_error(std::string("bench_scale: ") + what);
}

/// A command as it goes to all ranks; without a name they end.
struct order {
  std::array<char, 32> name{};
  batch_plan plan;
};

std::vector<double> barriers(const batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) barrier();
  });
}

template <std::size_t Words>
std::vector<double> broadcasts(const batch_plan& plan) {
  using values = std::array<std::uint64_t, Words>;
  std::uint64_t round = 0;
  return bench::time_batches(plan, [&](std::uint64_t count) {
    values all{};
    for (std::uint64_t i = 0; i < count; ++i, ++round) {
      const auto root = static_cast<rank_t>(round % static_cast<std::uint64_t>(rank_count()));
      if (root == rank_me()) all.front() = all.back() = round;
      all = broadcast(all, root);
      if (all.front() != round || all.back() != round) wrong("a wrong value was broadcast");
    }
  });
}

template <std::size_t Words>
struct sums {
  std::array<std::uint64_t, Words> values;
};
struct add {
  template <std::size_t Words>
  sums<Words> operator()(sums<Words> a, const sums<Words>& b) const {
    for (std::size_t i = 0; i < Words; ++i) a.values[i] += b.values[i];
    return a;
  }
};

template <std::size_t Words>
std::vector<double> reductions(const batch_plan& plan) {
  const auto n = static_cast<std::uint64_t>(rank_count());
  std::uint64_t round = 0;
  return bench::time_batches(plan, [&](std::uint64_t count) {
    sums<Words> mine{};
    for (std::uint64_t i = 0; i < count; ++i, ++round) {
      mine.values.fill(round + static_cast<std::uint64_t>(rank_me()));
      const sums<Words> all = reduce(mine, add{});
      if (all.values.back() != n * round + n * (n - 1) / 2) wrong("a sum is wrong");
    }
  });
}

/// What a callee answers: its own bytes, with the number of what it was called with.
block answer_to(const block& argument) {
  received = argument;
  bench::touch(&received);
  block answer = sent;
  std::memcpy(answer.data(), received.data(), bench::number_bytes);
  return answer;
}

std::vector<double> round_trips_with(rank_t other, const batch_plan& plan) {
  std::uint64_t number = 0;
  block out = sent;
  block in{};
  auto found = bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++number) {
      bench::number_payload(out.data(), out.size(), number);
      in = rpc(other, answer_to, out).get();
      if (!bench::has_number(in.data(), in.size(), number)) wrong("another answer came");
    }
  });
  if (!bench::is_payload(in.data(), in.size(), other)) wrong("an answer arrived changed");
  if (!rpc(
           other,
           [](rank_t from) { return bench::is_payload(received.data(), received.size(), from); },
           rank_me())
           .get()) {
    wrong("an argument arrived changed");
  }
  return found;
}

/// Of each batch the slowest pair's.
std::vector<double> pairs(const batch_plan& plan) {
  barrier();
  const rank_t other = rank_me() ^ 1;
  const bool begins = rank_me() % 2 == 0 && other < rank_count();
  std::vector<double> mine =
      begins ? round_trips_with(other, plan) : std::vector<double>(plan.repeats, 0.0);
  for (double& each : mine) {
    each = reduce(each, [](double a, double b) { return std::max(a, b); });
  }
  return mine;
}

// Of the fibers of rank 0 that call under load.
std::uint64_t calls_left;
std::uint64_t calls_untimed;
std::uint64_t next_number;
std::vector<double>* latencies;

void call_back_to_back() {
  block out = sent;
  while (calls_left > 0) {
    --calls_left;
    const std::uint64_t number = next_number++;
    bench::number_payload(out.data(), out.size(), number);
    const std::uint64_t begun_ns = bench::clock_ns();
    const block in = rpc(1, answer_to, out).get();
    const std::uint64_t took_ns = bench::clock_ns() - begun_ns;
    if (!bench::has_number(in.data(), in.size(), number)) wrong("another answer came");
    if (!bench::is_payload(in.data(), in.size(), 1)) wrong("an answer arrived changed");
    if (number >= calls_untimed) latencies->push_back(static_cast<double>(took_ns));
  }
}

std::vector<double> under_load(std::uint64_t width, const batch_plan& plan) {
  std::vector<double> all;
  calls_untimed = plan.warm_up();
  calls_left = calls_untimed + plan.iterations * plan.repeats;
  next_number = 0;
  all.reserve(calls_left);
  latencies = &all;
  std::vector<thread> callers;
  for (std::uint64_t i = 1; i < width; ++i) callers.push_back(spawn(call_back_to_back));
  call_back_to_back();
  for (thread& each : callers) each.join();
  return bench::percentiles(std::move(all));
}

std::vector<double> memory() {
  barrier();
  return {reduce(bench::proportional_bytes(), std::plus<>{}) / rank_count()};
}

/// Every rank's part. Nothing where there is no such operation, or no such size.
std::optional<std::vector<double>> measure(std::string_view operation, const batch_plan& plan) {
  bench::fill_payload(sent.data(), sent.size(), rank_me());
  if (operation == "barrier") return barriers(plan);
  if (operation == "broadcast" && plan.bytes == 8) return broadcasts<1>(plan);
  if (operation == "broadcast" && plan.bytes == 4096) return broadcasts<512>(plan);
  if (operation == "reduce" && plan.bytes == 8) return reductions<1>(plan);
  if (operation == "reduce" && plan.bytes == 4096) return reductions<512>(plan);
  if (operation == "memory") return memory();
  if (operation == "cpus") return all_gather(static_cast<double>(sched_getcpu()));
  if (operation == "nothing") return std::vector{0.0};
  if (rank_count() < 2 || plan.bytes != call_bytes) return std::nullopt;
  if (operation == "pairs") return pairs(plan);
  barrier();  // The others' bytes are there.
  if (operation == "corner") {
    return rank_me() == 0 ? round_trips_with(1, plan) : std::vector{0.0};
  }
  if (operation.starts_with("load.")) {
    const int width = std::atoi(operation.data() + 5);
    if (width < 1) return std::nullopt;
    return rank_me() == 0 ? under_load(static_cast<std::uint64_t>(width), plan) : std::vector{0.0};
  }
  return std::nullopt;
}

std::optional<std::vector<double>> measure(const order& next) {
  return measure(std::string_view(next.name.data()), next.plan);
}

order order_of(const bench::command& next) {
  order all;
  std::strncpy(all.name.data(), next.operation.c_str(), all.name.size() - 1);
  all.plan = next.plan;
  return all;
}

void lead(const bench::process_options& options) {
  bench::command_channel channel(options, 0);
  while (const auto next = channel.next()) {
    if (const auto found = measure(broadcast(order_of(*next))))
      channel.answer(*found);
    else
      channel.refuse("bench_scale does not know this operation or size");
  }
  broadcast(order{});
}

void follow() {
  for (;;) {
    const order next = broadcast(order{});
    if (next.name.front() == '\0') return;
    measure(next);
  }
}

int measure_once(const bench::process_options& options) {
  const auto found = measure(options.operation, options.plan);
  if (rank_me() != 0) return 0;
  if (!found) {
    std::fprintf(stderr, "bench_scale: no operation %s of %llu bytes on %d ranks\n",
                 options.operation.c_str(), static_cast<unsigned long long>(options.plan.bytes),
                 rank_count());
    return 2;
  }
  bench::print_samples("sojourn", options, *found);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "barrier");
  return run(argc, argv, [&]() -> int {
    if (options.commands.empty()) {
      const int status = measure_once(options);
      barrier();
      return status;
    }
    rank_me() == 0 ? lead(options) : follow();
    return 0;
  });
}
