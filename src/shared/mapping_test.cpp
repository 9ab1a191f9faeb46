// SPDX-License-Identifier: Apache-2.0
#include "shared/mapping.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/faults.hpp"
#include "memory/region_test.hpp"
#include "sojourn/errors.hpp"
#include "under_memcheck.hpp"

namespace sojourn::detail::pages {
namespace {

bool nobody_mends(const page_fault&, void*) { return false; }

void begin(std::uint64_t region_bytes) {
  map_as(0, region_bytes);
  CLAIM(add_fault_range(addresses.shared, addresses.shared + mapping::capacity(), nobody_mends,
                        nullptr));
}

void both_views_are_one_memory() {
  begin(4 * gib);
  const auto by = protect_by_mprotect();
  mapping m(*by);
  CLAIM(m.bytes() == 0);
  m.grow(1);
  CLAIM(m.bytes() >= page_bytes && m.bytes() % page_bytes == 0);
  CLAIM(page_of(reinterpret_cast<std::uint64_t>(program_page(3)) + 5) == 3);
  for (page_number p = 0; p < 4; ++p) CLAIM(!allows(p, access::load));
  std::memset(runtime_page(2), 7, page_bytes);
  CLAIM(!allows(2, access::load));
  by->protect({2, 1}, access::none, access::store);
  CLAIM(program_page(2)[page_bytes - 1] == std::byte{7});
  program_page(2)[0] = std::byte{9};
  CLAIM(runtime_page(2)[0] == std::byte{9});
  CLAIM(!allows(1, access::load) && !allows(3, access::load));
}

void pages_stay_when_it_grows() {
  begin(4 * gib);
  const auto by = protect_by_mprotect();
  mapping m(*by);
  m.grow(page_bytes);
  const std::size_t before = m.bytes();
  const auto last = static_cast<page_number>(before / page_bytes - 1);
  runtime_page(last)[0] = std::byte{1};
  by->protect({last, 1}, access::none, access::load);
  m.grow(before);
  CLAIM(m.bytes() == before);
  m.grow(before + 1);
  CLAIM(m.bytes() > before);
  CLAIM(program_page(last)[0] == std::byte{1});
  CLAIM(!allows(last + 1, access::load));
  CLAIM(runtime_page(last + 1)[0] == std::byte{0});
}

void a_child_has_neither_view() {
  begin(4 * gib);
  const auto by = protect_by_mprotect();
  mapping m(*by);
  m.grow(page_bytes);
  by->protect({0, 1}, access::none, access::store);
  // qemu-user accepts any advice, even one that does not exist, and ignores it.
  if (madvise(program_page(0), page_bytes, -1) == 0) return;
  const pid_t child = fork();
  if (child == 0) {
    const auto load = [](void* at) { (void)*static_cast<volatile char*>(at); };
    _exit(survives_faults(load, program_page(0)) || survives_faults(load, runtime_page(0)) ? 1 : 0);
  }
  int status = 0;
  CLAIM(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CLAIM(allows(0, access::store));
}

/// A region of 1 GiB has room for 64 MiB in each view.
void the_end_of_the_region_is_told() {
  begin(1 * gib);
  const auto by = protect_by_mprotect();
  mapping m(*by);
  CLAIM(mapping::capacity() == 64 * mib);
  m.grow(64 * mib);
  CLAIM(m.bytes() == 64 * mib);
  const page_number last = 64 * mib / page_bytes - 1;
  runtime_page(last)[page_bytes - 1] = std::byte{3};
  by->protect({last, 1}, access::none, access::load);
  CLAIM(program_page(last)[page_bytes - 1] == std::byte{3});
  std::string what;
  try {
    m.grow(64 * mib + 1);
  } catch (const sojourn::error& e) {
    what = e.what();
  }
  CLAIM(what ==
        "the shared region of this job has room for 64 MiB, and 65 MiB are asked for: share less, "
        "or set SOJOURN_REGION_GIB to 2 or more");
  CLAIM(m.bytes() == 64 * mib);
  CLAIM(allows(last, access::load));
}

void its_addresses_can_be_mapped_again() {
  begin(1 * gib);
  const auto by = protect_by_mprotect();
  for (int i = 0; i < 3; ++i) {
    mapping m(*by);
    m.grow(page_bytes);
    by->protect({0, 1}, access::none, access::store);
    CLAIM(program_page(0)[0] == std::byte{0});
    program_page(0)[0] = std::byte{1};
  }
  CLAIM(!allows(0, access::load));
}

/// Not under memcheck, which reports each access to a closed page.
class mapping_DeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (under_memcheck()) GTEST_SKIP() << "memcheck reports each access to a closed page";
  }
};

TEST_F(mapping_DeathTest, both_views_are_one_memory) { EXPECT_CLAIMS(both_views_are_one_memory); }
TEST_F(mapping_DeathTest, pages_keep_bytes_and_access_when_it_grows) {
  EXPECT_CLAIMS(pages_stay_when_it_grows);
}
TEST_F(mapping_DeathTest, a_child_of_fork_has_neither_view) {
  EXPECT_CLAIMS(a_child_has_neither_view);
}
TEST_F(mapping_DeathTest, the_end_of_the_region_is_told_with_the_remedy) {
  EXPECT_CLAIMS(the_end_of_the_region_is_told);
}
TEST_F(mapping_DeathTest, its_addresses_can_be_mapped_again) {
  EXPECT_CLAIMS(its_addresses_can_be_mapped_again);
}

}  // namespace
}  // namespace sojourn::detail::pages
