// SPDX-License-Identifier: Apache-2.0
// A put and a get of 1 GiB between two ranks: right, copied once, and others run meanwhile.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "check.hpp"

using namespace sojourn;

namespace {

// Under the sanitizers, which slow the loops over it, an eighth of it will do.
constexpr std::size_t much = std::size_t{1} << (sanitized ? 27 : 30);

struct served {
  long calls = 0;
  void call() { ++calls; }
};

void much_there_and_back() {
  std::size_t words = much / sizeof(std::uint64_t);
  auto there = broadcast(rank_me() == 0 ? make_array<std::uint64_t>(rank_count() - 1, words)
                                        : global_ptr<std::uint64_t>());
  if (rank_me() == 0) {
    void* memory = mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    std::span<std::uint64_t> mine(static_cast<std::uint64_t*>(memory), words);
    for (std::size_t i = 0; i < words; ++i) mine[i] = i * 0x9e3779b97f4a7c15u;

    auto before = counters_now();
    put(mine, there);
    auto after_put = counters_now();
    CHECK_EQUAL((after_put - before).bulk_bytes, much);
    if (check::system_copies()) CHECK_EQUAL((after_put - before).bulk_copies, much);
    std::fill(mine.begin(), mine.end(), 0);

    // Another fiber gets its turns while the copy goes on.
    long turns = 0;
    bool done = false;
    auto at =
        std::pair(reinterpret_cast<std::uint64_t>(&turns), reinterpret_cast<std::uint64_t>(&done));
    auto other = rpc(
        0,
        [](std::pair<std::uint64_t, std::uint64_t> a) {
          while (!*reinterpret_cast<bool*>(a.second)) {
            ++*reinterpret_cast<long*>(a.first);
            yield();
          }
        },
        at);
    auto before_get = counters_now();
    get(there, mine);
    done = true;
    auto used = counters_now() - before_get;
    CHECK_EQUAL(used.bulk_bytes, much);
    if (check::system_copies()) {
      CHECK_EQUAL(used.bulk_copies, much);
      // Checked mode asks the owner first whether there is as much.
      CHECK_EQUAL(used.messages(), 0);
      CHECK_EQUAL(used.upkeep_messages, sojourn::detail::checked() ? 1 : 0);
    }
    // Between hosts: into a message there, and from the network into place.
    if (!is_near(rank_count() - 1)) CHECK_EQUAL(used.bulk_copies, 2 * much);
    other.get();
    CHECK(turns > static_cast<long>(much >> 25));  // one for each 32 MiB at the least
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < words; ++i) wrong += mine[i] != i * 0x9e3779b97f4a7c15u;
    CHECK_EQUAL(wrong, 0u);
    munmap(memory, much);
    destroy_array(there, words);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("1 GiB is put and got, copied once each way", much_there_and_back);
    return check::verdict();
  });
}
