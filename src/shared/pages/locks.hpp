// SPDX-License-Identifier: Apache-2.0
// Locks of the shared region. A lock is a token: a rank that has it and frees it keeps it, so that
// taking it again sends nothing. Its manager knows who asked last, and forwards the next request to
// that rank; who gives the token away sends the notices that the asker lacks. Fibers of a rank wait
// in a queue there, and the rank asks once for all of them.
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

/// Where the program's object lies: the same on all ranks.
using lock_number = std::uint64_t;

class locks {
 public:
  explicit locks(exchange& x) : x_(x), table_(x.host.memory()) {}
  ~locks();

  /// True: the fiber has the lock. False: it waits; services::wake_locker tells when it has it.
  bool take(lock_number lock, waiter fiber);
  /// True when nobody has it and the token is here: then the caller has it.
  bool try_take(lock_number lock, waiter fiber);
  /// `fair`: a rank that waits goes before fibers of this rank.
  void release(lock_number lock, bool fair);
  /// Whether another rank waits and it is its turn now that the lock is released: the first time
  /// when the lock is `fair`, else the 16th that fibers of this rank hand it on.
  bool others_turn(lock_number lock, bool fair);
  /// Who has the lock on this rank, or null.
  waiter holder(lock_number lock);
  /// Whether the lock is on this rank, so that no other has to give it.
  bool is_here(lock_number lock) { return of(lock).token; }
  /// From now on nobody waits for a lock that is not here: calls gone(fiber) for those who do.
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
  /// Of a lock that somebody waits for. Behind it lies what the rank `next` knows.
  struct contest {
    explicit contest(std::pmr::memory_resource* memory) : here(memory) {}
    std::pmr::list<waiter> here;
  };
  // A program may have a million locks, most of which nobody wants.
  struct lock_state {
    waiter held = nullptr;
    contest* wanted = nullptr;
    int next = -1;                ///< The rank that waits for this one's token.
    int last = -1;                ///< At the manager: who asked last.
    std::uint16_t handed_on = 0;  ///< So often to fibers of this rank while another waited.
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
