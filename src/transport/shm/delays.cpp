// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/delays.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <new>
#include <string_view>

#include "base/check.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail::shm {

namespace {

/// How a ring delays messages in the test mode: one message in `hold_one_in`, for at most
/// `longest_ns`. In each manner, messages are delayed by some ten microseconds on average, so that
/// programs of many calls come to their end; long delays are rare.
struct manner {
  std::uint32_t hold_one_in;
  std::uint32_t longest_ns;
};
constexpr manner manners[] = {
    {1, 20'000}, {2, 40'000}, {4, 300'000}, {32, 3'000'000}, {128, 10'000'000}};
constexpr unsigned magnitudes = 8;  // of delays; each is half as long as the one before

/// A second: a rank whose messages are held longer would look as if it hung.
constexpr std::uint64_t longest_ns = 1'000'000'000;

// splitmix64: all seeds are good, even successive numbers.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Takes the digits off with which `text` begins. Returns false when there are none, or too many.
bool take_number(std::string_view& text, std::uint64_t& to) {
  const auto [read_to, failure] = std::from_chars(text.data(), text.data() + text.size(), to);
  text.remove_prefix(static_cast<std::size_t>(read_to - text.data()));
  return failure == std::errc();
}

/// "200us" or "3ms", up to a second.
bool take_time(std::string_view& text, std::uint64_t& to_ns) {
  std::uint64_t count = 0;
  if (!take_number(text, count)) return false;
  const bool ms = text.starts_with("ms");
  if (!ms && !text.starts_with("us")) return false;
  text.remove_prefix(2);
  const std::uint64_t unit_ns = ms ? 1'000'000 : 1000;
  if (count > longest_ns / unit_ns) return false;
  to_ns = count * unit_ns;
  return true;
}

bool take_colon(std::string_view& text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<delay_setting> parsed(std::string_view text) {
  delay_setting all;
  std::string_view seed = text;
  if (take_number(seed, all.seed) && seed.empty()) return all;
  all.seed = delay_setting().seed;
  std::uint64_t way_ns = 0;
  if (!take_time(text, way_ns)) return std::nullopt;
  all.way_ns = way_ns;
  if (take_colon(text)) {
    if (!take_time(text, all.jitter_ns)) return std::nullopt;
    if (take_colon(text) && !take_number(text, all.seed)) return std::nullopt;
  }
  return text.empty() ? std::optional(all) : std::nullopt;
}

}  // namespace

std::optional<delay_setting> delay_setting::from_environment() {
  const char* text = std::getenv("SOJOURN_DELAY");
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto setting = parsed(text);
  if (!setting) {
    throw error(
        format("SOJOURN_DELAY=%s is neither a seed nor a time: give a whole number, such as 1, for "
               "random delays, or how long messages take, such as 200us, with jitter 200us:50us, "
               "with its seed 200us:50us:7; times in us or ms, up to 1000ms",
               text));
  }
  return setting;
}

std::size_t delays::memory_bytes(std::size_t rings) { return rings * sizeof(ring); }

delays::delays(const delay_setting& by, int rank, std::size_t rings, void* memory)
    : by_(by), rings_(static_cast<ring*>(memory)) {
  std::uint64_t state = by.seed * 1'000'003 + static_cast<std::uint64_t>(rank);
  random_.seed(static_cast<std::uint32_t>(next_random(state)));
  for (std::size_t i = 0; i < rings; ++i) {
    manner m = manners[next_random(state) % std::size(manners)];
    if (!is_test_mode()) {
      const bool own = i / 2 == static_cast<std::size_t>(rank) || i + 1 == rings;
      m = {own ? 0u : 1u, 0};
    }
    ::new (rings_ + i) ring{m.hold_one_in, m.longest_ns, next_random(state), 0, false};
  }
}

std::uint64_t delays::due(std::size_t index, std::uint32_t sent, std::uint64_t now_ns) {
  ring& r = rings_[index];
  if (r.looked_at) return r.until_ns;
  r.looked_at = true;
  r.until_ns = 0;
  if (r.hold_one_in == 0) return 0;
  if (!is_test_mode()) {
    // The rank may have read the clock and then lost its core, so that `sent` is later than its
    // time. (A time that looks much later is one of long ago: the numbers have begun again since.)
    constexpr std::int32_t ticks_ahead_max = 1'000'000'000 / tick_ns;
    const std::uint64_t ticks = now_ns / tick_ns;
    const auto ahead = static_cast<std::int32_t>(sent - static_cast<std::uint32_t>(ticks));
    const std::int64_t sent_after = std::min(ahead, ticks_ahead_max);
    const std::uint64_t sent_ns = (ticks + static_cast<std::uint64_t>(sent_after)) * tick_ns;
    r.until_ns = sent_ns + *by_.way_ns + next_random(r.random) % (by_.jitter_ns + 1);
  } else if (next_random(r.random) % r.hold_one_in == 0) {
    // All magnitudes are equally likely.
    const std::uint64_t most = r.longest_ns >> next_random(r.random) % magnitudes;
    r.until_ns = now_ns + most / 2 + next_random(r.random) % (most / 2 + 1);
  }
  return r.until_ns;
}

void delays::passed(std::size_t index) { rings_[index].looked_at = false; }

}  // namespace sojourn::detail::shm
