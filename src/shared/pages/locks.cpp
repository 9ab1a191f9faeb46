// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/locks.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/check.hpp"

namespace sojourn::detail::pages {

namespace {

/// The head of a message about a lock. It contains the lock's number, so that a request fits in one
/// cache line if the job has two ranks.
message_head head_of(page_message what, lock_number lock, std::uint16_t rank = 0) {
  return {.what = what,
          .rank = rank,
          .first = static_cast<std::uint32_t>(lock),
          .last = static_cast<std::uint32_t>(lock >> 32)};
}

}  // namespace

int locks::manager(lock_number lock) const {
  // Locks that lie next to each other have different managers.
  const std::uint64_t mixed = (lock * 0x9e3779b97f4a7c15ull) >> 32;
  return static_cast<int>(mixed % static_cast<std::uint64_t>(x_.ranks));
}

locks::lock_state& locks::of(lock_number lock) {
  auto [at, made] = table_.try_emplace(lock);
  lock_state& state = at->second;
  if (made && manager(lock) == x_.me) {
    state.token = true;
    state.last = x_.me;
  }
  return state;
}

locks::~locks() {
  for (auto& [number, state] : table_) {
    if (state.wanted == nullptr) continue;
    state.wanted->here.clear();
    state.next = -1;
    end_contest(state);
  }
}

locks::contest& locks::begin_contest(lock_state& state) {
  if (state.wanted == nullptr)
    state.wanted = ::new (x_.host.memory()->allocate(contest_bytes(), alignof(contest)))
        contest(x_.host.memory());
  return *state.wanted;
}

/// Ends the contest if nobody waits any more.
void locks::end_contest(lock_state& state) {
  if (state.wanted == nullptr || state.next >= 0 || !state.wanted->here.empty()) return;
  std::destroy_at(state.wanted);
  x_.host.memory()->deallocate(std::exchange(state.wanted, nullptr), contest_bytes(),
                               alignof(contest));
}

bool locks::take(lock_number lock, waiter fiber) {
  lock_state& state = of(lock);
  if (state.token && state.held == nullptr) {
    state.held = fiber;
    ++x_.counts->locks_local;
    return true;
  }
  if (state.token || state.asked) ++x_.counts->locks_joined;
  begin_contest(state).here.push_back(fiber);
  ask(lock, state);
  return false;
}

bool locks::try_take(lock_number lock, waiter fiber) {
  lock_state& state = of(lock);
  if (!state.token || state.held != nullptr) return false;
  state.held = fiber;
  ++x_.counts->locks_local;
  return true;
}

waiter locks::holder(lock_number lock) { return of(lock).held; }

bool locks::any_in_use() const {
  return std::any_of(table_.begin(), table_.end(), [](const auto& lock) {
    return lock.second.held != nullptr || is_wanted_here(lock.second);
  });
}

void locks::release(lock_number lock, bool fair) {
  lock_state& state = of(lock);
  state.held = nullptr;
  if (state.next >= 0 && (!is_wanted_here(state) || fair)) {
    grant(lock, state);
    if (is_wanted_here(state)) ask(lock, state);
  } else if (is_wanted_here(state)) {
    hand_on(state);
  }
}

bool locks::others_turn(lock_number lock, bool fair) {
  const unsigned turns = fair ? 1 : 16;
  lock_state& state = of(lock);
  return state.next >= 0 && ++state.handed_on >= turns;
}

void locks::ask(lock_number lock, lock_state& state) {
  if (state.token || state.asked) return;
  state.asked = true;
  ++x_.counts->locks_remote;
  x_.count_overlap();
  ++x_.locks_under_way;
  message_writer& out =
      x_.begin(head_of(page_message::lock_request, lock, static_cast<std::uint16_t>(x_.me)));
  out.put_clock(x_.log.known());
  x_.send(manager(lock));
}

void locks::grant(lock_number lock, lock_state& state) {
  x_.close();
  const int to = state.next;
  state.token = false;
  state.next = -1;
  state.handed_on = 0;
  message_writer& out = x_.begin(head_of(page_message::lock_grant, lock));
  x_.log.write(out, next_knows(state), x_.log.known(), {});
  end_contest(state);
  x_.send(to);
}

void locks::hand_on(lock_state& state) {
  state.held = state.wanted->here.front();
  state.wanted->here.pop_front();
  end_contest(state);
  x_.host.wake_locker(state.held);
}

void locks::receive(page_message_reader& from, const message_head& head) {
  const lock_number lock = lock_number{head.last} << 32 | head.first;
  lock_state& state = of(lock);
  switch (head.what) {
    case page_message::lock_request: {
      from.require(head.rank == from.from() && manager(lock) == x_.me,
                   "asks for a lock that this rank does not manage");
      const int last = state.last;
      state.last = head.rank;
      const auto theirs = from.take_bytes(x_.log.known().size() * sizeof(interval));
      message_writer& out = x_.begin(head_of(page_message::lock_forward, lock, head.rank));
      out.put_bytes(theirs.data(), theirs.size());
      return x_.send(last);
    }
    case page_message::lock_forward:
      from.require(from.from() == manager(lock) && state.next < 0 && head.rank < x_.ranks &&
                       head.rank != x_.me,
                   "forwards a second request for a lock");
      begin_contest(state);
      from.take_clock(next_knows(state));
      x_.log.check_clock(from, next_knows(state));
      state.next = head.rank;
      if (state.token && state.held == nullptr && !is_wanted_here(state)) grant(lock, state);
      return;
    case page_message::lock_grant:
      from.require(state.asked, "grants a lock that nobody asked for");
      x_.learn(from, {});
      state.token = true;
      state.asked = false;
      --x_.locks_under_way;
      if (is_wanted_here(state)) return hand_on(state);
      SOJOURN_CHECK(given_up_, "lock 0x%llx has come, and nobody waits for it",
                    static_cast<unsigned long long>(lock));
      if (state.next >= 0) grant(lock, state);
      return;
    default:
      from.refuse("is no message of locks");
  }
}

}  // namespace sojourn::detail::pages
