// SPDX-License-Identifier: Apache-2.0
#include "shared/rank_pages.hpp"

#include <algorithm>

#include "shared/rules.hpp"

namespace sojourn::detail::pages {

rank_pages::rank_pages(services& h, int my_rank, int rank_count, std::span<lmw_page> table,
                       const rank_pages_settings& s)
    : exchange(h, my_rank, rank_count),
      settings_(s),
      table_(table),
      lmw_(*this, table, s.protocol),
      locks_(*this),
      barriers_(*this, *this),
      held_(static_cast<std::size_t>(rank_count), h.memory()),
      collect_from_(s.collect_bytes) {}

rank_pages::~rank_pages() = default;

/// The end of everything that comes from outside: what has become possible happens, and protection
/// becomes what the states allow.
void rank_pages::finish() {
  barriers_.look_again();
  lmw_.show();
  if (held_count_ != 0) handle_held();
}

void rank_pages::fault(page_number page, bool store) {
  lmw_.fault(page, store);
  finish();
}

bool rank_pages::take_lock(lock_number l, waiter fiber) {
  const bool taken = locks_.take(l, fiber);
  if (!taken) finish();
  return taken;
}
bool rank_pages::try_lock(lock_number l, waiter fiber) { return locks_.try_take(l, fiber); }
void rank_pages::release_lock(lock_number l, bool fair) {
  locks_.release(l, fair);
  finish();
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
void rank_pages::arrive() {
  barriers_.arrive();
  finish();
}

void rank_pages::close() { lmw_.close(); }

void rank_pages::learn(page_message_reader& from) {
  log.read(
      from,
      [&] {
        if (holds(rule::close_before_learning)) close();
      },
      [&](const interval_record& r) { lmw_.learn(r); });
}

void rank_pages::write_news(message_writer& to, std::span<const interval> theirs) {
  close();
  lmw_.show();
  log.write(to, theirs, log.known());
}

void rank_pages::read_news(int from, std::span<const std::byte> bytes) {
  page_message_reader reader(host, from, bytes);
  learn(reader);
  finish();
}

void rank_pages::end_collection() {
  lmw_.end_collection();
  // What is open now cannot be given back: collecting again at once would be of no use.
  collect_from_ = std::max(settings_.collect_bytes, 2 * collectable_bytes());
}

// --- messages
// ---------------------------------------------------------------------------------------

void rank_pages::handle_own(std::span<const std::byte> back) {
  std::pmr::vector<std::byte> copy(out.bytes().begin(), out.bytes().end(), host.memory());
  copy.insert(copy.end(), back.begin(), back.end());
  handle(me, copy);
}

void rank_pages::receive(int from, std::span<const std::byte> bytes) {
  held_messages& held = held_[static_cast<std::size_t>(from)];
  const auto head = page_message_reader(host, from, bytes).take<message_head>();
  if (!held.empty() || (head.epoch > epoch && holds(rule::hold_later_epochs))) {
    held.emplace_back(bytes.begin(), bytes.end());
    ++held_count_;
    return;
  }
  handle(from, bytes);
  finish();
}

void rank_pages::handle_held() {
  // Handling one may let this rank leave a barrier, and so the next ones go.
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
        lmw_.show();
        again = true;
      }
    }
  }
}

void rank_pages::handle(int from, std::span<const std::byte> bytes) {
  page_message_reader reader(host, from, bytes);
  const auto head = reader.take<message_head>();
  switch (head.what) {
    case page_message::lock_request:
    case page_message::lock_forward:
    case page_message::lock_grant:
      return locks_.receive(reader, head);
    case page_message::arrival:
    case page_message::departure:
    case page_message::collect_wanted:
    case page_message::arrive_to_collect:
    case page_message::collect_done:
    case page_message::collect_go:
      return barriers_.receive(reader, head);
    default:
      reader.require(head.what < page_message::count_ && head.rank < ranks, "is of no known kind");
      return lmw_.receive(reader, head);
  }
}

}  // namespace sojourn::detail::pages
