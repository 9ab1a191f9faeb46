// SPDX-License-Identifier: Apache-2.0
//
// Migrations and the messages they are compared with, one batch at a time as the driver commands.
// All figures are for one direction: half of there and back between ranks 0 and 1.
//
//   hop B       one migration of an activation whose frame holds B bytes of locals (16, 64, 256,
//               1024, 4096)
//   ships B     what one such migration ships: bytes with headers, bytes of the frame that asked
//               for it, bytes of registers the switch saved
//   message B   one active message of B bytes, headers included, from buffer to buffer
//   rpc_ff B    one public one-way call whose argument has B bytes, rounded down to one of a list;
//               answers the bytes it took and then the times
//   visit       one access of a counting-network balancer by an activation that has to migrate to
//               it, and `visit_local` the same access of a balancer that is here
//   switch      leave a fiber and come back to it through the dispatcher
//   clock       ticks of the processor's counter in a nanosecond
//
// Commands arrive at rank 0, which sleeps in read() between them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <sojourn/sojourn.hpp>

#include "common/one_way.hpp"
#include "common/switches.hpp"
#include "common/two_ranks.hpp"

namespace {

using namespace sojourn;

#if defined(__x86_64__)
constexpr std::size_t switch_saves_bytes = 6 * 8;  // rbx rbp r12 r13 r14 r15
#else
constexpr std::size_t switch_saves_bytes = 12 * 8 + 8 * 8;  // x19 to x30, d8 to d15
#endif

inline std::uintptr_t stack_pointer() {
  std::uintptr_t sp;
#if defined(__x86_64__)
  asm volatile("mov %%rsp, %0" : "=r"(sp));
#else
  asm volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

/// Goes to rank 1 and back `round_trips` times with `Bytes` bytes of locals, and sees that they
/// arrive. Returns the bytes of its own frame: from its return address down to its stack pointer.
template <std::size_t Bytes>
[[gnu::noinline]] std::uint64_t hop(std::uint64_t round_trips) {
  volatile unsigned char locals[Bytes];
  for (std::size_t i = 0; i < Bytes; ++i) locals[i] = static_cast<unsigned char>(i);
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    if (!migrate_to(1) || !migrate_to(0)) throw std::runtime_error("a migration was refused");
  }
  for (std::size_t i = 0; i < Bytes; ++i)
    if (locals[i] != static_cast<unsigned char>(i)) throw std::runtime_error("locals were lost");
  constexpr std::size_t frame_link_bytes = 16;  // saved frame pointer and return address
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + frame_link_bytes -
         stack_pointer();
}

template <std::size_t Bytes>
std::vector<double> time_hops(const bench::batch_plan& plan) {
  auto one_way = bench::time_batches(
      plan, [](std::uint64_t count) { (void)activate(hop<Bytes>, std::uint64_t{count}); });
  for (double& nanoseconds : one_way) nanoseconds /= 2;
  return one_way;
}

counters counted_on_both() {
  return counters_now() + rpc(1, [] { return counters_now(); }).get();
}

template <std::size_t Bytes>
std::vector<double> count_shipped(const bench::batch_plan& plan) {
  const counters before = counted_on_both();
  const std::uint64_t frame_bytes = activate(hop<Bytes>, std::uint64_t{plan.iterations});
  const counters shipped = counted_on_both() - before;
  return {static_cast<double>(shipped.migration_bytes) / static_cast<double>(shipped.migrations),
          static_cast<double>(frame_bytes), static_cast<double>(switch_saves_bytes)};
}

/// Calls `work.operator()<Bytes>()` for the frame size asked for; nothing for any other.
template <class Work>
std::optional<std::vector<double>> with_frame_of(std::uint64_t bytes, Work work) {
  switch (bytes) {
    case 16:
      return work.template operator()<16>();
    case 64:
      return work.template operator()<64>();
    case 256:
      return work.template operator()<256>();
    case 1024:
      return work.template operator()<1024>();
    case 4096:
      return work.template operator()<4096>();
    default:
      return std::nullopt;
  }
}

std::vector<double> halved(std::vector<double> round_trips) {
  for (double& nanoseconds : round_trips) nanoseconds /= 2;
  return round_trips;
}

/// Bytes of an active message beyond its payload, as the counters see them.
std::size_t message_header_bytes() {
  constexpr std::size_t payload = 64;
  const counters before = counters_now();
  bench::exchange(1, [] { bench::active_message::send(payload); });
  const counters sent = counters_now() - before;
  return sent.request_bytes / sent.requests_sent - payload;
}

std::vector<double> time_messages(const bench::batch_plan& plan) {
  static const std::size_t header = message_header_bytes();
  const std::size_t payload = std::max<std::size_t>(plan.bytes, header) - header;
  return halved(bench::time_batches(plan, [&](std::uint64_t count) {
    bench::exchange(count, [&] { bench::active_message::send(payload); });
  }));
}

template <std::size_t Bytes>
std::vector<double> time_calls(const bench::batch_plan& plan) {
  std::vector<double> answer{static_cast<double>(Bytes)};
  for (const double nanoseconds : halved(bench::time_batches(plan, [](std::uint64_t count) {
         bench::exchange(count, [] { bench::one_way_call<Bytes>::send(); });
       })))
    answer.push_back(nanoseconds);
  return answer;
}

/// Sizes that the public one-way call is compiled for: what hops of the frames above may ship.
using call_sizes = std::index_sequence<64, 128, 192, 256, 320, 384, 448, 512, 640, 1024, 1152, 1280,
                                       1408, 1536, 4096, 4224, 4352, 4480, 4608>;

template <std::size_t... Sizes>
std::vector<double> time_calls_of(const bench::batch_plan& plan, std::index_sequence<Sizes...>) {
  std::size_t chosen = 64;
  ((Sizes <= plan.bytes ? void(chosen = Sizes) : void()), ...);
  std::vector<double> answer;
  ((Sizes == chosen ? void(answer = time_calls<Sizes>(plan)) : void()), ...);
  return answer;
}

/// A balancer of a counting network: sends every second visitor to its other output.
struct balancer {
  global_ptr<balancer> outputs[2];
  unsigned next = 0;

