// SPDX-License-Identifier: Apache-2.0
// An access to an object that may be on any rank: how its call is made.
#pragma once

#include <cstdint>

#include "sojourn/counters.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/choice.hpp"
#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/moves.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

// What perform() must know of a call is a class `Call` with these members:
//   result, arguments    types; `arguments` is a tuple of what travels
//   is_plain             the frames of the access own nothing, so that they may migrate
//   name()               the compiler's name of what is called
//   run_here(address, site, arguments)       calls it on this rank, which owns the object
//   send(owner, address, site, arguments)    sends the call; returns the ticket of its result
//   is_cacheable         a const method of an object whose copies can be used; then also
//   is_never_copied(name)   no copies are made of such objects all the same; says so once, unless
//                        `name` is null
//   may_choose_copy(said)  a call that chooses by itself may ask for a copy (`said`: the program
//                        says that it is to choose)
//   called               the type of the object; object_bytes: how long it is; shape(): that and
//                        the number of the type
//   writes               the method is not const
//   is_movable           the object can move; then also
//   is_never_moved(name) it does not move all the same; says so once, unless `name` is null
//   run_on_object(place, address, site, arguments)   calls it on the object, wherever that was made
//   run_on(copy, arguments)                  calls it on a copy
//   send_by(way, address, site, arguments)   sends the call on this way (request.hpp)
// `site` is for checked mode: where in the program, and on which rank, the access was made.

/// Sends the call and waits for its result. A function of its own, so that the frame of perform(),
/// which may migrate, has no room for request and reply.
template <class Call>
[[gnu::noinline]] typename Call::result call_by_message(int owner, std::uint64_t address,
                                                        code_site site,
                                                        typename Call::arguments& a) {
  using result = typename Call::result;
  if constexpr (Call::is_plain) {
    return take_value<result>(Call::send(owner, address, site, a));
  } else {
    stays_here stays;
    return take_value<result>(Call::send(owner, address, site, a));
  }
}

/// What a call that is to choose its way (via::automatic) comes to. `code`: where perform() returns
/// to.
template <class Call>
[[gnu::always_inline]] inline via chosen_way(via how, std::uint64_t code, int owner) {
  if (how.how() != via::mechanism::automatic) return how;
  return choose_way(code, owner, [how] {
    const bool may_move = !how.is_unsaid();
    possible_ways possible{Call::name(), Call::is_plain && may_move, via::mechanism::rpc};
    if constexpr (Call::is_cacheable) {
      if (Call::may_choose_copy(may_move)) possible.bringing = via::mechanism::cache;
    }
    if constexpr (Call::is_movable && Call::writes) {
      if (may_move && !Call::is_never_moved(nullptr)) possible.bringing = via::mechanism::fetch;
    }
    return possible;
  });
}

/// What has been chosen, if that may be for this call. Another call can return to the same address,
/// where a compiler has merged the two, or said another word the time before.
template <class Call>
[[gnu::always_inline]] inline via permitted(via chosen, via said) {
  if (said.how() != via::mechanism::automatic) return chosen;
  const bool moves = chosen.how() != via::mechanism::cache;
  if (moves && said.is_unsaid()) return via::rpc;
  if constexpr (Call::is_cacheable) {
    if (!moves && !Call::may_choose_copy(!said.is_unsaid())) return via::rpc;
  }
  return chosen;
}

/// Moves the current activation to the owner, if `how` says so and that is possible. A call that
/// has chosen its way still says via::automatic when that is to migrate.
template <class Call>
[[gnu::always_inline]] inline bool moves_to(int owner, via how, std::uint64_t code) {
  if (how.how() != via::mechanism::migrate && how.how() != via::mechanism::automatic) return false;
  if constexpr (Call::is_plain) {
    if (migrate_activations(owner, how)) return true;
    if (how.how() == via::mechanism::automatic) note_migration_refused(code, owner);
  } else {
    ++counts.migrations_refused;
  }
  return false;
}

/// Runs a const method on a copy of the object, if one is here or can be had; otherwise it is run
/// at the owner.
template <class Call>
[[gnu::noinline]] typename Call::result call_on_copy(int owner, std::uint64_t address, via how,
                                                     code_site site, typename Call::arguments& a) {
  using result = typename Call::result;
  using then = asks_for_copy::then;
  stays_here stays;
  asks_for_copy asks(owner, address, Call::shape(), how.is_chosen() ? site.code : 0);
  ticket_id ticket = 0;
  then next = asks.start();
  if (next == then::send) {
    ticket = Call::send_by(asks, address, site, a);
    next = asks.wait(ticket);
  } else if (next == then::wait) {
    next = asks.wait(0);
  }
  if (next == then::on_copy) return Call::run_on(asks.copy(), a);
  if (next == then::on_object) {
    const object_place at = find_object(address, Call::shape());
    if (at.here != nullptr) return Call::run_on_object(at, address, site, a);
    owner = at.rank;
  }
  if (ticket == 0) ticket = Call::send(owner, address, site, a);
  return take_value<result>(ticket);
}

