// SPDX-License-Identifier: Apache-2.0
//
// Threads that move, one batch at a time as the driver commands. Figures of moves are for one
// direction: half of there and back between ranks 0 and 1.
//
//   hop B         a thread with B bytes of locals moves itself (16 to 65536); hop_switch B the same
//                 by the paper's second approach
//   naive B       the same with an explicit buffer: B bytes are copied into one before the move,
//   and
//                 out of another after it, besides what the move does
//   ships B       bytes that one such move ships, headers included
//   message B     one active message of B bytes, headers included, from buffer to buffer
//   switch        leave a fiber and come back to it through the dispatcher
//   clock         ticks of the processor's counter in a nanosecond
//   spawn_join    start a thread that does nothing, here, and join it
//   suspended N   N threads that share a stack and wait: bytes of memory each, and the nanoseconds
//                 each took to start, and to wake and end; and the bytes of page tables each
//   stacks N      N threads that wait, each on a stack of its own: bytes of page tables each, and
//                 of memory. Once in a process: page tables stay
//
// Commands arrive at rank 0, which sleeps in read() between them.

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <sojourn/sojourn.hpp>

#include "common/move_by_switch.hpp"
#include "common/one_way.hpp"
#include "common/switches.hpp"
#include "common/two_ranks.hpp"

namespace {

using namespace sojourn;

enum class way { direct, by_switch, naive };

std::array<unsigned char, 65536> buffer;  // of each rank

template <std::size_t Bytes>
void move_to(rank_t there, way how, volatile unsigned char* locals) {
  if (how == way::naive) {
    std::memcpy(buffer.data(), const_cast<unsigned char*>(locals), Bytes);
    bench::touch(buffer.data());
  }
  if (how == way::by_switch) {
    bench::move_by_switch(there);
  } else {
    migrate(self(), there);
  }
  if (how == way::naive) {
    std::memcpy(const_cast<unsigned char*>(locals), buffer.data(), Bytes);
    bench::touch(buffer.data());
  }
}

/// Goes to rank 1 and back with `Bytes` bytes of locals, and sees that they arrive.
template <std::size_t Bytes>
[[gnu::noinline]] void travel(std::uint64_t round_trips, way how) {
  volatile unsigned char locals[Bytes];
  for (std::size_t i = 0; i < Bytes; ++i) locals[i] = static_cast<unsigned char>(i);
  if (how == way::naive) {
    // The other rank's buffer holds the same, as if it had been sent.
    migrate(self(), 1);
    std::memcpy(buffer.data(), const_cast<unsigned char*>(locals), Bytes);
    migrate(self(), 0);
  }
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    move_to<Bytes>(1, how, locals);
    move_to<Bytes>(0, how, locals);
  }
  for (std::size_t i = 0; i < Bytes; ++i) {
    if (locals[i] != static_cast<unsigned char>(i)) throw std::runtime_error("locals were lost");
  }
}

/// The name of travel<Bytes> as the body of a thread.
template <std::size_t Bytes>
void start(std::uint64_t round_trips, way how) {
  travel<Bytes>(round_trips, how);
}

template <std::size_t Bytes>
std::vector<double> time_hops(const bench::batch_plan& plan, way how) {
  auto one_way = bench::time_batches(
      plan, [how](std::uint64_t count) { spawn(start<Bytes>, std::uint64_t{count}, how).join(); });
  for (double& nanoseconds : one_way) nanoseconds /= 2;
  return one_way;
}

counters counted_on_both() {
  return counters_now() + rpc(1, [] { return counters_now(); }).get();
}

template <std::size_t Bytes>
std::vector<double> count_shipped(const bench::batch_plan& plan) {
  const counters before = counted_on_both();
  spawn(start<Bytes>, std::uint64_t{plan.iterations}, way::direct).join();
  const counters shipped = counted_on_both() - before;
  return {static_cast<double>(shipped.migration_bytes) / static_cast<double>(shipped.migrations),
          static_cast<double>(shipped.migration_copies) / static_cast<double>(shipped.migrations)};
}

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
    case 16384:
      return work.template operator()<16384>();
    case 65536:
      return work.template operator()<65536>();
    default:
      return std::nullopt;
  }
}

