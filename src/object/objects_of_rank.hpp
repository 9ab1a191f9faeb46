// SPDX-License-Identifier: Apache-2.0
// One rank's part in copies of objects and in objects that move: joins the protocol (coherence/) to
// messages, fibers and memory. Its sources:
//
//   copies.cpp            calls that ask for a copy, and methods that were suspended on one
//   copies_given.cpp      what the owner of an object does: gives copies, and takes them back
//   moves.cpp             where an object is; calls that ask for the object itself
//   attached.cpp          objects that move together
//   object_messages.cpp   messages, and what they wake
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fiber/piece.hpp"
#include "memory/runtime_resource.hpp"
#include "message/losses.hpp"
#include "object/coherence/rank_objects.hpp"
#include "object/copied_objects.hpp"
#include "object/copy_memory.hpp"
#include "object/waiting_calls.hpp"
#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/moves.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/tasks.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

/// A message of the protocol, before the bytes of the object if it brings any.
struct object_message {
  coherence::kind what;
  coherence::outcome how;
  std::int16_t rank;
  std::int32_t caller;
  std::uint64_t number;
  std::uint64_t address;
  std::uint32_t bytes;  ///< Of the object.
  std::uint16_t type;   ///< object_shape::type
  std::uint8_t hops;
  std::uint8_t writes : 1;
  std::uint8_t is_sure : 1;
  std::uint8_t is_chosen : 1;    ///< Of take: the call has chosen to have the object moved.
  std::uint8_t is_attached : 1;  ///< Of take: there is no call; the object is to follow another.
};
/// Tells a rank where an object probably is, which it has looked for elsewhere; or tells home that
/// the object has come to the sender, for a call or after one that it is attached to. A question
/// (`ticket`) is about nothing: when its answer is there, so is what was sent before the answer.
struct object_place_message {
  enum class kind : std::uint32_t { probable_place, has_come, has_followed, question, answer };
  std::uint64_t address;
  ticket_id ticket;
  std::int32_t rank;
  kind what;
};
/// What stands before a call that asks for a copy.
struct copy_or_call_header {
  std::uint64_t address;
  std::uint64_t number;
  std::uint32_t bytes;
  std::uint16_t handler;
  std::uint16_t is_chosen;  ///< The call has chosen to ask (via::automatic).
  std::uint16_t type;       ///< object_shape::type
  std::uint16_t must_run;   ///< The call runs, because its sender keeps values for it.
  std::uint32_t unused;
};
static_assert(sizeof(copy_or_call_header) % 16 == 0);

/// An object that moves to where another has moved.
struct attached_object {
  std::uint64_t address;
  object_shape shape;
};

class objects_of_rank final : public coherence::services, in_runtime_memory {
 public:
  using in_runtime_memory::operator new;
  using in_runtime_memory::operator delete;

  explicit objects_of_rank(std::size_t most) : most_(most) {}

  // What calls do here. On fibers.
  asks_for_copy::then start(asks_for_copy& asks);
  asks_for_copy::then wait(asks_for_copy& asks, ticket_id ticket);
  void end(asks_for_copy& asks);
  bool begin_change(std::uint64_t address, std::size_t bytes);
  void end_change(std::uint64_t address, std::size_t bytes);
  void give_up_copies(std::uint64_t address, std::size_t bytes);
  void serve_copy_or_call(request& m);
  object_place find(std::uint64_t address, object_shape shape);
  object_place find_for(int caller, std::uint64_t address, object_shape shape);
  object_place bring_here(std::uint64_t address, object_shape shape, bool writes,
                          std::uint64_t chosen_at = 0, bool is_attached = false);
  object_place bring_for_call(std::uint64_t address, object_shape shape, bool writes,
                              std::uint64_t chosen_at);
  /// What is here of an object of another rank; null: nothing.
  copy_block* copy_of(std::uint64_t address) {
    return memory_ == nullptr ? nullptr : memory_->find(address);
  }
  /// Asks the rank where the object was made to take it back (rank_objects::give_back).
  void give_back(std::uint64_t address) { rules().give_back(address); }
  int probable_place(std::uint64_t address);
  bool bring_all_home();
  void bring_parts_home(std::uint64_t address, std::size_t bytes);
  void refuse_if_away(std::uint64_t address, std::size_t bytes);
  bool fix_if_here(std::uint64_t address, bool fixed);
  int place_that_home_knows(std::uint64_t address);

  // Of objects that were made here.
  void note_attached(std::uint64_t address, object_shape shape, std::uint64_t to);
  void attach_here(std::uint64_t to, const attached_object& object);
  void detach_here(std::uint64_t to, std::uint64_t object);
  void end_following(std::uint64_t object, std::uint64_t to);
  std::vector<attached_object> attached_to(std::uint64_t address) const;
  bool follows(std::uint64_t address, object_shape shape) const;
  /// The object has come to this rank: brings those here that are attached to it. On a fiber.
  void bring_attached(std::uint64_t address);

  // What messages and the scheduler do here.
  void arrive(const arrival& a, const object_message& m);
  void hear_of_place(int from, const object_place_message& m);
  void tell_place(int to, const object_place_message& told);
  bool refresh(piece* p);
  void note_end_of(int rank);
  std::uint64_t original(std::uint64_t address) const { return memory_->original(address); }

