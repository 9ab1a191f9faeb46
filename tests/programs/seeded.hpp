// SPDX-License-Identifier: Apache-2.0
// What the random programs of this folder share: numbers that follow from a seed, and a limit of
// time that names the seed of the program that exceeds it.
#pragma once

#include <signal.h>
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>

namespace seeded {

using u64 = std::uint64_t;

inline u64 mix(u64 a, u64 b) {
  u64 z = (a ^ b * 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline const char* test_name = "";
inline u64 seed_now = 0;
inline unsigned limit_seconds = 60;

inline void say_hung(int) {
  std::array<char, 128> text{};
  const int n = std::snprintf(text.data(), text.size(),
                              "%s: rank %d: the program of seed %llu does not end\n", test_name,
                              sojourn::rank_me(), static_cast<unsigned long long>(seed_now));
  if (n > 0) (void)!write(2, text.data(), static_cast<std::size_t>(n));
  _exit(3);
}

/// From now on a program that takes longer than the limit ends the process.
inline void watch(const char* test) {
  test_name = test;
  struct sigaction action{};
  action.sa_handler = say_hung;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGALRM, &action, nullptr);
}

/// The program of this seed begins.
inline void begin(u64 seed) {
  seed_now = seed;
  alarm(limit_seconds);
}

/// The number that the text is, if it is one.
inline std::optional<u64> number_in(const char* text) {
  u64 value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failure] = std::from_chars(text, end, value);
  if (failure != std::errc{} || at != end) return std::nullopt;
  return value;
}

}  // namespace seeded
