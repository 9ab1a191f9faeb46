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

/// Writes to the lowest page of the stack and no further. Requires: stacks whose lowest address is
/// `low` above a multiple of `unit`.
[[gnu::noinline]] void overflow(std::uint64_t unit, std::uint64_t low = 0) {
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  std::uint64_t left = (here & (unit - 1)) - low;
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
    // Its 8 MiB end with the fifth slot of 2 MiB.
    if (how == "main") overflow(16 << 20, 2 << 20);
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
