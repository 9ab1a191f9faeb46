// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/rank_pages.hpp"

#include <algorithm>

#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

rank_pages::rank_pages(services& h, page_layout of_pages, int my_rank, int rank_count,
                       std::span<page_entry> table, const rank_pages_settings& s)
    : exchange(h, std::move(of_pages), my_rank, rank_count, table.size()),
      table_(h, layout, table),
      lmw_(*this, table_, s.protocol),
      lsw_(*this, table_),
      seq_(*this, table_),
      protocols_{&lmw_, &lsw_, &seq_},
      closing_(h.memory()),
      own_message_(h.memory()),
      taken_(h.memory()),
      pins_(h.memory()),
      locks_(*this),
      barriers_(*this, lmw_, s.fan_out, s.collect_bytes),
      events_(*this, barriers_),
      news_(*this, barriers_),
      held_(static_cast<std::size_t>(rank_count), h.memory()) {
  if (s.counts != nullptr) counts = s.counts;
  report = s.report;
}

rank_pages::~rank_pages() = default;

/// To be called at the end of everything that is called from outside: does what has become
/// possible, and changes protection to what the pages' states allow.
void rank_pages::finish() {
  barriers_.look_again();
  show();
  if (held_count_ != 0) handle_held();
}

void rank_pages::show() {
  lmw_.send_requests();
  table_.show(faults_under_way != 0);
}

// --- faults

void rank_pages::fault(page_number page, bool store, waiter fiber, bool again) {
  if (!again) end_instruction(fiber);
  if (store) ++counts->faults_store;
  const bool taken_before = take(page, fiber);
  protocol_of(page).fault(page, store, taken_before);
  finish();
}

void rank_pages::ran(waiter fiber) {
  if (!keeps_pages_for(fiber)) return;
  end_instruction(fiber);
  finish();
}

void rank_pages::others_do_not_run(waiter but) {
  for (const auto& [fiber, pages] : taken_) {
    if (fiber == but) continue;
    for (const taken_page& t : pages)
      if (!t.held) protocol_of(t.page).used(t.page);
  }
  finish();
}

void rank_pages::end_instruction(waiter fiber) {
  auto ended = taken_.extract(fiber);
  if (ended.empty()) return;
  for (const taken_page& t : ended.mapped()) give_up(t);
}

void rank_pages::give_up(taken_page t) {
  page_protocol& p = protocol_of(t.page);
  if (t.held) p.let_go(t.page);
  p.used(t.page);
}

/// Notes that the fiber's instruction needs the page; returns whether that was noted before. An
/// instruction that needs several pages takes them in ascending order, in whatever order it touches
/// them: it holds the pages below this one, and gives up those above, on which it faults again. So
/// no two ranks wait for each other, or take pages from each other for ever.
bool rank_pages::take(page_number page, waiter fiber) {
  page_protocol& p = protocol_of(page);
  const auto at = taken_.find(fiber);
  if (at == taken_.end()) {
    if (p.stays_until_used()) taken_[fiber].push_back({page, false});
    return false;
  }
  auto& pages = at->second;
  const auto goes = [&](const taken_page& t) { return t.page > page && holds(rule::ordered_hold); };
  for (taken_page& t : pages) {
    if (t.page == page || t.held || goes(t)) continue;
    protocol_of(t.page).hold(t.page);
    t.held = true;
  }
  for (const taken_page& t : pages)
    if (goes(t)) give_up(t);
  std::erase_if(pages, goes);
  const auto this_one =
      std::find_if(pages.begin(), pages.end(), [&](const taken_page& t) { return t.page == page; });
  const bool before = this_one != pages.end();
  if (before && this_one->held) {
    p.let_go(page);
    this_one->held = false;
  }
  if (!before && p.stays_until_used()) pages.push_back({page, false});
  if (pages.empty()) taken_.erase(at);
  return before;
}

// --- pins

bool rank_pages::pin(page_number page, access how) {
  // Both are asked, because a page's state may allow more than its protection does: see
  // page_table::show.
  if (!protocol_of(page).can_be_pinned(page, how) || allowed(page) < how) return false;
  set_pinned(page, pins_.add(page, how));
  finish();  // changes protection
  return true;
}
void rank_pages::unpin(page_number page, access how) {
  set_pinned(page, pins_.remove(page, how));
  finish();
}
void rank_pages::set_pinned(page_number page, access to) {
  access& pinned = table_[page].common.pinned;
  if (pinned == to) return;
  pinned = to;
  protocol_of(page).pinned(page);
}
const page_number* rank_pages::lacking_pinned() const {
  return pins_.any() && holds(rule::refresh_pinned) ? lmw_.lacking_pinned() : nullptr;
}

// --- locks and barriers

