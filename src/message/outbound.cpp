// SPDX-License-Identifier: Apache-2.0
#include "message/outbound.hpp"

#include <cstring>
#include <deque>
#include <vector>

#include "base/check.hpp"
#include "base/copy_short.hpp"
#include "fiber/block.hpp"
#include "fiber/hooks.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/wait_clock.hpp"
#include "memory/address_map.hpp"
#include "message/bundle_table.hpp"
#include "message/dispatcher_state.hpp"
#include "message/losses.hpp"
#include "message/programs.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

namespace {

// The most unanswered calls of one rank to another. It bounds the number of answers that the other
// rank must keep.
constexpr std::uint32_t unanswered_max = 65536;

/// Sends what must arrive at a rank before the next message; false when there is no room for it.
bool is_told(int to, message_class way) {
  const peer& p = peer_of(to);
  return (p.before_calls & peer::shares_memory) == 0 || to == job.me || on_dispatch.tell(to, way);
}

bool has_room(int to, std::size_t bytes) {
  return to == job.me ? dispatcher.own.has_room(bytes)
                      : dispatcher.transport->has_room(to, message_class::request, bytes);
}

/// False for a fiber whose frames cannot be brought in place now: it keeps its place in the queue.
bool can_run(const pending_send& s) { return s.go != wake_sender || !must_not_be_placed(s.waiter); }

/// True when the first sender that waits for room to `to` may go on.
bool sender_may_go(int to) {
  const peer& p = peer_of(to);
  return !p.senders.empty() && has_room(to, p.senders.front().bytes) && can_run(p.senders.front());
}
bool bundle_may_go(int to) {
  return (peer_of(to).before_calls & peer::has_bundle) != 0 && has_room(to, bundle_bytes(to));
}
bool caller_may_go(const peer& p) {
  return !p.callers.empty() && p.unanswered < unanswered_max && can_run(p.callers.front());
}

/// Sends the calls that were bundled for `to`, which go before anything else that is sent there;
/// false when there is no room for them.
bool bundle_is_sent(int to) {
  return (peer_of(to).before_calls & peer::has_bundle) == 0 || try_send_bundle(to);
}

/// Runs a sender for whose message there is room, or credit, now: before the pieces that are ready
/// already, because these may want the same room.
void run_now(const pending_send& s) {
  if (s.go != wake_sender) return s.go(s.context);
  make_ready_first(static_cast<piece*>(s.context), resumed::here);
  run_ready(1);
}

}  // namespace

bool sender_can_go() {
  for (std::size_t to = 0; to < static_cast<std::size_t>(job.count); ++to) {
    const peer& p = dispatcher.peers[to];
    if (sender_may_go(static_cast<int>(to)) || caller_may_go(p) ||
        bundle_may_go(static_cast<int>(to))) {
      return true;
    }
    if (!p.replies.empty() &&
        dispatcher.transport->has_room(static_cast<int>(to), message_class::reply,
                                       p.replies.front().bytes.size())) {
      return true;
    }
  }
  return false;
}

void wake_sender(void* sender) { make_ready(static_cast<piece*>(sender), resumed::here); }

int send_late_replies(int to) {
  peer& p = peer_of(to);
  int done = 0;
  for (; !p.replies.empty() && p.replies.front().written; ++done) {
    late_reply& r = p.replies.front();
    std::byte* room = dispatcher.transport->reserve(to, message_class::reply, r.bytes.size());
    if (room == nullptr) break;
    if (!r.bytes.empty()) std::memcpy(room, r.bytes.data(), r.bytes.size());
    dispatcher.transport->commit(to, message_class::reply, static_cast<std::uint16_t>(r.kind),
                                 r.flags, r.ticket);
    p.replies.pop_front();
    p.note_replies();
    --dispatcher.waiting_replies;
  }
  return done;
}

