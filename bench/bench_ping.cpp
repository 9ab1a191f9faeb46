// SPDX-License-Identifier: Apache-2.0
//
// Round trips, barriers and idleness, one batch at a time as the driver commands.
//
//   cpus       the cores that ranks 0 and 1 run on
//   null       round trip of a call without arguments or result
//   argument   the same with a 64-byte argument, delivered into a buffer of the callee's rank
//   echo       the same with 64 bytes each way, both delivered into buffers
//   barrier    one barrier() over all ranks
//   idle       every rank in turn sleeps `iterations` ms in the system while the others wait in
//              the runtime; answers with the seconds that took
//
// Commands arrive at rank 0, which sleeps in read() between them, and are broadcast.

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <sojourn/sojourn.hpp>

#include "common/command_channel.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t payload_bytes = 64;
using payload = std::array<std::byte, payload_bytes>;

/// The buffers of this rank's user.
payload sent;
payload received;

enum class operation : std::uint8_t { cpus, null, argument, echo, barrier, idle, quit };

constexpr std::array<std::pair<std::string_view, operation>, 6> operations{{
    {"cpus", operation::cpus},
    {"null", operation::null},
    {"argument", operation::argument},
    {"echo", operation::echo},
    {"barrier", operation::barrier},
    {"idle", operation::idle},
}};

struct order {
  operation what = operation::quit;
  bench::batch_plan plan;
};

/// What all ranks but the first wait for. An unknown command is refused and the next one read.
order next_order(bench::command_channel& channel) {
  while (auto command = channel.next()) {
    for (const auto& [name, what] : operations)
      if (name == command->operation) return {what, command->plan};
    channel.refuse("bench_ping does not know this operation");
  }
  return {};
}

template <class Call>
std::vector<double> round_trips(const bench::batch_plan& plan, Call call) {
  return bench::time_batches(plan, [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) call();
  });
}

void call_nothing() {
  rpc(1, [] {}).get();
}

void call_with_argument() {
  bench::touch(&sent);
  rpc(1, [](const payload& argument) { received = argument; }, sent).get();
}

void call_with_echo() {
  bench::touch(&sent);
  received = rpc(
                 1,
                 [](const payload& argument) {
                   received = argument;
                   bench::touch(&received);
                   return sent;
                 },
                 sent)
                 .get();
  bench::touch(&received);
}

/// A rank cannot wait for a time in the runtime, so each in turn sleeps in the system.
std::vector<double> idle(const bench::batch_plan& plan) {
  const std::uint64_t start = bench::clock_ns();
  for (rank_t turn = 0; turn < rank_count(); ++turn) {
    if (turn == rank_me()) usleep(static_cast<useconds_t>(plan.iterations * 1000));
    barrier();
  }
  return {static_cast<double>(bench::clock_ns() - start) / 1e9};
}

/// Rank 0's part. The calls need nothing of the other ranks' main fibers.
std::vector<double> lead(const order& next) {
  switch (next.what) {
    case operation::cpus:
      return {static_cast<double>(sched_getcpu()),
              static_cast<double>(rpc(rank_count() - 1, [] { return sched_getcpu(); }).get())};
    case operation::null:
      return round_trips(next.plan, call_nothing);
    case operation::argument:
      return round_trips(next.plan, call_with_argument);
    case operation::echo:
      return round_trips(next.plan, call_with_echo);
    case operation::barrier:
      return round_trips(next.plan, [] { barrier(); });
    case operation::idle:
      return idle(next.plan);
    case operation::quit:
      break;
  }
  return {};
}

void follow(const order& next) {
  if (next.what == operation::barrier) round_trips(next.plan, [] { barrier(); });
  if (next.what == operation::idle) idle(next.plan);
}

void serve_rank_0(const bench::process_options& options) {
  bench::command_channel channel(options, 0);
  for (;;) {
    const order next = broadcast(next_order(channel));
    if (next.what == operation::quit) return;
    channel.answer(lead(next));
  }
}

void serve_others() {
  for (;;) {
    const order next = broadcast(order{});
    if (next.what == operation::quit) return;
    follow(next);
  }
}

int measure_once(bench::process_options options) {
  for (const auto& [name, what] : operations) {
    if (name != options.operation) continue;
    if (rank_me() != 0) {
      follow({what, options.plan});
    } else {
      options.plan.bytes = payload_bytes;
      bench::print_samples("sojourn", options, lead({what, options.plan}));
    }
    return 0;
  }
  std::fprintf(stderr, "bench_ping: no operation %s\n", options.operation.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "null");
  return run(argc, argv, [&]() -> int {
    if (options.commands.empty()) return measure_once(options);
    if (rank_me() == 0)
      serve_rank_0(options);
    else
      serve_others();
    return 0;
  });
}
