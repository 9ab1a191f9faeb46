// SPDX-License-Identifier: Apache-2.0
// Atomics, flags, condition variables, counted barriers, and who takes part in the barrier. Fibers
// send questions about an object to one rank, its home, which keeps the object's value and the list
// of fibers that wait. Every question is answered, even if there is nothing to tell, because the
// asker rings at its home until an answer comes. A question that takes long has two answers: the
// first says that the home knows of it.
//
// Ordering: a rank that releases sends the home the notices that it lacks, before the question. The
// home sends an asker that acquires the notices that it lacks, before the answer (class news;
// nothing is sent if nothing is new). So the home has all notices of those who released to the
// object. A lock's manager need not have them, because the lock's token itself has been at the rank
// that released. Here the value is at the home, so an asker would otherwise have to get notices
// from the rank that released: one more hop for each operation on an atomic, and for each fiber
// that is woken. The price is that the home takes in notices that its own fibers may not need yet.
//
// Releases by the home's own fibers are late: the home closes its open interval when the next
// answer goes out.
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

/// The address of the program's object, which is the same on all ranks.
using object_number = std::uint64_t;

enum class question : std::uint8_t {
  // Operations on the value, which is 0 at first. All are answered with the value before.
  load,
  store,
  exchange,
  compare,  ///< Stores `second` if the value is `first`.
  add,
  bit_and,
  bit_or,
  bit_xor,
  await,   ///< Answered when the value is not 0.
  arrive,  ///< Answered when `first` fibers have arrived, with all bits that any of them has set in
           ///< `second`.
  listen,  ///< Answered when the object is notified.
  notify_one,
  notify_all,
  join,   ///< `first` more fibers take part in the barrier. Home: rank 0.
  leave,  ///< One fiber fewer takes part in the barrier. Home: rank 0.
  count_
};

struct event_question {
  question what;
  object_number object = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint32_t bytes = 8;  ///< The length of the value.
};

struct event_answer {
  enum class kind : std::uint8_t {
    done,
    waits,    ///< The home knows of the question; another answer comes.
    refused,  ///< Other fibers wait at this barrier for `value` fibers, not for `first`.
    asked,    ///< No answer has come yet.
    lost,     ///< A rank has ended (give_up()), so no answer will come.
  };
  kind is;
  std::uint64_t value = 0;
};

class events {
 public:
  events(exchange& x, barriers& b);

  /// Returns the answer if it is known at once. Otherwise the fiber waits, and services::answered
  /// brings the answer.
  event_answer ask(const event_question& q, waiter fiber);
  int home(object_number object, question what) const {
    return what == question::join || what == question::leave ? 0 : x_.host.home_of(object);
  }

  /// Ends all waits, now and in future: calls gone(fiber) for each fiber that waits.
  template <class Gone>
  void give_up(Gone gone) {
    given_up_ = true;
    for (const auto& [number, fiber] : asked_) gone(fiber);
    asked_.clear();
    for (auto& [number, o] : objects_) o.waiting.clear();
  }
  /// Whether a fiber of this rank waits.
  bool any_waits() const { return !asked_.empty(); }
  /// Forgets the objects at these addresses, which are gone. Returns false, and forgets nothing, if
  /// fibers wait for one of them.
  bool forget(object_number begin, object_number end);

  /// For checkpoints: calls visit(object, value) for each object that this rank keeps and whose
  /// value is not 0.
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
    std::uint32_t number;  ///< The question's number, given by the asking rank.
    bool acquires;
  };
  struct kept_object {
    explicit kept_object(std::pmr::memory_resource* memory) : waiting(memory) {}
    std::uint64_t value = 0;  ///< Of a counted barrier: how many fibers meet.
    std::uint64_t said =
        0;  ///< All bits that the fibers that wait at this barrier have set in `second`.
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
  std::pmr::map<object_number, kept_object> objects_;  ///< The objects whose home is this rank.
  std::pmr::unordered_map<std::uint32_t, waiter>
      asked_;  ///< The fibers that wait, by the number of their question.
  std::uint32_t last_number_ = 0;
  bool released_here_ =
      false;  ///< A fiber of this rank has released to an object since the last answer went out.
  bool given_up_ = false;
};

}  // namespace sojourn::detail::pages
