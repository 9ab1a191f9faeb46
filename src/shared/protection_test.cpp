// SPDX-License-Identifier: Apache-2.0
#include "shared/protection.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/faults.hpp"
#include "memory/region_test.hpp"
#include "shared/mapping.hpp"
#include "sojourn/errors.hpp"
#include "under_memcheck.hpp"

namespace sojourn::detail::pages {
namespace {

bool nobody_mends(const page_fault&, void*) { return false; }

bool is(page_number page, access a) {
  return allows(page, a) &&
         (a == access::store || !allows(page, a == access::none ? access::load : access::store));
}

void all_changes_of(protection& by) {
  mapping m(by);
  m.grow(64 * page_bytes);
  for (const access from : {access::none, access::load, access::store}) {
    for (const access to : {access::none, access::load, access::store}) {
      // Pages 4 to 11 of 16 change; the others stay what they were.
      by.protect({0, 16}, access::none, from);
      by.protect({4, 8}, from, to);
      for (page_number p = 0; p < 16; ++p) CLAIM(is(p, p >= 4 && p < 12 ? to : from));
      by.protect({0, 4}, from, access::none);
      by.protect({4, 8}, to, access::none);
      by.protect({12, 4}, from, access::none);
      for (page_number p = 0; p < 16; ++p) CLAIM(is(p, access::none));
    }
  }
}

/// Opens pages that are open already, for the same access or another.
void open_pages_opened_again_by(protection& by) {
  mapping m(by);
  m.grow(64 * page_bytes);
  for (const access was : {access::load, access::store}) {
    for (const access now : {access::load, access::store}) {
      by.protect({3, 2}, access::none, was);
      by.protect({0, 8}, access::none, now);
      for (page_number p = 0; p < 8; ++p) CLAIM(is(p, now));
      by.protect({0, 8}, now, access::none);
    }
  }
}

void bytes_kept_by(protection& by) {
  mapping m(by);
  m.grow(64 * page_bytes);
  runtime_page(7)[100] = std::byte{5};
  by.protect({7, 1}, access::none, access::load);
  CLAIM(program_page(7)[100] == std::byte{5});
  by.protect({7, 1}, access::load, access::store);
  program_page(7)[100] = std::byte{6};
  by.protect({7, 1}, access::store, access::none);
  CLAIM(runtime_page(7)[100] == std::byte{6});
  runtime_page(7)[100] = std::byte{8};
  by.protect({7, 1}, access::none, access::load);
  CLAIM(program_page(7)[100] == std::byte{8});
}

/// More than vm.max_map_count allows as mappings of their own, usually 65,530.
void pages_that_alternate(protection& by) {
  constexpr page_number count = 140'000;
  mapping m(by);
  m.grow(count * page_bytes);
  for (page_number p = 0; p < count; p += 2) by.protect({p, 1}, access::none, access::load);
  bool all_open = true;
  for (page_number p = 0; p < count; p += 2800) {
    // No page is open that was closed.
    CLAIM(!allows(p, access::store) && !allows(p + 1, access::load));
    if (allows(p, access::load)) continue;
    all_open = false;
    by.protect({p, 1}, access::none, access::load);
    CLAIM(allows(p, access::load));
  }
  CLAIM(all_open == (by.closed_early() == 0));
}

/// Ends a process of its own, which maps a region: with 0 after `test`, or with `is_missing`.
constexpr int is_missing = 3;
void run(void (*test)(protection&), const char* name, std::uint64_t region_bytes) {
  map_as(0, region_bytes, 1);
  CLAIM(add_fault_range(addresses.shared, addresses.shared + mapping::capacity(), nobody_mends,
                        nullptr));
  setenv("SOJOURN_SHARED_PROTECTION", name, 1);
  try {
    const auto by = choose_protection(protection_from_environment());
    CLAIM(by->name() == std::string(name));
    test(*by);
  } catch (const sojourn::error& e) {
    std::fputs(e.what(), stderr);
    _exit(is_missing);
  }
  _exit(0);
}

bool works_here(const char* name) {
  const pid_t child = fork();
  if (child == 0) run([](protection&) {}, name, gib);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

class protections_DeathTest : public testing::TestWithParam<const char*> {
 protected:
  void expect(void (*test)(protection&), std::uint64_t region_bytes = gib) {
    if (under_memcheck()) GTEST_SKIP() << "memcheck reports each access to a closed page";
    if (!works_here(GetParam())) GTEST_SKIP() << GetParam() << " does not work here";
    EXPECT_EXIT(run(test, GetParam(), region_bytes), testing::ExitedWithCode(0), "");
  }
};

TEST_P(protections_DeathTest, change_each_access_to_each_other) { expect(all_changes_of); }
TEST_P(protections_DeathTest, open_again_what_is_open) { expect(open_pages_opened_again_by); }
TEST_P(protections_DeathTest, keep_the_bytes_of_pages) { expect(bytes_kept_by); }
TEST_P(protections_DeathTest, hold_for_140000_pages_that_alternate) {
  expect(pages_that_alternate, 16 * gib);
}

INSTANTIATE_TEST_SUITE_P(both, protections_DeathTest, testing::Values("mprotect", "userfaultfd"),
                         [](const auto& name) { return std::string(name.param); });

void one_is_chosen() {
  map_as(0);
  unsetenv("SOJOURN_SHARED_PROTECTION");
  const std::string name = choose_protection(protection_from_environment())->name();
  CLAIM(name == "mprotect" || name == "userfaultfd");
  CLAIM(!under_valgrind() || name == "mprotect");
  // The trial has left nothing behind.
  const auto by = protect_by_mprotect();
  mapping m(*by);
  m.grow(page_bytes);
  CLAIM(runtime_page(0)[0] == std::byte{0});
}

TEST(protection_DeathTest, one_that_works_is_chosen) { EXPECT_CLAIMS(one_is_chosen); }

TEST(protection_DeathTest, another_name_is_refused) {
  EXPECT_EXIT(run([](protection&) {}, "pkeys", gib), testing::ExitedWithCode(is_missing),
              "SOJOURN_SHARED_PROTECTION=pkeys is neither userfaultfd nor mprotect: choose one");
}

}  // namespace
}  // namespace sojourn::detail::pages
