// SPDX-License-Identifier: Apache-2.0
// A job on a system that gives its stacks no guard pages; in it, a stack that overflows in the way
// the argument says. unguarded.sh reads what is said then.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "no_guard_pages.hpp"
#include "sojourn/sojourn.hpp"

namespace unguarded {

using namespace sojourn;

/// Writes to the lowest page of the stack of `bytes` and no further. Slots are of 2 MiB, of which
/// each stack leaves as many pages above it as its slot's number says (memory/stack_slots.hpp).
/// The main fiber's slots are five, and its stack ends where the fifth does.
[[gnu::noinline]] void overflow(std::uint64_t bytes, bool is_main = false) {
  constexpr std::uint64_t slot = 2 << 20;
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  std::uint64_t high = (here / slot + 1) * slot;
  if (!is_main) high -= here / slot % 128 * 4096;
  std::uint64_t left = here - (high - bytes);
  auto* frame = static_cast<volatile char*>(__builtin_alloca(left - 1024));
  frame[0] = 1;
}

struct cell {
  long value = 0;
  long add(long v) { return value += v; }
};

long round_trip(global_ptr<cell> here, global_ptr<cell> there) {
  return there.call<&cell::add>(via::migrate, 1L) + here.call<&cell::add>(via::migrate, 1L);
}

constexpr std::uint64_t fiber_bytes = 256 << 10;

int job(std::string_view how) {
  rank_t last = rank_count() - 1;
  barrier();
  if (rank_me() == 0) {
    if (how == "returns") rpc(last, [] { overflow(fiber_bytes); }).get();
    if (how == "blocks") {
      rpc(last, [] {
        overflow(fiber_bytes);
        rpc(0, [] {}).get();
      }).get();
    }
    if (how == "blocked_before") {
      rpc(last, [] {
        rpc(0, [] {}).get();
        overflow(fiber_bytes);
      }).get();
    }
    if (how == "migrates") {
      rpc(last, [] {
        activate([] {
          overflow(fiber_bytes);
          migrate_to(0);
        });
      }).get();
    }
    if (how == "main") overflow(8 << 20, true);
  }
  // Many at once, so that stacks are shared and images made.
  auto mine = make<cell>(rank_me());
  auto other = make<cell>((rank_me() + 1) % rank_count());
  std::vector<future<long>> results;
  for (int i = 0; i < 3000; ++i) {
    results.push_back(rpc(
        rank_me(),
        [](global_ptr<cell> a, global_ptr<cell> b) { return activate(round_trip, a, b); }, mine,
        other));
  }
  for (auto& result : results) (void)result.get();
  long calls = mine.call<&cell::add>(0L) + other.call<&cell::add>(0L);
  barrier();
  return calls == 6000 ? 0 : 1;
}

}  // namespace unguarded

int main(int argc, char** argv) {
  std::string_view how = argc > 1 ? argv[1] : "well";
  if (!without_guards::from_now_on(true)) {
    std::puts("no filters of system calls");
    return 77;
  }
  return sojourn::run(argc, argv, [how] { return unguarded::job(how); });
}
