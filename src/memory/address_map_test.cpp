// SPDX-License-Identifier: Apache-2.0
#include "memory/address_map.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <string>

#include "base/doctor_hint.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace {

using sojourn::error;
using sojourn::detail::address_map;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::size_t slot = 256 << 10;

std::string why_not(std::uint64_t bytes, int ranks, std::size_t slot_bytes = slot,
                    std::size_t main_bytes = address_map::default_main_stack_bytes) {
  try {
    address_map::divide(address_map::default_base, bytes, ranks, slot_bytes, main_bytes);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(address_map, parts_lie_side_by_side_in_the_region) {
  for (std::uint64_t bytes : {1 * gib, 3 * gib, 64 * gib, 10240 * gib}) {
    address_map m = address_map::divide(address_map::default_base, bytes, 4, slot);
    EXPECT_EQ(m.base, address_map::default_base);
    EXPECT_GE(m.unit * 16, bytes) << "no more than half is lost";
    EXPECT_LE(m.unit * 8, bytes);
    EXPECT_EQ(m.stacks, m.base + m.unit);
    EXPECT_EQ(m.heap, m.stacks_end());
    EXPECT_EQ(m.arenas, m.heap + m.heap_bytes());
    EXPECT_EQ(m.shared, m.arenas_end());
    EXPECT_LE(m.shared + 2 * m.shared_bytes(), m.base + m.bytes) << "there is room for two views";
    EXPECT_GT(m.worker_stack(), m.base);
    EXPECT_LT(m.worker_stack() + address_map::worker_stack_bytes, m.stacks);
  }
}

TEST(address_map, every_rank_has_an_equal_part_found_by_a_shift) {
  for (int ranks : {1, 2, 3, 4, 5, 8, 17, 64, 1000}) {
    address_map m =
        address_map::divide(address_map::default_base, address_map::default_bytes, ranks, slot);
    auto n = static_cast<std::uint64_t>(ranks);
    EXPECT_LE(n << m.stacks_shift, m.unit) << ranks << " ranks";
    EXPECT_GT(n << m.stacks_shift, m.unit / 2) << ranks << " ranks waste their part";
    EXPECT_LE(n << m.heap_shift, m.heap_bytes()) << ranks << " ranks";
    EXPECT_GT(n << m.heap_shift, m.heap_bytes() / 2) << ranks << " ranks waste their part";
    EXPECT_LE(n << m.arenas_shift, m.unit) << ranks << " ranks";
    EXPECT_GT(n << m.arenas_shift, m.unit / 2) << ranks << " ranks waste their part";
    EXPECT_EQ(m.slot_count(), m.unit / m.slot_bytes());
    EXPECT_EQ(m.slots_per_rank() * m.slot_bytes(), std::uint64_t{1} << m.stacks_shift);
    EXPECT_GT(m.slots_per_rank() * m.slot_bytes(), m.main_stack_bytes);
  }
}

TEST(address_map, knows_addresses_of_stacks) {
  address_map m = address_map::divide(address_map::default_base, 8 * gib, 2, slot);
  EXPECT_FALSE(m.in_stacks(0));
  EXPECT_FALSE(m.in_stacks(m.stacks - 1));
  EXPECT_TRUE(m.in_stacks(m.stacks));
  EXPECT_TRUE(m.in_stacks(m.stacks_end() - 1));
  EXPECT_FALSE(m.in_stacks(m.stacks_end()));
  EXPECT_FALSE(m.in_stacks(m.heap));
  EXPECT_FALSE(m.in_stacks(~std::uint64_t{0}));
}

TEST(address_map, knows_addresses_of_arenas_and_their_homes) {
  address_map m = address_map::divide(address_map::default_base, 4 * gib, 3, slot);
  EXPECT_FALSE(m.in_arenas(0));
  EXPECT_FALSE(m.in_arenas(m.arenas - 1));
  EXPECT_TRUE(m.in_arenas(m.arenas));
  EXPECT_TRUE(m.in_arenas(m.arenas_end() - 1));
  EXPECT_FALSE(m.in_arenas(m.arenas_end()));
  EXPECT_FALSE(m.in_arenas(~std::uint64_t{0}));
  for (int rank = 0; rank < 3; ++rank) {
    std::uint64_t first = m.arenas + (static_cast<std::uint64_t>(rank) << m.arenas_shift);
    std::uint64_t next = first + (std::uint64_t{1} << m.arenas_shift);
    EXPECT_EQ(m.arenas_home(first), rank);
    EXPECT_EQ(m.arenas_home(next - 1), rank);
    EXPECT_LE(next, m.arenas_end());
  }
}

TEST(address_map, knows_addresses_of_the_programs_view_of_shared_memory) {
  address_map m = address_map::divide(address_map::default_base, 8 * gib, 2, slot);
  EXPECT_EQ(m.shared_bytes(), gib / 2);
  EXPECT_FALSE(m.in_shared(0));
  EXPECT_FALSE(m.in_shared(m.shared - 1));
  EXPECT_TRUE(m.in_shared(m.shared));
  EXPECT_TRUE(m.in_shared(m.shared + m.shared_bytes() - 1));
  EXPECT_FALSE(m.in_shared(m.shared + m.shared_bytes())) << "the runtime's view";
  EXPECT_FALSE(m.in_shared(~std::uint64_t{0}));
}

TEST(address_map, a_region_too_small_for_the_ranks_is_refused_with_the_remedy) {
  EXPECT_EQ(why_not(1 * gib, 1), "");
  EXPECT_EQ(why_not(1 * gib, 8), "");
  EXPECT_EQ(
      why_not(1 * gib, 16),
      "a region of 1024 MiB is too small for 16 ranks with stacks of 256 KiB (main: 8192 KiB) "
      "and eight fibers each: set SOJOURN_REGION_GIB to 2 or more, or use fewer ranks, or "
      "smaller stacks (--stack-fiber, --stack-main)");
  EXPECT_NE(why_not(gib / 4, 1), "");
  EXPECT_NE(why_not(0, 1), "");
  // Larger slots need larger parts.
  EXPECT_NE(why_not(1 * gib, 8, 8 << 20), "");
  EXPECT_EQ(why_not(16 * gib, 8, 8 << 20), "");
}

TEST(address_map, stacks_of_a_gib_fit_the_usual_region_and_what_does_not_fit_is_said) {
  constexpr std::uint64_t usual = address_map::default_bytes;
  EXPECT_EQ(why_not(usual, 64, gib), "");
  EXPECT_EQ(why_not(usual, 64, gib, gib), "");
  EXPECT_EQ(why_not(usual, 256, slot, gib), "");
  EXPECT_NE(why_not(usual, 1000, slot, gib), "");
  EXPECT_NE(why_not(64 * gib, 2, gib), "");
  EXPECT_EQ(
      why_not(usual, 1000, gib),
      "a region of 10485760 MiB is too small for 1000 ranks with stacks of 1048576 KiB (main: "
      "8192 KiB) and eight fibers each: use fewer ranks, or smaller stacks (--stack-fiber, "
      "--stack-main)");
  // The value that the message names is enough, and no smaller one is.
  EXPECT_NE(why_not(8 * gib, 2, gib).find("set SOJOURN_REGION_GIB to 256 or more"),
            std::string::npos);
  EXPECT_EQ(why_not(256 * gib, 2, gib), "");
  EXPECT_NE(why_not(255 * gib, 2, gib), "");
}

TEST(address_map, the_stack_of_main_has_whole_slots_for_itself) {
  const auto main_slots = [](std::size_t slot_bytes, std::size_t main_bytes) {
    return address_map::divide(address_map::default_base, address_map::default_bytes, 4, slot_bytes,
                               main_bytes)
        .main_slots();
  };
  // Slots of 2 MiB, with the guard that is as wide as that below each other stack.
  EXPECT_EQ(main_slots(slot, 8 << 20), 5u);
  EXPECT_EQ(main_slots(slot, 64 << 10), 1u);
  EXPECT_EQ(main_slots(slot, slot + (64 << 10)), 2u);
  EXPECT_EQ(main_slots(gib, 8 << 20), 1u);
  EXPECT_EQ(main_slots(64 << 10, gib), 513u);
}

TEST(address_map, a_guard_is_a_mib_wide_or_as_wide_as_a_thousand_stacks_leave_room_for) {
  const auto guard = [](std::uint64_t bytes, int ranks, std::size_t stack_bytes) {
    const address_map m = address_map::divide(address_map::default_base, bytes, ranks, stack_bytes);
    EXPECT_GE(m.slots_per_rank(), m.main_slots() + 8);
    if (m.beyond_guard_page() > 0) {
      EXPECT_GE(m.slots_per_rank(),
                m.main_slots() + address_map::fibers_most + address_map::slots_spare);
    }
    return m.guard_width() / 1024;
  };
  constexpr std::uint64_t kib = 1 << 10;
  // 127 pages of a slot are for stacks that end lower than others.
  EXPECT_EQ(guard(10240 * gib, 1, slot), 1796u - 508);
  EXPECT_EQ(guard(10240 * gib, 256, slot), 1796u - 508);
  EXPECT_EQ(guard(10240 * gib, 512, slot), 772u) << "no stagger: the guard needs it all";
  EXPECT_EQ(guard(10240 * gib, 1024, slot), 260u);
  EXPECT_EQ(guard(10240 * gib, 4, 64 * kib), 1988u - 508);
  EXPECT_EQ(guard(10240 * gib, 4, 1024 * kib), 3076u - 508);
  EXPECT_EQ(guard(10240 * gib, 4, 8192 * kib), 8196u - 508);
  EXPECT_EQ(guard(64 * gib, 2, slot), 1796u - 508);
  EXPECT_EQ(guard(4 * gib, 8, slot), 4u) << "stacks come before wide guards";
}

/// Sets a variable for one test.
struct setting {
  setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~setting() { unsetenv(name_); }
  const char* name_;
};

TEST(address_map, the_environment_sets_the_region_and_the_stacks) {
  address_map usual = sojourn::detail::map_from_environment(4, false);
  EXPECT_EQ(usual.bytes, address_map::default_bytes);
  EXPECT_EQ(usual.stack_bytes, 256u << 10);
  setting region("SOJOURN_REGION_GIB", "64");
  setting stack("SOJOURN_STACK_KIB", "1024");
  address_map m = sojourn::detail::map_from_environment(4);
  EXPECT_EQ(m.bytes, 64 * gib);
  EXPECT_EQ(m.stack_bytes, 1u << 20);
  EXPECT_EQ(m.main_stack_bytes, address_map::default_main_stack_bytes);
  setting longest("SOJOURN_STACK_KIB", "1048576");
  setting main("SOJOURN_MAIN_STACK_KIB", "1048576");
  setting large("SOJOURN_REGION_GIB", "1024");
  EXPECT_EQ(sojourn::detail::map_from_environment(4).stack_bytes, gib);
  EXPECT_EQ(sojourn::detail::map_from_environment(4).main_stack_bytes, gib);
  setting nothing("SOJOURN_REGION_GIB", "");
  EXPECT_EQ(sojourn::detail::map_from_environment(4, false).bytes, address_map::default_bytes);
}

TEST(address_map, is_small_under_valgrind_unless_a_size_is_asked_for) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preloaded = before != nullptr ? before : "";
  {
    setting valgrind("LD_PRELOAD", "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so");
    EXPECT_TRUE(sojourn::detail::under_valgrind());
    for (int ranks : {1, 4}) EXPECT_EQ(sojourn::detail::map_from_environment(ranks).bytes, gib);
    // Their stacks have room, and the heap of each is as large.
    for (int ranks : {5, 8, 300, 1024}) {
      const address_map m = sojourn::detail::map_from_environment(ranks);
      EXPECT_EQ(m.bytes, (gib / 4) * std::bit_ceil(static_cast<unsigned>(ranks)));
      EXPECT_EQ(std::uint64_t{1} << m.heap_shift, gib / 8);
    }
    setting size("SOJOURN_REGION_GIB", "100");
    EXPECT_EQ(sojourn::detail::map_from_environment(4).bytes, std::uint64_t{100} << 30);
  }
  EXPECT_FALSE(sojourn::detail::under_valgrind());
  if (before != nullptr) setenv("LD_PRELOAD", preloaded.c_str(), 1);
}

TEST(address_map, bad_settings_are_named_with_their_limits) {
  for (const char* value : {"0", "-1", "many", "1.5", "3x", "10241", "99999999999999999999"}) {
    setting region("SOJOURN_REGION_GIB", value);
    try {
      sojourn::detail::map_from_environment(1);
      ADD_FAILURE() << "SOJOURN_REGION_GIB=" << value << " is accepted";
    } catch (const error& e) {
      EXPECT_EQ(std::string(e.what()), std::string("SOJOURN_REGION_GIB=") + value +
                                           " is not a whole number from 1 to 10240");
    }
  }
  for (const char* name : {"SOJOURN_STACK_KIB", "SOJOURN_MAIN_STACK_KIB"}) {
    for (const char* value : {"0", "63", "1048577", "100", "-64"}) {
      setting stack(name, value);
      EXPECT_THROW(sojourn::detail::map_from_environment(1), error) << name << "=" << value;
    }
  }
}

TEST(address_map, a_region_is_mapped_once_and_taken_the_second_time) {
  address_map m = address_map::divide(0x3000'0000'0000, 1 * gib, 2, slot);
  sojourn::detail::map_region(m, 1, -1);
  EXPECT_EQ(sojourn::detail::job.my_heap, m.heap + (std::uint64_t{1} << m.heap_shift));
  EXPECT_FALSE(sojourn::detail::job.heap_shared);
  // This rank's heap can be used, the other's cannot be mistaken for it.
  auto* word = reinterpret_cast<std::uint64_t*>(sojourn::detail::job.my_heap);
  *word = 42;
  EXPECT_EQ(*word, 42u);
  // The runtime's tables lie in the private part, apart from each other and from the worker's
  // stack.
  auto first = reinterpret_cast<std::uint64_t>(sojourn::detail::runtime_memory(5000));
  auto second = reinterpret_cast<std::uint64_t>(sojourn::detail::runtime_memory(5000));
  EXPECT_GT(first, m.worker_stack() + address_map::worker_stack_bytes);
  EXPECT_GE(second, first + 5000);
  EXPECT_LT(second + 5000, m.stacks);
  EXPECT_EQ(*reinterpret_cast<char*>(second), 0);
  try {
    sojourn::detail::map_region(m, 1, -1);
    ADD_FAILURE() << "the region is mapped twice";
  } catch (const error& e) {
    EXPECT_EQ(std::string(e.what()),
              std::string("the addresses from 0x300000000000 to 0x300040000000 are taken in this "
                          "process, and Sojourn needs them: another library maps memory there") +
                  sojourn::detail::doctor_hint);
  }
}

}  // namespace