namespace {

// How many senders to a rank go on before messages are read again.
constexpr int senders_a_round = 32;

/// Runs the first sender of p.senders or p.callers.
void run_first(peer& p, std::deque<pending_send>& queue) {
  const pending_send s = queue.front();
  queue.pop_front();
  p.note_senders();
  --dispatcher.waiting_senders;
  run_now(s);
}

/// Runs the senders that wait for room to `to`, one after the other, so that each takes its room
/// before the next is considered. If a sender comes back to the queue, because it sends more, it is
/// the last one of this round. So messages are read between those of fibers that send many
/// messages, but not between those of fibers that send one each, such as handlers that pass a call
/// on.
int let_senders_go(int to) {
  peer& p = peer_of(to);
  int went = 0;
  for (std::size_t left = p.senders.size(); left > 0 && went < senders_a_round; --left) {
    if (!sender_may_go(to) || !bundle_is_sent(to) || !sender_may_go(to)) break;
    run_first(p, p.senders);
    ++went;
    if (p.senders.size() >= left) break;
  }
  return went;
}

}  // namespace

int let_waiting_go() {
  int done = 0;
  for (int to = 0; to < job.count; ++to) {
    peer& p = peer_of(to);
    done += send_late_replies(to);
    if (const std::size_t late = p.late_bundles.size(); late != 0) {
      (void)send_late_bundles(to);
      done += static_cast<int>(late - p.late_bundles.size());
    }
    if (caller_may_go(p) && bundle_is_sent(to)) {
      run_first(p, p.callers);
      ++done;
    }
    done += let_senders_go(to);
  }
  return done;
}

namespace {

void queue_sender(int to, const pending_send& sender) {
  peer& p = peer_of(to);
  if (sender.needs_credit && p.unanswered >= unanswered_max) {
    // Senders that need credit wait in a queue of their own, so that messages without an answer can
    // pass them: the answers that give credit may depend on such a message.
    p.callers.push_back(sender);
  } else {
    p.senders.push_back(sender);
    p.note_senders();
  }
  ++dispatcher.waiting_senders;
}

struct room_wait {
  int to;
  std::size_t bytes;
  bool needs_credit;
};

void suspend_for_room(int to, std::size_t bytes, bool needs_credit) {
  if (has_ended(to)) throw_rank_lost(to, "a message");
  ++counts.suspensions_for_room;
  room_wait w{to, bytes, needs_credit};
  leave(
      [](piece* left, void* context) {
        room_wait asked = *static_cast<room_wait*>(context);
        piece* waiter = block(left);
        wait_times.begins(waiter);
        queue_sender(asked.to, {asked.bytes, wake_sender, waiter, asked.needs_credit, waiter});
      },
      &w);
}

/// Room for a call, or null.
[[gnu::always_inline]] inline std::byte* reserve_call(int to, std::size_t bytes) {
  return to == job.me ? dispatcher.own.reserve(bytes)
                      : dispatcher.transport->reserve(to, message_class::request, bytes);
}

template <bool SameProgram>
[[gnu::noinline]] std::byte* reserve_call_when_room(int to, std::size_t bytes, bool answered) {
  if (SameProgram && runs_other_program(to)) refuse_unnamed_call(to);
  if (has_ended(to)) throw_rank_lost(to, "a call");
  // Bundled calls go first, because this fiber may have made them. If there is a bundle and no
  // sender waits after it has been sent, it is this fiber's turn.
  const peer& p = peer_of(to);
  const bool shares = (p.before_calls & peer::shares_memory) != 0;
  bool my_turn = (p.before_calls & (peer::has_bundle | peer::shares_memory)) != 0;
  if ((p.before_calls & peer::has_bundle) != 0) send_bundle(to);
  my_turn = my_turn && (p.before_calls & peer::senders_wait) == 0;
  for (;; my_turn = true) {
    if (my_turn && (!answered || peer_of(to).unanswered < unanswered_max) &&
        is_told(to, message_class::request)) {
      if (std::byte* room = reserve_call(to, bytes)) {
        dispatcher.half_written.is_noted = shares;
        return room;
      }
    }
    suspend_for_room(to, bytes, answered);
    if (has_ended(to)) throw_rank_lost(to, "a call");
  }
}

/// `SameProgram`: only ranks that run this program may be called.
template <bool SameProgram>
[[gnu::always_inline]] inline outgoing begin_call(int to, std::size_t bytes, bool answered) {
  constexpr peer::obstacles all = ~peer::obstacles{0};
  constexpr peer::obstacles closed = SameProgram ? all : all & ~peer::other_program;
  const peer& p = peer_of(to);
  std::byte* room = nullptr;
  if ((p.before_calls & closed) == 0 && (!answered || p.unanswered < unanswered_max)) [[likely]] {
    room = reserve_call(to, bytes);
  }
  if (room == nullptr) [[unlikely]]
    room = reserve_call_when_room<SameProgram>(to, bytes, answered);
  if (to != job.me) {
    ++counts.requests_sent;
    counts.request_bytes += bytes + header_bytes;
  }
  if (!answered) return {room, 0};
  // The peer is looked up again: if the fiber has waited, it may now be in a job that was restored
  // from a checkpoint, where the table of peers lies elsewhere.
  peer_of(to).unanswered += to != job.me;  // own calls are not counted
  return {room, open_ticket(to)->id};
}

template <bool SameProgram>
[[gnu::noinline]] outgoing begin_in_scope(void* scope, int to, std::size_t bytes, bool answered) {
  if (SameProgram && runs_other_program(to)) refuse_unnamed_call(to);
  const scope_ticket weight = on_dispatch.scopes.take(scope);
  const std::size_t before = (bytes + 7) / 8 * 8;
  outgoing out;
  try {
    out = begin_call<SameProgram>(to, before + sizeof(scope_ticket), answered);
  } catch (...) {  // the rank has ended
    on_dispatch.scopes.put_back(weight);
    throw;
  }
  dispatcher.half_written.is_noted = true;
  dispatcher.half_written.weight = weight;
  dispatcher.half_written.weight_at = static_cast<std::byte*>(out.payload) + before;
  return out;
}

[[noreturn]] void refuse_length(std::size_t bytes) {
  throw error(format(
      "arguments of %zu bytes are too long for a call: move large data with put and get", bytes));
}

[[noreturn, gnu::cold]] void refuse_rank(int to) {
  if (dispatcher.ranks == 0) refuse_outside_job("a call");
  throw error(format("there is no rank %d: this job has ranks 0 to %d", to, job.count - 1));
}

[[gnu::always_inline]] inline void check_rank(int to) {
  if (to < 0 || to >= dispatcher.ranks) [[unlikely]]
    refuse_rank(to);
}

}  // namespace

