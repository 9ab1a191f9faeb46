// SPDX-License-Identifier: Apache-2.0
// via::automatic: what each place in the program has chosen for its calls of objects on other
// ranks. How it is chosen: src/object/automatic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/running.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

/// A place in the program that calls. It is known by the address to which perform() returns there,
/// which is the same on all ranks.
struct call_place {
  std::uint64_t code = 0;
  via now = via::rpc;
  std::int32_t left = 0;    ///< So many calls are made so before this place is looked at again.
  bool calls_owner = true;  ///< `now` is via::rpc: found out more quickly, because rpc is quick.

  void take(via next) {
    now = next;
    calls_owner = next.how() == via::mechanism::rpc;
  }
};
/// Places that are used now, by a hash of their addresses; the others are found more slowly. None
/// is null.
inline constexpr unsigned place_bits = 8;
extern call_place* call_places[1u << place_bits];
[[gnu::always_inline]] inline call_place*& slot_of_place(std::uint64_t code) {
  // Bodies of one template begin at multiples of 16, and are alike.
  static_assert(place_bits == 8);
  return call_places[static_cast<std::uint8_t>(code >> 4)];
}

/// An activation has migrated to this rank, and what it does here is watched: it is the one outside
/// any younger activation whose base is `base`. When none is watched, `youngest` is no mark.
struct watched_landing {
  const mark* youngest;
  const void* base;
};
extern watched_landing last_landing;

/// What the ways to make a call need.
struct possible_ways {
  const char* method;  ///< The compiler's name.
  bool can_migrate;
  via::mechanism bringing;  ///< cache or fetch; rpc: neither will do.
};
via choose_way_slowly(std::uint64_t code, int owner, const possible_ways& possible);

/// How a call is made that is to choose itself, and whose object is on rank `owner`. Never
/// suspends. `possible()` returns possible_ways.
template <class Possible>
[[gnu::always_inline]] inline via choose_way(std::uint64_t code, int owner, Possible possible) {
  call_place* const place = slot_of_place(code);
  if (place->code == code && running.youngest != last_landing.youngest && --place->left >= 0)
      [[likely]]
    return place->calls_owner ? via::rpc : place->now;
  return choose_way_slowly(code, owner, possible());
}

/// To be called when the activation has come here from rank `from` by a call whose way was chosen.
void watch_landing(std::uint64_t code, int from);
/// Lives while that call is made.
class watched_call {
 public:
  watched_call(std::uint64_t code, int from) { watch_landing(code, from); }
  ~watched_call();
  watched_call(const watched_call&) = delete;
  watched_call& operator=(const watched_call&) = delete;
};
/// The activation could not migrate there.
void note_migration_refused(std::uint64_t code, int owner);

/// The watched activation has ended here.
void landing_ended();
[[gnu::always_inline]] inline void note_activation_end() {
  if (running.base == last_landing.base) [[unlikely]]
    landing_ended();
}

}  // namespace sojourn::detail