  [[gnu::noinline]] global_ptr<balancer> pass() {
    const global_ptr<balancer> chosen = outputs[next];
    next ^= 1;
    return chosen;
  }
};

[[gnu::noinline]] std::uint64_t traverse(global_ptr<balancer> at, std::uint64_t visits) {
  for (std::uint64_t i = 0; i < visits; ++i) at = at.call<&balancer::pass>(via::migrate);
  return at.address();
}

/// Two balancers that send every visitor to each other. Rank 0 visits the second one first.
std::vector<double> time_visits(const bench::batch_plan& plan, rank_t second_rank) {
  const auto first = make<balancer>(0);
  const auto second = make<balancer>(second_rank);
  const auto connect = [](global_ptr<balancer> from, global_ptr<balancer> to) {
    from.local()->outputs[0] = from.local()->outputs[1] = to;
  };
  rpc(0, connect, first, second).get();
  rpc(second_rank, connect, second, first).get();
  auto result = bench::time_batches(plan, [&](std::uint64_t count) {
    (void)activate(traverse, global_ptr<balancer>(second), std::uint64_t{count});
  });
  destroy(first);
  destroy(second);
  return result;
}

/// Nothing when there is no such operation or frame size.
std::optional<std::vector<double>> measure(const bench::command& next) {
  const bench::batch_plan& plan = next.plan;
  if (next.operation == "hop")
    return with_frame_of(plan.bytes, [&]<std::size_t Bytes>() { return time_hops<Bytes>(plan); });
  if (next.operation == "ships")
    return with_frame_of(plan.bytes,
                         [&]<std::size_t Bytes>() { return count_shipped<Bytes>(plan); });
  if (next.operation == "message" && plan.bytes <= bench::table.out.size())
    return time_messages(plan);
  if (next.operation == "rpc_ff") return time_calls_of(plan, call_sizes{});
  if (next.operation == "visit") return time_visits(plan, 1);
  if (next.operation == "visit_local") return time_visits(plan, 0);
  if (next.operation == "switch") return bench::time_switches(plan);
  if (next.operation == "clock") return bench::ticks_a_nanosecond();
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_two_ranks("bench_migrate", argc, argv, measure);
}