void leave_job() {
  dispatcher.ranks = 0;
  open_run_count = 0;
  bundles_waiting = 0;
}

void close_to_other_programs() {
  for (int r = 0; r < job.count; ++r) {
    if (!runs_other_program(r)) continue;
    peer_of(r).before_calls |= peer::other_program;
  }
}

namespace {

void count_reply(int to, runtime_message kind, std::size_t bytes) {
  if (counts_as_traffic(static_cast<std::uint16_t>(kind))) {
    ++dispatcher.moved.sent;
  } else {
    ++dispatcher.moved_collective.sent;
  }
  if (to != job.me) count_message(kind, bytes);
}

}  // namespace

void count_message(runtime_message kind, std::size_t payload) {
  const message_kind& described = description_of(kind);
  if (described.messages != nullptr) ++(counts.*described.messages);
  if (described.bytes != nullptr) counts.*described.bytes += payload + header_bytes;
}

bool lend_reply(int to, runtime_message kind, ticket_id ticket, const transport::loan& payload) {
  // Messages that wait go first, and so does what on_dispatch.tell sends.
  if (peer_of(to).before_replies != 0 ||
      !dispatcher.transport->lend(to, message_class::reply, static_cast<std::uint16_t>(kind), 0,
                                  ticket, payload))
    return false;
  count_reply(to, kind, payload.bytes);
  return true;
}