std::vector<double> time_messages(const bench::batch_plan& plan) {
  constexpr std::size_t header = 32;
  const std::size_t payload = std::max<std::size_t>(plan.bytes, header) - header;
  auto one_way = bench::time_batches(plan, [&](std::uint64_t count) {
    bench::exchange(count, [&] { bench::active_message::send(payload); });
  });
  for (double& nanoseconds : one_way) nanoseconds /= 2;
  return one_way;
}

std::vector<double> time_spawns(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) spawn([] {}).join();
  });
}

std::size_t resident_bytes() {
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Of the kernel, for this process (Linux: Documentation/filesystems/proc.rst).
std::size_t page_table_bytes() {
  std::size_t kib = 0;
  if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "VmPTE: %zu", &kib) == 1) break;
    }
    std::fclose(file);
  }
  return kib * 1024;
}

latch* opened;
std::uint64_t started;
std::uint64_t woken;
std::uint64_t out_of_order;

/// About 400 bytes of frames, the runtime's included.
[[gnu::noinline]] void wait_and_tell(std::uint64_t number) {
  ++started;
  opened->wait();
  out_of_order += woken++ != number;
}

/// Costs of threads that wait, each.
struct waiting_costs {
  double bytes;
  double page_table_bytes;
  double start_ns;
  double wake_ns;
};

waiting_costs suspend_many(std::uint64_t count, bool shared_stack) {
  latch gate(1);
  opened = &gate;
  started = woken = out_of_order = 0;
  std::vector<thread> all;
  all.reserve(count);
  const std::size_t before = resident_bytes();
  const std::size_t tables_before = page_table_bytes();
  const std::uint64_t begin = bench::clock_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    all.push_back(spawn_on(rank_me(), thread_options{.shared_stack = shared_stack}, wait_and_tell,
                           std::uint64_t{i}));
  }
  while (started < count) yield();
  const std::uint64_t suspended = bench::clock_ns();
  // The names, 8 bytes each, were reserved but not touched before.
  const std::size_t bytes = resident_bytes() - before - count * sizeof(thread);
  const std::size_t tables = page_table_bytes() - tables_before;
  gate.count_down();
  for (thread t : all) t.join();
  const std::uint64_t ended = bench::clock_ns();
  if (out_of_order != 0) throw std::runtime_error("threads woke out of order");
  const auto each = static_cast<double>(count);
  return {static_cast<double>(bytes) / each, static_cast<double>(tables) / each,
          static_cast<double>(suspended - begin) / each,
          static_cast<double>(ended - suspended) / each};
}

std::optional<std::vector<double>> measure(const bench::command& next) {
  const bench::batch_plan& plan = next.plan;
  const auto hops = [&](way how) {
    return with_frame_of(plan.bytes,
                         [&]<std::size_t Bytes>() { return time_hops<Bytes>(plan, how); });
  };
  if (next.operation == "hop") return hops(way::direct);
  if (next.operation == "hop_switch") return hops(way::by_switch);
  if (next.operation == "naive") return hops(way::naive);
  if (next.operation == "ships")
    return with_frame_of(plan.bytes,
                         [&]<std::size_t Bytes>() { return count_shipped<Bytes>(plan); });
  if (next.operation == "message" && plan.bytes <= bench::table.out.size())
    return time_messages(plan);
  if (next.operation == "spawn_join") return time_spawns(plan);
  if (next.operation == "switch") return bench::time_switches(plan);
  if (next.operation == "clock") return bench::ticks_a_nanosecond();
  if (next.operation == "suspended") {
    const waiting_costs each = suspend_many(plan.bytes, true);
    return std::vector{each.bytes, each.start_ns, each.wake_ns, each.page_table_bytes};
  }
  if (next.operation == "stacks") {
    const waiting_costs each = suspend_many(plan.bytes, false);
    return std::vector{each.page_table_bytes, each.bytes};
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_two_ranks("bench_threads", argc, argv, measure);
}
