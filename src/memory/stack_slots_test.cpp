// SPDX-License-Identifier: Apache-2.0
#include "memory/stack_slots.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <vector>

#include "memory/region_test.hpp"
#include "no_guard_pages.hpp"
#include "under_memcheck.hpp"

namespace {

using namespace sojourn::detail;

constexpr std::size_t slot_bytes = 256 << 10;
constexpr std::size_t page = 4096;

char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

piece* no_watch() { return nullptr; }

void map_slots(piece* (*watch)() = no_watch, std::uint64_t region = 4 * gib,
               std::size_t bytes = slot_bytes, std::size_t main_bytes = 8 * mib) {
  map_region(address_map::divide(0x3100'0000'0000, region, 1, bytes, main_bytes), 0, -1);
  slots.attach(0, watch);
}

std::vector<std::uint32_t> acquire(std::size_t count) {
  std::vector<std::uint32_t> held;
  for (std::size_t i = 0; i < count; ++i) held.push_back(slots.acquire());
  return held;
}

/// Uses the stack as a fiber does: 16 KiB, from the top down.
void use(std::uint32_t slot, char value) {
  std::memset(at(slots.high(slot)) - 4 * page, value, 4 * page);
}

std::size_t resident_pages(std::uint32_t slot) {
  // Leaves out the guard page, about which emulators refuse to say anything.
  unsigned char pages[slot_bytes / page - 1];
  CLAIM(mincore(at(slots.low(slot)) + page, slot_bytes - page, pages) == 0);
  std::size_t resident = 0;
  for (unsigned char p : pages) resident += p & 1;
  return resident;
}

/// Asks the kernel, so that an inaccessible address does not fault.
bool can_be_written(std::uint64_t address) {
  int ends[2];
  CLAIM(pipe(ends) == 0);
  CLAIM(write(ends[1], "x", 1) == 1);
  bool could = read(ends[0], at(address), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return could;
}

TEST(stack_slots, many_free_slots_give_their_memory_back_and_stay_usable) {
  auto claims = [] {
    constexpr std::size_t many = 2000;
    map_slots();
    std::vector<std::uint32_t> held = acquire(many);
    for (std::uint32_t slot : held) use(slot, 1);
    std::size_t resident = 0;
    for (std::uint32_t slot : held) resident += resident_pages(slot);
    CLAIM(resident >= 4 * many);
    for (std::uint32_t slot : held) slots.release(slot);
    resident = 0;
    for (std::uint32_t slot : held) resident += resident_pages(slot);
    CLAIM(resident <= 4 * 400);
    CLAIM(resident >= 4 * 256);  // the warm slots keep theirs

    std::vector<std::uint32_t> again = acquire(many);
    for (std::uint32_t slot : again) {
      CLAIM(!can_be_written(slots.low(slot)));
      use(slot, static_cast<char>(slot));
    }
    for (std::uint32_t slot : again) {
      CLAIM(at(slots.high(slot))[-1] == static_cast<char>(slot));
      CLAIM(at(slots.high(slot))[-4 * static_cast<int>(page)] == static_cast<char>(slot));
    }
    _exit(0);
  };
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

TEST(stack_slots, a_slot_that_a_piece_visits_keeps_its_memory_and_its_neighbours_do_not) {
  auto claims = [] {
    constexpr std::size_t many = 1000;
    map_slots();
    std::vector<std::uint32_t> held = acquire(many);
    for (std::uint32_t slot : held) use(slot, 7);
    auto* somebody = reinterpret_cast<piece*>(slots.high(held[5]));
    slots[held[5]].in_place = somebody;
    for (std::uint32_t slot : held) slots.release(slot);
    CLAIM(resident_pages(held[4]) == 0);
    CLAIM(resident_pages(held[5]) == 4);
    CLAIM(at(slots.high(held[5]))[-1] == 7);
    CLAIM(resident_pages(held[6]) == 0);
    _exit(0);
  };
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

TEST(stack_slots, of_a_gib_are_usable_to_their_ends_and_apart_from_each_other) {
  auto claims = [] {
    map_slots(no_watch, 1024 * gib, gib, 100 * mib);
    CLAIM(slots.high(slots.main_slot()) - slots.low(slots.main_slot()) == 100 * mib);
    CLAIM(slots.fibers_max() == 128 - 1 - 4);
    std::vector<std::uint32_t> held = acquire(3);
    held.push_back(slots.main_slot());
    for (std::uint32_t slot : held) {
      CLAIM(!can_be_written(slots.low(slot)));
      use(slot, static_cast<char>(slot));
      std::memset(at(slots.low(slot) + page), 5, page);
      CLAIM(slots.index_of(slots.low(slot) + page) == slot);
      CLAIM(slots.index_of(slots.high(slot) - 1) == slot);
    }
    for (std::uint32_t slot : held) CLAIM(at(slots.high(slot))[-1] == static_cast<char>(slot));
    _exit(0);
  };
  if (under_memcheck()) GTEST_SKIP() << "valgrind has no room for that region";
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

void is_guarded_within(std::uint64_t from, std::uint64_t to, std::uint32_t slot) {
  for (std::uint64_t a = from; a < to; a += page) {
    CLAIM(slots.index_of(a) == slot);
    CLAIM(slots.is_guard(a + 7));
    CLAIM(!can_be_written(a));
  }
}

/// All of what lies between two stacks, in steps of a page.
void is_guarded_between_stacks(const std::vector<std::uint32_t>& held) {
  for (std::uint32_t slot : held) {
    CLAIM(slots.low(slot) + page - slots.begin(slot) > mib);
    is_guarded_within(slots.begin(slot), slots.low(slot) + page, slot);
    is_guarded_within(slots.high(slot), slots.end(slot), slot);
    std::memset(at(slots.low(slot)) + page, 3, slots.high(slot) - slots.low(slot) - page);
    CLAIM(!slots.is_guard(slots.low(slot) + page) && !slots.is_guard(slots.high(slot) - 1));
  }
}

TEST(stack_slots, a_mib_below_each_stack_is_guarded_where_there_is_room) {
  auto claims = [](void (*limits)()) {
    map_slots(no_watch, 64 * gib);
    limits();
    std::vector<std::uint32_t> held = acquire(40);  // several chunks
    held.push_back(slots.main_slot());
    is_guarded_between_stacks(held);
    // The guards stay when free slots have given their memory back.
    const std::vector<std::uint32_t> many = acquire(1000);
    for (std::uint32_t slot : many) slots.release(slot);
    is_guarded_between_stacks({many.begin(), many.begin() + 20});
    _exit(0);
  };
  EXPECT_EXIT(claims([] {}), testing::ExitedWithCode(0), "");
  if (!without_guards::can_be()) return;
  EXPECT_EXIT(claims([] {
                if (!without_guards::from_now_on(false)) _exit(77);
              }),
              testing::ExitedWithCode(0), "");
}

TEST(stack_slots, stacks_of_neighbours_do_not_share_sets_of_caches) {
  const auto claims = [] {
    map_slots(no_watch, 64 * gib);
    // Bits 12 to 18 of an address choose the set of a TLB, and of the cache that holds its entry.
    std::set<std::uint64_t> different;
    for (const std::uint32_t slot : acquire(256)) {
      CLAIM(slots.high(slot) - slots.low(slot) == slot_bytes);
      CLAIM(slots.begin(slot) < slots.low(slot) && slots.high(slot) <= slots.end(slot));
      different.insert(slots.high(slot) / page % 128);
    }
    CLAIM(different.size() == 128);
    CLAIM(slots.high(slots.main_slot()) == slots.end(slots.main_slot()));
    _exit(0);
  };
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

TEST(stack_slots, where_addresses_are_charged_only_the_stacks_themselves_are) {
  auto claims = [] {
    map_region(address_map::divide(0x3100'0000'0000, 64 * gib, 1, slot_bytes), 0, -1);
    slots.attach(0, no_watch, true);
    std::vector<std::uint32_t> held = acquire(40);
    held.push_back(slots.main_slot());
    is_guarded_between_stacks(held);
    const std::uint32_t next = held[39] + 1;  // nobody has it
    CLAIM(!can_be_written(slots.high(next) - page));
    _exit(0);
  };
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

TEST(stack_slots, of_another_rank_can_be_closed_from_any_page_of_a_gib) {
  auto claims = [] {
    map_region(address_map::divide(0x3100'0000'0000, 1024 * gib, 2, gib), 0, -1);
    slots.attach(0, no_watch);
    const std::uint32_t visited = slots.index_of(addresses.stacks + 70 * gib);
    const std::uint64_t from = slots.low(visited) + 900 * mib;
    slots.open(visited);
    CLAIM(can_be_written(from));
    slots.close_above(visited, from);
    CLAIM(slots.is_closed_above(visited, from));
    CLAIM(!slots.is_closed_at(from - 1));
    CLAIM(slots.is_closed_at(from));
    CLAIM(!can_be_written(from));
    slots.open(visited);
    CLAIM(can_be_written(from));
    _exit(0);
  };
  if (under_memcheck()) GTEST_SKIP() << "valgrind has no room for that region";
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

/// Uses up the mappings that the process may have.
void exhaust_mappings() {
  std::FILE* limit = std::fopen("/proc/sys/vm/max_map_count", "r");
  long most = 0;
  CLAIM(limit != nullptr && std::fscanf(limit, "%ld", &most) == 1);
  std::fclose(limit);
  auto pages = static_cast<std::size_t>(most) + 100;
  void* room = mmap(nullptr, 2 * pages * page, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CLAIM(room != MAP_FAILED);
  std::size_t i = 0;
  while (i < pages && mprotect(static_cast<char*>(room) + (2 * i + 1) * page, page,
                               PROT_READ | PROT_WRITE) == 0) {
    ++i;
  }
  CLAIM(i < pages && errno == ENOMEM);
}

piece* a_watch() { return reinterpret_cast<piece*>(&slots); }

/// A slot with a canary, in full use; `end_of_mappings` makes a guard page impossible.
template <class EndOfMappings>
std::uint32_t unguarded(bool mprotect_refuses, EndOfMappings end_of_mappings) {
  if (!without_guards::from_now_on(mprotect_refuses)) _exit(77);
  map_slots(a_watch);
  acquire(10);
  end_of_mappings();
  // More slots than are made accessible at a time.
  std::vector<std::uint32_t> held = acquire(200);
  std::uint32_t slot = held.back();
  CLAIM(slots[slot].unguarded);
  CLAIM(slots[slot].in_place == a_watch());
  use(slot, 3);
  std::memset(at(slots.low(slot) + stack_slots::guard_bytes), 3, slot_bytes - page);
  slots.check(slot);
  return slot;
}

void is_released(std::uint32_t slot) {
  slots.release(slot);
  _exit(0);
}

void overflows(std::uint32_t slot) {
  at(slots.low(slot))[page - 1] ^= 1;
  slots.release(slot);
  _exit(0);
}

constexpr const char* overflow_said =
    "stack overflow: a fiber has used more than its 256 KiB of stack";

TEST(stack_slots, without_a_guard_page_a_slot_has_a_canary_and_its_overflow_is_said) {
  if (!without_guards::can_be()) GTEST_SKIP() << "no system calls can be made to fail here";
  auto refused = [] { return unguarded(true, [] {}); };
  EXPECT_EXIT(is_released(refused()), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(overflows(refused()), testing::KilledBySignal(SIGABRT), overflow_said);
}

TEST(stack_slots, past_the_limit_on_mappings_a_slot_has_a_canary_and_its_overflow_is_said) {
  if (!without_guards::can_be()) GTEST_SKIP() << "no system calls can be made to fail here";
  if (under_memcheck()) GTEST_SKIP() << "valgrind ends a process of that many mappings itself";
  auto past_the_limit = [] { return unguarded(false, exhaust_mappings); };
  EXPECT_EXIT(is_released(past_the_limit()), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(overflows(past_the_limit()), testing::KilledBySignal(SIGABRT), overflow_said);
}

TEST(stack_slots, a_guard_page_by_mprotect_does_without_a_canary) {
  if (!without_guards::can_be()) GTEST_SKIP() << "no system calls can be made to fail here";
  auto claims = [] {
    if (!without_guards::from_now_on(false)) _exit(77);
    map_slots();
    for (std::uint32_t slot : acquire(100)) {
      CLAIM(!slots[slot].unguarded);
      CLAIM(!can_be_written(slots.low(slot)));
      CLAIM(can_be_written(slots.low(slot) + stack_slots::guard_bytes));
      slots.check(slot);
    }
    _exit(0);
  };
  EXPECT_EXIT(claims(), testing::ExitedWithCode(0), "");
}

}  // namespace