void send_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket,
                const void* bytes, std::size_t size) {
  count_reply(to, kind, size);
  peer& p = peer_of(to);
  std::byte* room = p.before_replies == 0
                        ? dispatcher.transport->reserve(to, message_class::reply, size)
                        : nullptr;
  if (room == nullptr) [[unlikely]] {
    const auto* first = static_cast<const std::byte*>(bytes);
    std::vector<std::byte> copy;
    if ((p.before_replies & peer::shares_memory) != 0) {
      if (addresses.in_shared(reinterpret_cast<std::uint64_t>(bytes))) {
        // Copied now, because loading it may suspend, which is forbidden while a message is half
        // written.
        copy.assign(first, first + size);
        first = copy.data();
      }
      if (!is_no_acquire(kind)) (void)is_told(to, message_class::reply);
      if ((p.before_replies & peer::replies_wait) == 0)
        room = dispatcher.transport->reserve(to, message_class::reply, size);
    }
    if (room != nullptr) {
      copy_short(room, first, size);
      return dispatcher.transport->commit(to, message_class::reply,
                                          static_cast<std::uint16_t>(kind), flags, ticket);
    }
    p.replies.push_back({kind, flags, ticket, {first, first + size, runtime_resource()}});
    p.note_replies();
    ++dispatcher.waiting_replies;
    return;
  }
  copy_short(room, bytes, size);
  dispatcher.transport->commit(to, message_class::reply, static_cast<std::uint16_t>(kind), flags,
                               ticket);
}

std::byte* reserve_reply(int to, runtime_message kind, std::size_t size) {
  ++dispatcher.moved.sent;
  if (to != job.me) count_message(kind, size);
  peer& p = peer_of(to);
  std::byte* room = (p.before_replies & peer::replies_wait) == 0
                        ? dispatcher.transport->reserve(to, message_class::reply, size)
                        : nullptr;
  if (room != nullptr) [[likely]]
    return room;
  p.replies.push_back({kind, 0, 0, std::pmr::vector<std::byte>(size, runtime_resource()), false});
  p.note_replies();
  ++dispatcher.waiting_replies;
  return p.replies.back().bytes.data();
}

void commit_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket) {
  peer& p = peer_of(to);
  if ((p.before_replies & peer::replies_wait) != 0 && !p.replies.back().written) [[unlikely]] {
    late_reply& late = p.replies.back();
    late.flags = flags;
    late.ticket = ticket;
    late.written = true;
    return;
  }
  dispatcher.transport->commit(to, message_class::reply, static_cast<std::uint16_t>(kind), flags,
                               ticket);
}

std::byte* try_reserve_request(int to, std::size_t bytes) {
  const peer& p = peer_of(to);
  if ((p.before_calls & peer::senders_wait) != 0 || !bundle_is_sent(to)) return nullptr;
  return reserve_in_turn(to, bytes);
}

std::byte* reserve_in_turn(int to, std::size_t bytes) {
  return is_told(to, message_class::request)
             ? dispatcher.transport->reserve(to, message_class::request, bytes)
             : nullptr;
}

void when_room(int to, std::size_t bytes, void (*go)(void*), void* context, piece* waiter) {
  ++counts.suspensions_for_room;
  if (waiter != nullptr) wait_times.begins(waiter);
  queue_sender(to, {bytes, go, context, false, waiter});
}

std::byte* reserve_request(int to, std::size_t bytes) {
  if (bytes > dispatcher.transport->payload_max()) {
    throw error(
        format("a message of %zu bytes is longer than the longest (%zu): move large data "
               "with put and get",
               bytes, dispatcher.transport->payload_max()));
  }
  if (has_ended(to)) throw_rank_lost(to, "a message");
  std::byte* room = try_reserve_request(to, bytes);
  while (room == nullptr) {
    suspend_for_room(to, bytes, false);
    // This fiber was woken because it is its turn: senders behind it in the queue do not count.
    room = reserve_in_turn(to, bytes);
  }
  dispatcher.half_written.is_noted = shares_memory();
  return room;
}

ticket_id open_answer(int rank) {
  peer_of(rank).unanswered += rank != job.me;
  return open_ticket(rank)->id;
}

void wait_for_room(int to, std::size_t bytes) { suspend_for_room(to, bytes, false); }

void begin_to_hold_back(int to) {
  ++bundles_waiting;
  peer_of(to).before_calls |= peer::has_bundle;
  want_rounds(true);
}

namespace {

/// Room for what was bundled for `to`, or null.
std::byte* room_for_bundle(int to) {
  return is_told(to, message_class::request) ? reserve_call(to, bundle_bytes(to)) : nullptr;
}

}  // namespace

