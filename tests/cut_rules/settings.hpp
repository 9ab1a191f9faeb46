// SPDX-License-Identifier: Apache-2.0
// What one run of the random programs is, what it counts, and how it fails.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sojourn/sojourn.hpp"

namespace cut_rules {

using u64 = std::uint64_t;

/// Equal in all ranks; a frame that moved finds it at the same address.
struct run_settings {
  const char* program = "";
  u64 seed = 1;          ///< Of the first program.
  u64 programs = 200;    ///< Of each rank.
  u64 concurrent = 8;    ///< Programs of one rank at a time.
  u64 depth = 4;         ///< Of nested computations.
  unsigned limit_s = 0;  ///< Give up after so long; 0: never.
  const char* broken_rule = nullptr;
  u64 skip = 0;  ///< Kinds of steps to leave out, a bit each: narrows a failure down.
};
inline run_settings settings;
/// Whether a broken rule is reported where it is broken. Not when it is broken on purpose: what is
/// to be seen then is that programs crash, hang or come to wrong values.
inline bool watch_rules() { return settings.broken_rule == nullptr; }

/// Whether a thread that waits may go on elsewhere without having asked for it.
inline bool others_move_threads() {
  static const char* const balance = std::getenv("SOJOURN_BALANCE");
  return balance != nullptr && std::strcmp(balance, "none") != 0;
}

/// Things that must have happened for a run to mean anything.
enum class event : unsigned {
  moved,                 ///< A migration took place.
  moved_with_children,   ///< While by-value children of the moving frame were unfinished.
  moved_back,            ///< To the rank where the program began.
  refused,               ///< A migration was refused.
  refused_in_handler,    ///< In a catch block.
  refused_in_unwinding,  ///< In a destructor that runs because of an exception.
  refused_by_reference,  ///< Because a child refers to the frames.
  refused_by_stay,
  fork_went_on,  ///< A fork's child blocked and its parent went on.
  fork_by_reference_went_on,
  fork_returned,        ///< A fork's child did not block.
  joined_away,          ///< A future was read on another rank than it was made on.
  exception_by_ticket,  ///< A child's exception arrived by ticket.
  waited_in_handler,
  waited_in_unwinding,
  wrote_to_ancestor,  ///< After waiting, a by-reference child wrote to its parent's frame.
  finished_scope,
  joined_thread,
  count_
};
inline constexpr std::size_t event_count = static_cast<std::size_t>(event::count_);
inline constexpr std::array<const char*, event_count> event_names = {
    "moved",
    "moved with children",
    "moved back",
    "refused",
    "refused in a handler",
    "refused in unwinding",
    "refused for a by-reference child",
    "refused for a stay",
    "fork went on",
    "by-reference fork went on",
    "fork returned",
    "joined on another rank",
    "exception by ticket",
    "waited in a handler",
    "waited in unwinding",
    "wrote to an ancestor",
    "finished a scope",
    "joined a thread",
};
inline std::array<u64, event_count> events;
inline void happened(event e) { ++events[static_cast<std::size_t>(e)]; }

/// Ends the job; says how to repeat it.
[[noreturn, gnu::format(printf, 2, 3)]] inline void fail(u64 seed, const char* format, ...) {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  std::fprintf(stderr,
               "cut_rules: rank %d: %s, in computation %llx; replay: sojourn run -n %d %s --seed "
               "%llu --programs %llu --concurrent %llu --depth %llu --skip %llu%s%s\n",
               sojourn::rank_me(), what, static_cast<unsigned long long>(seed),
               sojourn::rank_count(), settings.program,
               static_cast<unsigned long long>(settings.seed),
               static_cast<unsigned long long>(settings.programs),
               static_cast<unsigned long long>(settings.concurrent),
               static_cast<unsigned long long>(settings.depth),
               static_cast<unsigned long long>(settings.skip),
               settings.broken_rule != nullptr ? " --break " : "",
               settings.broken_rule != nullptr ? settings.broken_rule : "");
  std::fflush(stderr);
  std::abort();
}

/// Random numbers are hashes of hashes. The top bit is set, so that none looks like an address.
constexpr u64 hash(u64 x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return (x ^ x >> 32) | u64{1} << 63;
}
constexpr u64 mix(u64 a, u64 b) { return hash(a * 31 + b + 1); }

/// A sequence that is a function of its seed.
class random_numbers {
 public:
  explicit random_numbers(u64 seed) : state_(seed) {}
  u64 operator()() { return hash(state_ += 0x987'6543'2101ull); }

 private:
  u64 state_;
};

inline int rank_of(u64 x) {
  return static_cast<int>((x >> 8) % static_cast<u64>(sojourn::rank_count()));
}
/// Any rank but this one; this one when it is alone.
inline int other_rank_of(u64 x) {
  int n = sojourn::rank_count();
  return n == 1
             ? 0
             : (sojourn::rank_me() + 1 + static_cast<int>((x >> 8) % static_cast<u64>(n - 1))) % n;
}

}  // namespace cut_rules