  // coherence::services
  int ranks() const override { return job.count; }
  int home_of(std::uint64_t object) const override { return owner_of(object); }
  int guess(std::uint64_t object) const override;
  void note_place(std::uint64_t object, int rank) override;
  bool has_ended(int rank) const override { return is_lost(rank); }
  coherence::in_progress methods_in(std::uint64_t object) const override;
  void send(int to, const coherence::message& m) override;
  void forget_object(std::uint64_t object) override;
  void destroy(std::uint64_t) override {}  // an object comes home before it is destroyed
  void forget_copy(std::uint64_t object) override;
  void run(std::uint64_t object, const coherence::call& c) override;
  void wake(std::uint64_t object, const coherence::call_name& c, coherence::woken how) override;
  void go_on_later(std::uint64_t object) override;
  void refuse(const coherence::message& m, const char* why) override;

 private:
  /// A ready piece whose copies are being made as their objects are.
  struct refreshing {
    piece* of;
    copy_block* block;
  };
  /// An object that is attached to others.
  struct follower {
    object_shape shape;
    std::vector<std::uint64_t> to;
  };
  struct question {
    int of;
    ticket_id answer;
  };
  struct go_on_task : task {
    std::uint64_t object;
  };

  coherence::rank_objects rules() { return {known_, *this, job.me}; }
  copy_memory& memory();
  bool is_home(std::uint64_t object) const { return owner_of(object) == job.me; }

  // copies.cpp
  void make_old(copy_block* block);

  // copies_given.cpp
  copied_object* note_object(std::uint64_t address, object_shape shape);
  bool fits_a_message(const copied_object& object) const;
  bool is_noted_as(std::uint64_t address, std::uint16_t type) const;
  void forget_noted(std::uint64_t address);
  bool may_change_now(std::uint64_t address);
  void take_copies_back(const std::vector<copied_object*>& which);
  void note_copied();
  void renew_copies_in_use(std::uint64_t address);
  bool may_forget(const copied_object& object) const;
  void forget_if_settled(copied_object* object);

  // moves.cpp
  copied_object* one_that_is_away(std::uint64_t address, std::size_t bytes);
  void bring_home(const copied_object& away);
  object_place find_away(std::uint64_t address);
  object_place find_guest(std::uint64_t address, object_shape shape);
  void take_in(std::uint64_t object, const coherence::call_name& c);
  void note_given_back(std::uint64_t object);
  void note_moved();
  void wait_for_arrival();
  void wake_those_who_wait_for_arrivals();
  void give_up_waiting_for(int rank);

  // attached.cpp
  void forget_attached(std::uint64_t address, std::size_t bytes);
  void attached_should_follow(std::uint64_t address, int rank);

  // object_messages.cpp
  void send_request(int to, const object_message& m);
  const void* bytes_of(std::uint64_t object) const;
  void take_home(std::uint64_t object);
  void bring_arriving(copy_block* block);
  void bring_from(copy_block* block, const void* object);
  int wait_until_told(std::uint64_t number, ticket_id ticket);

  coherence::known_objects known_;
  copied_objects copied_;
  std::size_t most_;
  std::size_t old_bytes_in_use_ = 0;  ///< When old copies were freed last.
  std::unique_ptr<copy_memory> memory_;
  waiting_calls waiting_;
  std::uint64_t next_refreshing_ = std::uint64_t{1} << 63;  ///< Not a number of waiting_.
  std::unordered_map<std::uint64_t, refreshing> refreshing_;
  std::unordered_map<piece*, unsigned> refreshes_;  ///< How many of its copies are awaited.
  std::unordered_set<piece*> refreshed_;
  std::unordered_set<std::uint64_t> later_;
  std::size_t noted_here_ = 0;               ///< Objects in copied_ that were made here …
  std::size_t away_ = 0;                     ///< … and those of them that are elsewhere.
  std::size_t guests_ = 0;                   ///< Objects that are here, and were made elsewhere.
  coherence::object_table<int> places_;      ///< Where others probably are, if not at home.
  std::unordered_set<std::uint64_t> fixed_;  ///< Objects that are here, and stay.
  std::map<std::uint64_t, std::vector<attached_object>> attached_;  ///< To ones made here.
  std::map<std::uint64_t, follower> followers_;  ///< Made here, attached to others.
  std::vector<ticket_id> wait_for_arrivals_;     ///< Of objects that were made here.
  std::vector<question> questions_;
  const std::byte* arriving_ = nullptr;  ///< The bytes of the message that is being looked at.
  std::size_t arriving_bytes_ = 0;
  object_shape asked_{};            ///< Of what a message, or a method that goes on, is about.
  std::vector<std::byte> leaving_;  ///< The message that is being sent.
  bool serves_copy_or_call_ = false;
  bool sends_copy_ = false;  ///< The call that is being made asks for a copy now.
  bool runs_call_ = false;
  bool is_chosen_ = false;    ///< The call that is being made has chosen to have the object moved.
  bool is_attached_ = false;  ///< The object that is asked for is to follow another.
  bool makes_room_ = false;
};

/// No rank that runs this program says anything else of an object.
inline bool is_a_type(object_shape shape) {
  const object_type* const type = object_type_at(shape.type);
  return shape.type == 0 || (type != nullptr && type->bytes == shape.bytes);
}

/// The copy can be used as one of such an object. (copy_at_hand())
inline bool is_one(const copy_block& block, object_shape shape) {
  return block.bytes == shape.bytes && (shape.type == 0 || block.type == shape.type);
}

/// The one of this rank.
extern objects_of_rank* objects_here;

}  // namespace sojourn::detail
