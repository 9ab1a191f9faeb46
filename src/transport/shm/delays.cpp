// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/delays.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail::shm {

namespace {

/// How a ring delays messages: one in so many, for at most so long. Each manner delays a message by
/// some ten microseconds on average, so that programs of many calls come to their end: longer
/// delays are rarer.
struct manner {
  std::uint32_t hold_one_in;
  std::uint32_t longest_ns;
};
constexpr manner manners[] = {
    {1, 20'000}, {2, 40'000}, {4, 300'000}, {32, 3'000'000}, {128, 10'000'000}};
constexpr unsigned magnitudes = 8;  // of delays, each half as long as the one before

// splitmix64: all seeds are good, even successive numbers.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace

std::size_t delays::memory_bytes(std::size_t rings) { return rings * sizeof(ring); }

delays::delays(std::uint64_t seed, int rank, std::size_t rings, void* memory)
    : rings_(static_cast<ring*>(memory)) {
  std::uint64_t state = seed * 1'000'003 + static_cast<std::uint64_t>(rank);
  random_.seed(static_cast<std::uint32_t>(next_random(state)));
  for (std::size_t i = 0; i < rings; ++i) {
    const manner& m = manners[next_random(state) % std::size(manners)];
    ::new (rings_ + i) ring{m.hold_one_in, m.longest_ns, next_random(state), 0, false};
  }
}

bool delays::seed_from_environment(std::uint64_t& seed) {
  const char* text = std::getenv("SOJOURN_DELAY");
  if (text == nullptr || *text == '\0') return false;
  const char* end = text + std::strlen(text);
  const auto [read_to, failure] = std::from_chars(text, end, seed);
  if (failure != std::errc() || read_to != end) {
    throw error(format("SOJOURN_DELAY=%s is not a whole number: give a seed, such as 1", text));
  }
  return true;
}

bool delays::holds(std::size_t index, std::uint64_t now_ns) {
  ring& r = rings_[index];
  if (!r.looked_at) {
    r.looked_at = true;
    r.until_ns = 0;
    if (next_random(r.random) % r.hold_one_in == 0) {
      // All magnitudes are equally likely.
      const std::uint64_t most = r.longest_ns >> next_random(r.random) % magnitudes;
      r.until_ns = now_ns + most / 2 + next_random(r.random) % (most / 2 + 1);
    }
  }
  return now_ns < r.until_ns;
}

void delays::passed(std::size_t index) { rings_[index].looked_at = false; }

}  // namespace sojourn::detail::shm
