// SPDX-License-Identifier: Apache-2.0
// Locks of the shared region. A lock is a token: the rank that has it keeps it after freeing the
// lock, so that taking the lock again sends nothing. The lock's manager knows which rank asked for
// it last, and forwards the next request to that rank. The rank that gives the token away sends the
// asker the notices that it lacks. The fibers of a rank wait in a queue on their rank, which asks
// once for all of them.
// Source: Thitikamol and Keleher, §3.1 and §4.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <span>
#include <unordered_map>

#include "shared/pages/exchange.hpp"

namespace sojourn::detail::pages {

/// The address of the program's object, which is the same on all ranks.
using lock_number = std::uint64_t;

class locks {
 public:
  explicit locks(exchange& x) : x_(x), table_(x.host.memory()) {}
  ~locks();

  /// Returns true if the fiber has the lock now; otherwise it waits until services::wake_locker.
  bool take(lock_number lock, waiter fiber);
  /// Takes the lock if nobody holds it and its token is here; returns whether it did.
  bool try_take(lock_number lock, waiter fiber);
  /// Frees the lock. `fair`: a rank that waits for it gets it before fibers of this rank.
  void release(lock_number lock, bool fair);
  /// To be asked when the lock is about to be released. True when another rank waits and it is that
  /// rank's turn: at once if the lock is `fair`, otherwise at the 16th release since it waits.
  bool others_turn(lock_number lock, bool fair);
  /// The fiber of this rank that has the lock, or null.
  waiter holder(lock_number lock);
  /// Whether the lock's token is here, so that no other rank has to give it.
  bool is_here(lock_number lock) { return of(lock).token; }
  /// Ends all waits for locks that are not here, now and in future: calls gone(fiber) for each
  /// fiber that waits for one.
  template <class Gone>
  void give_up(Gone gone) {
    given_up_ = true;
    for (auto& [number, state] : table_) {
      if (state.token) continue;
      if (state.wanted == nullptr) continue;
      for (waiter fiber : state.wanted->here) gone(fiber);
      state.wanted->here.clear();
    }
  }
  /// Whether a fiber of this rank has a lock, or waits for one.
  bool any_in_use() const;

  void receive(page_message_reader& from, const message_head& head);

 private:
  /// What is needed only while somebody waits for a lock. Behind it lies what the rank `next`
  /// knows.
  struct contest {
    explicit contest(std::pmr::memory_resource* memory) : here(memory) {}
    std::pmr::list<waiter> here;
  };
  // A program may have a million locks, most of which nobody wants.
  struct lock_state {
    waiter held = nullptr;
    contest* wanted = nullptr;
    int next = -1;  ///< The rank that waits for this one's token.
    int last = -1;  ///< At the manager: who asked last.
    std::uint16_t handed_on =
        0;  ///< How often fibers of this rank got the lock while another rank waited.
    bool token = false;
    bool asked = false;
  };

  lock_state& of(lock_number lock);
  contest& begin_contest(lock_state& state);
  void end_contest(lock_state& state);
  std::size_t contest_bytes() const {
    return sizeof(contest) + static_cast<std::size_t>(x_.ranks) * sizeof(interval);
  }
  std::span<interval> next_knows(lock_state& state) const {
    return {reinterpret_cast<interval*>(state.wanted + 1), static_cast<std::size_t>(x_.ranks)};
  }
  static bool is_wanted_here(const lock_state& state) {
    return state.wanted != nullptr && !state.wanted->here.empty();
  }
  int manager(lock_number lock) const;
  void ask(lock_number lock, lock_state& state);
  void grant(lock_number lock, lock_state& state);
  void hand_on(lock_state& state);

  exchange& x_;
  std::pmr::unordered_map<lock_number, lock_state> table_;
  bool given_up_ = false;
};

}  // namespace sojourn::detail::pages