std::byte* room_for_run(int to, std::size_t bytes) {
  if ((peer_of(to).before_calls & peer::senders_wait) != 0 || is_lost(to) ||
      dispatcher.refuses_requests || !try_send_bundle(to) || !is_told(to, message_class::request))
    return nullptr;
  return reserve_call(to, bytes);
}

void commit_runs(int to, std::byte* room, std::size_t bytes, const scope_ticket& weight,
                 bool in_scope) {
  if (in_scope) std::memcpy(room + bytes, &weight, sizeof weight);
  ++counts.bundles_sent;
  const std::uint16_t flags = in_scope ? flag_scope : std::uint16_t{0};
  if (to == job.me) {
    ++dispatcher.moved.sent;
    dispatcher.own.commit(bundle_handler, flags, 0);
  } else {
    ++counts.requests_sent;
    counts.request_bytes += bytes + (in_scope ? sizeof weight : 0) + header_bytes;
    commit_message(to, message_class::request, runtime_message{bundle_handler}, flags, 0);
  }
}

namespace {

/// Sends the runs of a bundle, for which there is `room`.
void commit_bundle(int to, std::byte* room, const std::byte* runs, std::size_t bytes,
                   const scope_ticket& weight, bool in_scope) {
  std::memcpy(room, runs, bytes);
  commit_runs(to, room, bytes, weight, in_scope);
}

/// Of calls to a rank that has ended.
void drop_bundle(int to, const void* scope, const scope_ticket& weight) {
  if (scope != nullptr) on_dispatch.scopes.drop(weight, to);
}
/// To be called when a bundle has been sent, or is not wanted any more.
void waits_no_longer(int to, void* scope) {
  --bundles_waiting;
  if (bundle_bytes(to) == 0) peer_of(to).before_calls &= ~peer::has_bundle;
  want_rounds(false);
  if (scope != nullptr) on_fiber.scope.left(scope);
}

// The most memory of bundles that handlers have put aside.
constexpr std::size_t late_bundle_memory_max = std::size_t{64} << 20;

}  // namespace

bool send_late_bundles(int to) {
  peer& p = peer_of(to);
  while (!p.late_bundles.empty()) {
    const late_bundle late = p.late_bundles.front();
    if (!is_lost(to)) {
      std::byte* room = room_for_bundle(to);
      if (room == nullptr) return false;
      commit_bundle(to, room, late.runs, late.bytes, late.weight, late.scope != nullptr);
    } else {
      drop_bundle(to, late.scope, late.weight);
    }
    p.late_bundles.pop_front();
    runtime_resource()->deallocate(late.runs, late.memory);
    dispatcher.late_bundle_memory -= late.memory;
    waits_no_longer(to, late.scope);
  }
  return true;
}

bool put_bundle_aside(int to) {
  bundle& b = bundles[to];
  b.close_run();
  const std::size_t bytes = b.bytes();
  const bool is_full = bytes >= b.memory / 2;
  const std::size_t memory = is_full ? b.memory : bytes;
  if (dispatcher.late_bundle_memory + memory > late_bundle_memory_max) return false;
  std::byte* runs = b.first;
  if (is_full) {
    b.first = nullptr;
    b.memory = 0;
  } else {  // its scope has changed: a copy takes as much as it needs
    runs = static_cast<std::byte*>(runtime_resource()->allocate(memory));
    std::memcpy(runs, b.first, bytes);
  }
  b.open->next = b.first;
  peer_of(to).late_bundles.push_back({runs, bytes, memory, b.weight, b.open->scope});
  dispatcher.late_bundle_memory += memory;
  return true;
}

bool try_send_bundle(int to) {
  if (bundles == nullptr) return true;
  if (!send_late_bundles(to)) return false;
  bundle& b = bundles[to];
  if (b.is_empty()) return true;
  if (is_lost(to)) {
    b.open->called = nullptr;
    drop_bundle(to, b.open->scope, b.weight);
  } else {
    std::byte* room = room_for_bundle(to);
    if (room == nullptr) return false;
    b.close_run();
    commit_bundle(to, room, b.first, b.bytes(), b.weight, b.open->scope != nullptr);
  }
  b.open->next = b.first;
  waits_no_longer(to, b.open->scope);
  return true;
}

