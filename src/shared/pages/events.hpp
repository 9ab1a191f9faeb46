// SPDX-License-Identifier: Apache-2.0
// Atomics, flags, condition variables, counted barriers, and who takes part in the barrier: what
// fibers ask of one rank, the object's home, where the object is a value and those who wait. Every
// question is answered, also where nothing is to be told: until then the asker rings at a home that
// computes. What takes longer is answered twice: first, that the home knows of it.
//
// Ordering: who releases tells the home the notices that it lacks before the question, and the home
// tells whoever acquires, before the answer, those that the asker lacks (class news; nothing where
// nothing is new). So the home has met what everybody released there. A lock's manager need not,
// since its token has been with the releaser. Here the value is at home, so notices from the
// releaser itself would have to be asked for: a hop more for each atomic, and each waking. What it
// costs is that the home takes in notices that its own fibers may not need yet.
//
// The home itself releases late: its open interval is closed when an answer goes out after one of
// its own fibers has released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "shared/pages/barriers.hpp"
#include "shared/pages/exchange.hpp"

namespace sojourn::detail::pages {

/// Where the program's object lies: the same on all ranks.
using object_number = std::uint64_t;

enum class question : std::uint8_t {
  // About the value, which is 0 at first. All are answered with the old one.
  load,
  store,
  exchange,
  compare,  ///< Stores `second` if it is `first`.
  add,
  bit_and,
  bit_or,
  bit_xor,
  await,   ///< Answered when the value is not 0.
  arrive,  ///< Answered when `first` fibers have arrived, with the bits of `second` of all of them.
  listen,  ///< Answered when notified.
  notify_one,
  notify_all,
  join,   ///< `first` more fibers take part in the barrier. Home: rank 0.
  leave,  ///< One fiber fewer does. Home: rank 0.
  count_
};

struct event_question {
  question what;
  object_number object = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint32_t bytes = 8;  ///< Of the value.
};

struct event_answer {
  enum class kind : std::uint8_t {
    done,
    waits,    ///< The home knows of it; another answer comes.
    refused,  ///< Those that wait for this object have said `value`, and not `first`.
    asked,    ///< Nothing is known yet.
    lost,     ///< A rank has ended (give_up()).
  };
  kind is;
  std::uint64_t value = 0;
};

class events {
 public:
  events(exchange& x, barriers& b);

  /// Either done, refused or given up at once, or the fiber waits: services::answered tells.
  event_answer ask(const event_question& q, waiter fiber);
  int home(object_number object, question what) const {
    return what == question::join || what == question::leave ? 0 : x_.host.home_of(object);
  }

  /// From now on nobody waits: calls gone(fiber) for those who do.
  template <class Gone>
  void give_up(Gone gone) {
    given_up_ = true;
    for (const auto& [number, fiber] : asked_) gone(fiber);
    asked_.clear();
    for (auto& [number, o] : objects_) o.waiting.clear();
  }
  /// Whether a fiber of this rank waits.
  bool any_waits() const { return !asked_.empty(); }
  /// The objects of this rank at these addresses are gone. False: fibers wait for one.
  bool forget(object_number begin, object_number end);

  /// For checkpoints: calls visit(object, value) for all that this rank keeps and that are not 0.
  template <class Visit>
  void each_value(Visit visit) const {
    for (const auto& [number, o] : objects_)
      if (o.value != 0) visit(number, o.value);
  }
  void restored(object_number object, std::uint64_t value) { of(object).value = value; }

  void receive(page_message_reader& from, const message_head& head);

 private:
  struct asker {
    int rank;
    std::uint32_t number;  ///< Of its question, on its rank.
    bool acquires;
  };
  struct kept_object {
    explicit kept_object(std::pmr::memory_resource* memory) : waiting(memory) {}
    std::uint64_t value = 0;  ///< Of a counted barrier: how many fibers meet.
    std::uint64_t said = 0;   ///< By those who wait there.
    std::pmr::vector<asker> waiting;
  };

  kept_object& of(object_number number) {
    return objects_.try_emplace(number, x_.host.memory()).first->second;
  }
  std::uint32_t next_number();
  event_answer serve(const asker& who, const event_question& q);
  void send_question(const event_question& q, std::uint32_t number);
  void answer(const asker& who, const event_answer& a);
  void wake(kept_object& o, std::size_t count, std::uint64_t value = 0);
  void check(const page_message_reader& from, const event_question& q) const;

  exchange& x_;
  barriers& barriers_;
  std::pmr::map<object_number, kept_object> objects_;     ///< Whose home is this rank.
  std::pmr::unordered_map<std::uint32_t, waiter> asked_;  ///< By question.
  std::uint32_t last_number_ = 0;
  bool released_here_ = false;  ///< By a fiber of this rank, since an answer went out last.
  bool given_up_ = false;
};

}  // namespace sojourn::detail::pages
