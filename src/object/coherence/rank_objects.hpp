// SPDX-License-Identifier: Apache-2.0
// One rank's part in keeping copies of objects coherent, and in moving objects.
//
//   home     (by arithmetic on the address) serialises moves and destruction, one at a time, first
//            come first served, and knows the owner
//   owner    has the object: runs calls, gives out copies and remembers to whom, and takes them
//   back
//            before a method writes
//   anybody  sends by a guess, which may be wrong; a rank that is not the owner sends on to home.
//            What comes from home is *sure*: it is never sent back, but waits for the object
//
// A method consists of sections: it ends one, and later begins the next, where it suspends. Within
// a section nothing else runs on the object, or only other readers; between sections anything may
// have happened. Nothing waits for a suspended method, but an object does not leave while one is
// suspended in it.
//
// tests/models/objects goes through all states that this code can come to in small jobs.
#pragma once

#include <vector>

#include "object/coherence/entry.hpp"
#include "object/coherence/message.hpp"
#include "object/coherence/services.hpp"

namespace sojourn::detail::coherence {

/// What a call of this rank does next.
enum class next : std::uint8_t {
  run_on_object,  ///< At once: its first section.
  run_on_copy,
  wait,  ///< For its result, or services::wake.
  lost   ///< A rank has ended that it needs.
};

/// How a call asks for an object that is elsewhere.
enum class ask : std::uint8_t {
  to_run,      ///< To be run there.
  for_copy,    ///< For a copy, when its method is const; otherwise for the object.
  for_object,  ///< For the object.
};

class rank_objects {
 public:
  rank_objects(known_objects& known, services& by, int me) : known_(known), by_(by), me_(me) {}

  // Calls of this rank, on its fibers.

  /// A call begins. When it waits, it ends by ended(), or is woken.
  next access(object_id object, const call& c, ask how);
  /// The object is here, nobody has a copy of it, and nothing waits for it: access() would say
  /// run_on_object, and change nothing.
  bool is_quiet(object_id object) const;
  /// The same for a call that is already noted as in progress here (services::methods_in), so that
  /// the object cannot leave before it ends. Requires: the object is here.
  next begin_here(object_id object, const call& c);
  /// It was woken with on_object or on_copy, and runs its first section now.
  void begin(object_id object);
  /// Its result has come.
  void ended(object_id object, const call_name& c);
  /// The object is to be destroyed. The call ends by ended(), or is woken.
  next destroy(object_id object, const call& c);
  /// A const method goes on that was suspended on a copy. True when it may: the copy is good, or
  /// the object is here and the bytes of the copy are made equal to it. Otherwise it waits to be
  /// woken with `refreshed`.
  bool resume_on_copy(object_id object, const call& c);

  // What the rank itself does.

  void arrive(int from, const message& m);
  /// Lets go on what waits for something that has happened meanwhile.
  void go_on(object_id object);
  /// Gives up a copy that is not in use; false when it is, or there is none.
  bool evict(object_id object);
  /// Asks home to take the object back, which is here. It stays when a method is suspended in it.
  void give_back(object_id object);
  /// `rank` has ended, and all that it sent has arrived.
  void note_end_of(int rank);

  /// go_on() would do something.
  bool can_go_on(object_id object) const;
  bool has_object(object_id object) const;
  bool has_copy(object_id object) const;
  /// Where the object was when home heard of it last. Requires: this rank is its home.
  int owner_as_home_knows(object_id object) const;

 private:
  bool is_home(object_id object) const { return by_.home_of(object) == me_; }
  bool home_has_ended(object_id object) const { return by_.has_ended(by_.home_of(object)); }
  entry& at(object_id object);
  bool is_usual_here(object_id object) const;
  directory& directory_of(object_id object);
  /// Forgets what is as if nobody had ever asked for the object.
  void tidy(object_id object);

  // Calls of this rank. (accesses.cpp)
  void send_asking(object_id object, kind what, const call& c);
  void send_home(object_id object, message m);
  void wake(object_id object, const call_name& c, woken how);
  void wake_joined(object_id object, entry& e, woken how);
  void promise(object_id object, entry& e, const call_name& c, woken how);
  /// False of a call that has given up, because a rank has ended.
  static bool is_awaited(const entry& e, const call_name& c);
  static void note_sent(entry& e, const call_name& c, int to, bool refreshes = false);
  static void forget_sent(entry& e, const call_name& c);
  bool must_hold_invalidation(const entry& e) const;
  void give_copy_up(object_id object, entry& e);
  void take_grant(object_id object, entry& e, const message& m);
  void take_object(object_id object, entry& e, const message& m);
  void end_of_call(object_id object, const call_name& c, outcome how);

  // The owner's. (owner.cpp)
  enum class may_defer : bool { no, yes };
  bool begins(object_id object, entry& e, const call& c, may_defer defer, std::uint8_t hops);
  void run(object_id object, entry& e, const call& c);
  void serve(object_id object, entry& e, const message& m);
  void serve_copy(object_id object, entry& e, const message& m);
  void serve_order(object_id object, entry& e, const message& m);
  void invalidate(object_id object, entry& e, int all_but);
  bool may_carry_out(const entry& e) const;
  void carry_out(object_id object, entry& e);
  void hand_over(object_id object, entry& e);
  void refuse_order(object_id object, entry& e);

  // Home's. (home.cpp)
  void home_request(const message& m);
  void home_serve(const message& m);
  void home_serve_move(directory& d, const message& m);
  void home_told(object_id object, outcome how);
  void home_lacks(const message& m, outcome why);
  void answer(object_id object, const call& c, kind what, outcome how);
  void lose(object_id object);
  void hear_of_loss(object_id object);

  known_objects& known_;
  services& by_;
  int me_;
};

}  // namespace sojourn::detail::coherence