bool rank_pages::take_lock(lock_number lock, waiter fiber) {
  const bool taken = locks_.take(lock, fiber);
  if (!taken) finish();
  return taken;
}
bool rank_pages::try_lock(lock_number lock, waiter fiber) { return locks_.try_take(lock, fiber); }
void rank_pages::release_lock(lock_number lock, bool fair) {
  locks_.release(lock, fair);
  finish();
}

event_answer rank_pages::ask(const event_question& q, waiter fiber) {
  const event_answer a = events_.ask(q, fiber);
  finish();
  return a;
}

void rank_pages::set_members(std::uint32_t all) {
  barriers_.set_members(all);
  finish();
}
void rank_pages::fiber_came() {
  barriers_.came();
  finish();
}
void rank_pages::fiber_went() {
  barriers_.went();
  finish();
}
void rank_pages::arrive(bool guest) {
  barriers_.arrive(guest);
  finish();
}

// --- intervals

void rank_pages::close() {
  closing_.clear();
  lmw_.list_stores(closing_);
  lsw_.list_stores(closing_);
  if (closing_.empty()) return;
  const interval index = log.close(closing_).index;
  ++counts->intervals;
  lmw_.closed(index);
}

void rank_pages::learn(page_message_reader& from, std::span<const interval> like) {
  log.read(
      from, like,
      [&] {
        if (holds(rule::close_before_learning)) close();
      },
      [&](const interval_record& r) {
        lmw_.learn(r);
        lsw_.learn(r);
        news_.knows(from.from(), r.clock(ranks));
      });
}

std::span<const std::byte> rank_pages::news_for(int to, ordered_with with) {
  if (lmw_.has_stores() || lsw_.has_stores()) {
    close();
    show();
  }
  if (!news_.any(to, with)) return {};
  news_.write(to, with);
  return out.bytes();
}

void rank_pages::tell(int to) {
  if (to == me || !news_.any(to, ordered_with::replies)) return;
  news_.write(to, ordered_with::replies);
  send(to);
  news_.told(to, ordered_with::replies);
}

// --- messages

void rank_pages::handle_own(std::span<const std::byte> back) {
  // Handling the message may send another one to this rank: it finds `own_message_` without room,
  // and allocates.
  std::pmr::vector<std::byte> copy(std::move(own_message_));
  copy.assign(out.bytes().begin(), out.bytes().end());
  copy.insert(copy.end(), back.begin(), back.end());
  handle(me, copy);
  own_message_ = std::move(copy);
}

void rank_pages::receive(int from, std::span<const std::byte> bytes) {
  held_messages& held = held_[static_cast<std::size_t>(from)];
  const auto head = page_message_reader(host, from, bytes).take<message_head>();
  news_.heard(from, head.epoch);
  const bool waits = !held.empty() || (head.epoch > epoch && holds(rule::hold_later_epochs));
  // The message by which this rank leaves a barrier must not wait for the end of that barrier. (It
  // may bear a later epoch, if the rank that passes a departure on had left the barrier earlier, by
  // news.)
  const bool ends_the_wait =
      head.what == page_message::news || head.what == page_message::departure;
  if (waits && !ends_the_wait) {
    held.emplace_back(bytes.begin(), bytes.end());
    ++held_count_;
    return;
  }
  handle(from, bytes);
  finish();
}

void rank_pages::handle_held() {
  // Repeated, because a message may let this rank leave a barrier, and then further messages can be
  // handled.
  for (bool again = true; again && held_count_ != 0;) {
    again = false;
    for (std::size_t q = 0; q < held_.size(); ++q) {
      while (!held_[q].empty()) {
        page_message_reader reader(host, static_cast<int>(q), held_[q].front());
        if (reader.take<message_head>().epoch > epoch) break;
        std::pmr::vector<std::byte> bytes = std::move(held_[q].front());
        held_[q].pop_front();
        --held_count_;
        handle(static_cast<int>(q), bytes);
        barriers_.look_again();
        show();
        again = true;
      }
    }
  }
}

void rank_pages::handle(int from, std::span<const std::byte> bytes) {
  page_message_reader reader(host, from, bytes);
  const auto head = reader.take<message_head>();
  reader.require(head.rank < ranks, "names a rank that does not exist");
  switch (group_of(head.what)) {
    case message_group::locks:
      return locks_.receive(reader, head);
    case message_group::barriers:
      return barriers_.receive(reader, head);
    case message_group::events:
      return events_.receive(reader, head);
    case message_group::news:
      return news_.receive(reader, head);
    case message_group::lmw:
      return lmw_.receive(reader, head);
    case message_group::lsw:
      return lsw_.receive(reader, head);
    case message_group::seq:
      return seq_.receive(reader, head);
    case message_group::none:
      break;
  }
  reader.refuse("is of no known kind");
}

}  // namespace sojourn::detail::pages
