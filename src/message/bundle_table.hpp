// SPDX-License-Identifier: Apache-2.0
// The bundles of calls (detail/bundle.hpp) that wait to be sent, one to each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "message/runtime_message.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/bundle.hpp"

namespace sojourn::detail {

/// Precedes the payloads of a run: calls of one function, or of one method of one object, one after
/// the other. The object's address follows, if there is one.
struct run_header {
  std::uint32_t handler;
  std::uint32_t count;  ///< Of payloads; where they differ in length, their bytes.
};
inline std::size_t header_bytes_of(const bundled_function& called) {
  return sizeof(run_header) + (called.has_object ? sizeof(std::uint64_t) : 0);
}

inline void write_run_header(std::byte* at, const bundled_function& called, std::uint64_t object,
                             std::uint32_t count) {
  const run_header header{called.handler, count};
  std::memcpy(at, &header, sizeof header);
  if (called.has_object) std::memcpy(at + sizeof header, &object, sizeof object);
}

/// The calls that wait to go to one rank. What inlined code needs of it is in `open`.
struct bundle {
  open_run* open = nullptr;
  std::byte* first = nullptr;
  std::byte* end = nullptr;  ///< End of the room for runs.
  std::size_t memory = 0;    ///< Bytes from `first` on.
  std::byte* run = nullptr;  ///< The header of the last run.
  scope_ticket weight{};     ///< Weight of the scope in which all of its calls count.
  std::uint64_t since = 0;   ///< now_ns() when its first call was made.

  bool is_empty() const { return open->next == first; }
  std::size_t bytes() const { return static_cast<std::size_t>(open->next - first); }
  std::size_t room() const { return static_cast<std::size_t>(end - open->next); }
  /// Writes the header of the last run, to which no more calls are added.
  void close_run() {
    if (open->called == nullptr) return;
    const std::size_t payloads =
        static_cast<std::size_t>(open->next - run) - header_bytes_of(*open->called);
    const bool is_counted = open->called->stride != 0;
    const std::size_t count = is_counted ? payloads / open->called->stride : payloads;
    write_run_header(run, *open->called, open->object, static_cast<std::uint32_t>(count));
    if (is_counted) counts.calls_bundled += count;
    open->called = nullptr;
  }
};

/// Null: this rank has never bundled anything.
extern bundle* bundles;
/// How many of the bundles hold calls.
extern std::size_t bundles_waiting;
/// The number of the handler that runs bundles. Written once, before main.
extern std::uint16_t bundle_handler;

/// Bytes that what is bundled for `to` needs in the next message; 0 when nothing is.
std::size_t bundle_bytes(int to);

}  // namespace sojourn::detail