/// The object is to move here, as `how` says: to be fetched, or to be changed where it is cached.
template <class Call>
[[gnu::always_inline]] inline bool wants_object(via how) {
  if (how.how() == via::mechanism::fetch) return !Call::is_never_moved(Call::name());
  return how.how() == via::mechanism::cache && Call::writes && !Call::is_never_moved(nullptr);
}

/// Runs a method on the object after it has moved to this rank; at its owner, when it does not
/// move.
template <class Call>
[[gnu::noinline]] typename Call::result call_on_object(int owner, std::uint64_t address, via how,
                                                       code_site site,
                                                       typename Call::arguments& a) {
  using result = typename Call::result;
  stays_here stays;
  const object_place at =
      bring_object(address, Call::shape(), Call::writes, how.is_chosen() ? site.code : 0);
  if (at.here != nullptr) return Call::run_on_object(at, address, site, a);
  if (at.rank != job.me) owner = at.rank;
  return take_value<result>(Call::send(owner, address, site, a));
}

/// perform() on a rank that knows of objects which have moved. `a` lies in the frame of perform(),
/// which migrates with this one.
template <class Call>
[[gnu::noinline]] typename Call::result perform_on_moved(std::uint64_t address, via how,
                                                         code_site site,
                                                         typename Call::arguments& a) {
  // So often an object can leave before the computation that follows it arrives.
  constexpr int most_moves = 4;
  via chosen = how;
  int made_on = job.me;
  for (int moves = 0;; ++moves) {
    object_place at{nullptr, nullptr, owner_of(address)};
    if constexpr (Call::is_movable) {
      at = find_object(address, Call::shape());
    } else if (at.rank == job.me) {
      bring_parts_home(address, Call::object_bytes);
      at.here = reinterpret_cast<void*>(address);
    }
    if (at.here != nullptr) {
      if (moves != 0 && chosen.is_chosen()) {
        const watched_call watched(site.code, made_on);
        return Call::run_on_object(at, address, site, a);
      }
      return Call::run_on_object(at, address, site, a);
    }
    made_on = job.me;
    chosen = permitted<Call>(chosen_way<Call>(how, site.code, at.rank), how);
    if constexpr (Call::is_movable) {
      if (wants_object<Call>(chosen))
        return call_on_object<Call>(at.rank, address, chosen, site, a);
    }
    if constexpr (Call::is_cacheable) {
      if (chosen.how() == via::mechanism::cache && !Call::is_never_copied(Call::name()))
        return call_on_copy<Call>(at.rank, address, chosen, site, a);
    }
    if (moves == most_moves || !moves_to<Call>(at.rank, chosen, site.code))
      return call_by_message<Call>(at.rank, address, site, a);
  }
}

/// Makes an access whose object may be on any rank. Suspends; migrates, if `how` says so.
template <class Call>
[[gnu::noinline]] typename Call::result perform(std::uint64_t address, access how,
                                                typename Call::arguments a) {
  via said = how.how;
  const int owner = owner_of_object(address, Call::name());
  if (job.overrides != 0) [[unlikely]] {
    said = override_access(how, Call::name(), __builtin_return_address(0), owner != job.me);
    // global_ptr::call() has not looked for one, because the word was not known.
    if constexpr (Call::is_cacheable) {
      if (said.how() == via::mechanism::automatic && owner != job.me &&
          Call::may_choose_copy(!said.is_unsaid()) &&
          copy_at_hand<typename Call::called>(address) != nullptr)
        return call_on_copy<Call>(owner, address, via::cache, site_of(__builtin_return_address(0)),
                                  a);
    }
  }
  via chosen = said;
  // In two statements, because this may be another rank after the move; and the whole site would
  // travel with this frame.
  const int made_on = job.me;
  if (job.has_moved && may_have_moved(address, Call::object_bytes)) [[unlikely]]
    return perform_on_moved<Call>(address, said, site_of(__builtin_return_address(0)), a);
  if (owner != made_on) {
    const auto code = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
    chosen = chosen_way<Call>(said, code, owner);
    if (chosen.how() == via::mechanism::rpc)
      return call_by_message<Call>(owner, address, site_of(__builtin_return_address(0)), a);
    chosen = permitted<Call>(chosen, said);
    if constexpr (Call::is_movable) {
      if (wants_object<Call>(chosen))
        return call_on_object<Call>(owner, address, chosen, site_of(__builtin_return_address(0)),
                                    a);
    }
    if constexpr (Call::is_cacheable) {
      if (chosen.how() == via::mechanism::cache && !Call::is_never_copied(Call::name()))
        return call_on_copy<Call>(owner, address, chosen, site_of(__builtin_return_address(0)), a);
    }
    if (!moves_to<Call>(owner, chosen, code))
      return call_by_message<Call>(owner, address, site_of(__builtin_return_address(0)), a);
  }
  code_site site = site_of(__builtin_return_address(0));
  site.rank = made_on;
  if (chosen.is_chosen()) [[unlikely]] {
    const watched_call watched(site.code, made_on);
    if (job.has_moved) return perform_on_moved<Call>(address, via::rpc, site, a);
    return Call::run_here(address, site, a);
  }
  if (job.has_moved) [[unlikely]]
    return perform_on_moved<Call>(address, via::rpc, site, a);
  return Call::run_here(address, site, a);
}

}  // namespace sojourn::detail
