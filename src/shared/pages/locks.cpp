// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/locks.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/check.hpp"

namespace sojourn::detail::pages {

namespace {

/// The lock's number is in the head: so a request of two ranks takes one cache line.
message_head head_of(page_message what, lock_number l, std::uint16_t rank = 0) {
  return {.what = what,
          .rank = rank,
          .first = static_cast<std::uint32_t>(l),
          .last = static_cast<std::uint32_t>(l >> 32)};
}

}  // namespace

int locks::manager(lock_number l) const {
  // Locks that lie next to each other have different managers.
  const std::uint64_t mixed = (l * 0x9e3779b97f4a7c15ull) >> 32;
  return static_cast<int>(mixed % static_cast<std::uint64_t>(x_.ranks));
}

locks::lock& locks::of(lock_number l) {
  auto [at, made] = table_.try_emplace(l);
  lock& k = at->second;
  if (made && manager(l) == x_.me) {
    k.token = true;
    k.last = x_.me;
  }
  return k;
}

locks::~locks() {
  for (auto& [number, k] : table_) {
    if (k.wanted == nullptr) continue;
    k.wanted->here.clear();
    k.next = -1;
    end_contest(k);
  }
}

locks::contest& locks::begin_contest(lock& k) {
  if (k.wanted == nullptr)
    k.wanted = ::new (x_.host.memory()->allocate(contest_bytes(), alignof(contest)))
        contest(x_.host.memory());
  return *k.wanted;
}

/// If nobody waits any more.
void locks::end_contest(lock& k) {
  if (k.wanted == nullptr || k.next >= 0 || !k.wanted->here.empty()) return;
  std::destroy_at(k.wanted);
  x_.host.memory()->deallocate(std::exchange(k.wanted, nullptr), contest_bytes(), alignof(contest));
}

bool locks::take(lock_number l, waiter fiber) {
  lock& k = of(l);
  if (k.token && k.held == nullptr) {
    k.held = fiber;
    ++x_.counts->locks_local;
    return true;
  }
  if (k.token || k.asked) ++x_.counts->locks_joined;
  begin_contest(k).here.push_back(fiber);
  ask(l, k);
  return false;
}

bool locks::try_take(lock_number l, waiter fiber) {
  lock& k = of(l);
  if (!k.token || k.held != nullptr) return false;
  k.held = fiber;
  ++x_.counts->locks_local;
  return true;
}

waiter locks::holder(lock_number l) { return of(l).held; }

bool locks::any_in_use() const {
  return std::any_of(table_.begin(), table_.end(), [](const auto& l) {
    return l.second.held != nullptr || is_wanted_here(l.second);
  });
}

void locks::release(lock_number l, bool fair) {
  lock& k = of(l);
  k.held = nullptr;
  if (k.next >= 0 && (!is_wanted_here(k) || fair)) {
    grant(l, k);
    if (is_wanted_here(k)) ask(l, k);
  } else if (is_wanted_here(k)) {
    hand_on(k);
  }
}

bool locks::others_turn(lock_number l, bool fair) {
  const unsigned turns = fair ? 1 : 16;
  lock& k = of(l);
  return k.next >= 0 && ++k.handed_on >= turns;
}

void locks::ask(lock_number l, lock& k) {
  if (k.token || k.asked) return;
  k.asked = true;
  ++x_.counts->locks_remote;
  x_.count_overlap();
  ++x_.locks_under_way;
  message_writer& out =
      x_.begin(head_of(page_message::lock_request, l, static_cast<std::uint16_t>(x_.me)));
  out.put_clock(x_.log.known());
  x_.send(manager(l));
}

void locks::grant(lock_number l, lock& k) {
  x_.close();
  const int to = k.next;
  k.token = false;
  k.next = -1;
  k.handed_on = 0;
  message_writer& out = x_.begin(head_of(page_message::lock_grant, l));
  x_.log.write(out, next_knows(k), x_.log.known(), {});
  end_contest(k);
  x_.send(to);
}

void locks::hand_on(lock& k) {
  k.held = k.wanted->here.front();
  k.wanted->here.pop_front();
  end_contest(k);
  x_.host.wake_locker(k.held);
}

void locks::receive(page_message_reader& from, const message_head& head) {
  const lock_number l = lock_number{head.last} << 32 | head.first;
  lock& k = of(l);
  switch (head.what) {
    case page_message::lock_request: {
      from.require(head.rank == from.from() && manager(l) == x_.me,
                   "asks for a lock that this rank does not manage");
      const int last = k.last;
      k.last = head.rank;
      const auto theirs = from.take_bytes(x_.log.known().size() * sizeof(interval));
      message_writer& out = x_.begin(head_of(page_message::lock_forward, l, head.rank));
      out.put_bytes(theirs.data(), theirs.size());
      return x_.send(last);
    }
    case page_message::lock_forward:
      from.require(
          from.from() == manager(l) && k.next < 0 && head.rank < x_.ranks && head.rank != x_.me,
          "forwards a second request for a lock");
      begin_contest(k);
      from.take_clock(next_knows(k));
      x_.log.check_clock(from, next_knows(k));
      k.next = head.rank;
      if (k.token && k.held == nullptr && !is_wanted_here(k)) grant(l, k);
      return;
    case page_message::lock_grant:
      from.require(k.asked, "grants a lock that nobody asked for");
      x_.learn(from, {});
      k.token = true;
      k.asked = false;
      --x_.locks_under_way;
      if (is_wanted_here(k)) return hand_on(k);
      SOJOURN_CHECK(given_up_, "lock 0x%llx has come, and nobody waits for it",
                    static_cast<unsigned long long>(l));
      if (k.next >= 0) grant(l, k);
      return;
    default:
      from.refuse("is no message of locks");
  }
}

}  // namespace sojourn::detail::pages