void send_bundle(int to) {
  while (!try_send_bundle(to)) wait_for_room(to, bundle_bytes(to));
}

void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket) {
  ++dispatcher.moved.sent;
  dispatcher.half_written.is_noted = false;
  dispatcher.transport->commit(to, kind, static_cast<std::uint16_t>(handler), flags, ticket);
}

namespace {

/// `SameProgram`: only ranks that run this program may be called.
template <bool SameProgram>
[[gnu::always_inline]] inline outgoing begin(int to, std::size_t bytes, bool answered) {
  check_rank(to);
  if (bytes > dispatcher.transport->payload_max()) [[unlikely]]
    refuse_length(bytes);
  if (dispatcher.refuses_requests) [[unlikely]]
    refuse_request_of_nonblocking();
  const piece* runs = running_piece();
  if (runs == nullptr) [[unlikely]] {
    refuse_other_thread();
  } else if (runs->scope != nullptr) [[unlikely]] {
    return begin_in_scope<SameProgram>(runs->scope, to, bytes, answered);
  }
  return begin_call<SameProgram>(to, bytes, answered);
}

}  // namespace

outgoing begin_request(int to, std::size_t bytes, bool answered) {
  return begin<true>(to, bytes, answered);
}

outgoing begin_fixed_request(int to, std::size_t bytes, bool answered) {
  return begin<false>(to, bytes, answered);
}

void commit_request(int to, std::uint16_t handler, ticket_id ticket) {
  std::uint16_t flags = 0;
  if (dispatcher.half_written.is_noted) [[unlikely]] {
    dispatcher.half_written.is_noted = false;
    if (dispatcher.half_written.weight_at != nullptr) {
      flags = flag_scope;
      std::memcpy(dispatcher.half_written.weight_at, &dispatcher.half_written.weight,
                  sizeof(scope_ticket));
      dispatcher.half_written.weight_at = nullptr;
    }
  }
  ++dispatcher.moved.sent;
  if (to == job.me) return dispatcher.own.commit(handler, flags, ticket);
  dispatcher.transport->commit(to, message_class::request, handler, flags, ticket);
}

void answered_by(int rank) { peer_of(rank).unanswered -= rank != job.me; }

std::uint32_t unanswered_by(int rank) { return peer_of(rank).unanswered; }
void restore_unanswered(int rank, std::uint32_t count) { peer_of(rank).unanswered = count; }
void wake_callers() {
  for (int to = 0; to < job.count; ++to) {
    auto& callers = peer_of(to).callers;
    for (; !callers.empty(); callers.pop_front()) {
      --dispatcher.waiting_senders;
      callers.front().go(callers.front().context);
    }
  }
}

void share_memory() {
  for (int r = 0; r < job.count; ++r) {
    peer& p = peer_of(r);
    p.before_calls |= peer::shares_memory;
    p.before_replies |= peer::shares_memory;
  }
  // If a fiber is writing a message now, writing it touches shared memory for the first time.
  // Messages about the pages that it needs meanwhile go out before that message.
  if (dispatcher.transport->is_reserved() || dispatcher.own.is_reserved())
    dispatcher.half_written.is_noted = true;
}
bool shares_memory() {
  return dispatcher.ranks != 0 && (dispatcher.peers[0].before_calls & peer::shares_memory) != 0;
}
bool is_writing_message() { return dispatcher.half_written.is_noted || bundles_waiting != 0; }

void want_rounds(bool wanted) {
  // Counted as a sender that waits, so that one number tells whether anything keeps the rank from
  // being idle.
  dispatcher.waiting_senders += wanted ? 1 : std::size_t(-1);
}

void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context) {
  for (int to = 0; to < job.count; ++to) {
    const peer& p = peer_of(to);
    for (const auto* queue : {&p.senders, &p.callers}) {
      for (const pending_send& s : *queue) {
        if (s.waiter != nullptr) visit(s.waiter, to, context);
      }
    }
  }
}

}  // namespace sojourn::detail
