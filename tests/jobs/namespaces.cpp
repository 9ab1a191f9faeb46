// SPDX-License-Identifier: Apache-2.0
// Ranks in PID namespaces of their own (namespaces.sh): the number of a rank's process is another
// process's there, or nobody's. What is read from other ranks' memory where that is possible goes
// in messages, and nothing is wrong.
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "shared_cells.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

std::vector<long> numbers(std::size_t count, long first) {
  std::vector<long> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

bool are_numbers(std::span<const long> all, std::size_t count, long first) {
  bool right = all.size() == count;
  for (std::size_t i = 0; i < all.size(); ++i) right &= all[i] == first + static_cast<long>(i);
  return right;
}

constexpr std::size_t many = 2'000'000;

void long_arguments_arrive() {
  const long mine = 1000 * rank_me();
  CHECK(rpc(
            next(), [](std::vector<long> v, long first) { return are_numbers(v, many, first); },
            numbers(many, mine), mine)
            .get());
  const std::vector<long> seen = numbers(many, mine + 7);
  CHECK(rpc(
            next(),
            [](view<long> v, long first) {
              return are_numbers(std::span(v.data(), v.size()), many, first);
            },
            view(seen), mine + 7)
            .get());
  barrier();
}

void long_results_arrive() {
  const auto result = rpc(next(), [] { return numbers(many, rank_me()); }).get();
  CHECK(are_numbers(result, many, next()));
  barrier();
}

void memory_is_put_and_got() {
  constexpr std::size_t count = 100'000;
  const auto all = all_gather(make_array<long>(rank_me(), count));
  const auto there = all[static_cast<std::size_t>(next())];
  const std::vector<long> stored = numbers(count, rank_me());
  put(std::span<const long>(stored), there);
  barrier();
  std::vector<long> found(count);
  get(all[static_cast<std::size_t>(rank_me())], std::span<long>(found));
  CHECK(are_numbers(found, count, (rank_me() + rank_count() - 1) % rank_count()));
  get(there, std::span<long>(found));
  CHECK(are_numbers(found, count, rank_me()));
  barrier();
  destroy_array(all[static_cast<std::size_t>(rank_me())], count);
}

/// Of 100 KB, which is longer than any message.
long carry() {
  char frame[100'000];
  std::memset(frame, 5, sizeof frame);
  for (rank_t r = 0; r < rank_count(); ++r) migrate(self(), r);
  long sum = 0;
  for (const char c : frame) sum += c;
  return sum;
}

void long_frames_move() {
  const auto result = make<long>(rank_me(), 0L);
  spawn([](global_ptr<long> to) { store(to, carry()); }, result).join();
  CHECK_EQUAL(load(result), 500'000);
  destroy(result);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("long arguments arrive", long_arguments_arrive);
    check::claim("long results arrive", long_results_arrive);
    check::claim("memory is put and got", memory_is_put_and_got);
    check::claim("long frames move", long_frames_move);
    check::claim("pages are shared", pages_are_shared);
    return check::verdict();
  });
}
