// SPDX-License-Identifier: Apache-2.0
#include "message/dispatcher.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "base/copy_short.hpp"
#include "fiber/forks.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/timers.hpp"
#include "fiber/wait_clock.hpp"
#include "fiber/waiters.hpp"
#include "memory/address_map.hpp"
#include "memory/global_heap.hpp"
#include "message/bundles.hpp"
#include "message/message_reader.hpp"
#include "message/own_requests.hpp"
#include "message/programs.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

scope_wire scopes_on_wire{};

namespace {

constexpr std::uint16_t first_user_handler = static_cast<std::uint16_t>(runtime_message::count_);
// The most unanswered calls of one rank to another: bounds the answers that the other must keep.
constexpr std::uint32_t unanswered_max = 65536;
// How many ready pieces run between two polls, and how many messages of each rank a poll takes.
constexpr int pieces_a_round = 32;
constexpr int messages_a_round = 16;
// Polls in vain until a rank counts as idle. When each rank has a core, they take some round trips,
// so that a rank that waits for an answer is not idle; otherwise they are fewer than a rank makes
// before it gives its core to others.
constexpr unsigned looks_until_idle = 512;
constexpr unsigned looks_until_idle_when_crowded = 16;
// While fibers sleep and there is work, the clock is read once in this many rounds, or replies
// taken in place; a power of two.
constexpr unsigned rounds_a_look_at_the_clock = 16;
// Blocked computations a rank keeps before it refuses calls (their images alone take a GiB).
constexpr std::size_t fibers_max = 2'000'000;

struct user_handler {
  request_handler run;
  bool may_migrate;
  const char* promises = nullptr;  ///< If the handler never waits: the name of what it calls.
  std::size_t keeps = 0;           ///< If its messages may be kept for later: their least size.
};
std::vector<user_handler>& user_handlers() {
  // Filled before main, in any order of initialisation; the fixed ones stand first.
  static std::vector<user_handler> table(static_cast<std::size_t>(fixed_handler::count_));
  return table;
}
/// The handlers of the runtime's own messages. A message of fewer bytes than `least` is refused.
struct bounded_handler {
  runtime_handler run = nullptr;
  std::size_t least = ~std::size_t{0};
};
bounded_handler runtime_handlers[first_user_handler];

/// A sender that waits for room.
struct pending_send {
  std::size_t bytes;
  void (*go)(void*);
  void* context;
  bool needs_credit;
  piece* waiter;
};
struct late_reply {
  runtime_message kind;
  std::uint16_t flags;
  ticket_id ticket;
  std::vector<std::byte> bytes;
  bool written = true;  ///< False between reserve_reply and commit_reply.
};
/// What this rank knows of another. Fibers read the lengths of the queues from counters: if they
/// asked the queues, addresses of the queues' memory would remain on their stacks, and the scan
/// would take them for pointers of the program.
struct peer {
  // A bit of senders_waiting, which every call looks at anyhow: the rank runs another program, and
  // refuses calls without a name.
  static constexpr std::uint32_t of_other_program = 1u << 31;
  // Another bit: a bundle of calls waits to go to the rank.
  static constexpr std::uint32_t has_bundle = 1u << 30;
  // Another bit: the rank has ended.
  static constexpr std::uint32_t is_lost = 1u << 29;
  static constexpr std::uint32_t number_of_senders = is_lost - 1;

  std::uint32_t unanswered = 0;
  std::uint32_t senders_waiting = 0;
  std::uint32_t replies_waiting = 0;
  std::deque<pending_send> senders;  // wait for room
  std::deque<pending_send> callers;  // wait for answers to earlier calls
  std::deque<late_reply> replies;
};
struct dispatcher_state {
  active_transport* transport = nullptr;
  own_requests own;
  peer* peers = nullptr;  // one for each rank
  int ranks = 0;          // as many; none before run()
  const user_handler* handlers = nullptr;
  std::size_t handler_count = 0;
  std::size_t waiting_senders = 0;
  std::size_t waiting_replies = 0;
  traffic moved{};
  traffic moved_collective{};
  void (*around_sleep)(bool falls_asleep) = nullptr;
  // Called once a round: `wanted_each_round`, or a function that first does what a signal handler
  // wants done once.
  std::atomic<int (*)(bool idle)> each_round = nullptr;
  int (*wanted_each_round)(bool idle) = nullptr;
  std::atomic<void (*)(bool idle)> at_next_round = nullptr;
  void (*when_idle)(bool idle) = [](bool) {};
  unsigned looks_in_vain = 0;  // since the rank has nothing to do
  unsigned looks_until_idle = 0;
  losses told{};
  std::uint32_t losses_seen = 0;
  int first_lost = no_rank;
  unsigned rounds_with_sleepers = 0;
  bool sleepers_are_due = false;
  // Between begin_request and commit_request.
  scope_ticket request_scope{};
  std::byte* request_scope_at = nullptr;
} dispatcher;

void count_other_message(runtime_message kind, std::size_t bytes) {
  switch (kind) {
    case runtime_message::piece:
    case runtime_message::piece_to_read:
      ++counts.migrations;
      counts.migration_bytes += bytes;
      break;
    case runtime_message::collective:
    case runtime_message::scope_returns:
    case runtime_message::scope_failed:
    case runtime_message::scope_wants:
      ++counts.collective_messages;
      counts.collective_bytes += bytes;
      break;
    case runtime_message::steal_ask:
    case runtime_message::steal_nothing:
    case runtime_message::load_told:
    case runtime_message::threads_handed:
      ++counts.balance_messages;
      counts.balance_bytes += bytes;
      break;
    case runtime_message::entry_told:
      ++counts.replies_sent;
      counts.reply_bytes += bytes;
      break;
    case runtime_message::bulk_put:
    case runtime_message::bulk_get:
    case runtime_message::kept_read:
    case runtime_message::kept_ended:
      ++counts.bulk_messages;
      break;
    default:
      ++counts.requests_sent;
      counts.request_bytes += bytes;
  }
}

inline void count_message(runtime_message kind, std::size_t payload) {
  std::size_t bytes = payload + header_bytes;
  if (kind != runtime_message::result) return count_other_message(kind, bytes);
  ++counts.replies_sent;
  counts.reply_bytes += bytes;
}

bool counts_as_traffic(std::uint16_t handler) {
  return handler != static_cast<std::uint16_t>(runtime_message::collective);
}

bool has_room(int to, std::size_t bytes) {
  return to == job.me ? dispatcher.own.has_room(bytes)
                      : dispatcher.transport->has_room(to, message_class::request, bytes);
}

/// True when the first sender that waits for room to `to` may go on.
bool sender_may_go(int to) {
  const peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  return !p.senders.empty() && has_room(to, p.senders.front().bytes);
}
bool bundle_may_go(int to) {
  return (dispatcher.peers[static_cast<std::size_t>(to)].senders_waiting & peer::has_bundle) != 0 &&
         has_room(to, bundle_bytes(to));
}
bool caller_may_go(const peer& p) { return !p.callers.empty() && p.unanswered < unanswered_max; }

/// Sends what was bundled for `to`, which goes before anything else that is sent there; false when
/// there is no room for it.
bool bundle_is_sent(int to) {
  return (dispatcher.peers[static_cast<std::size_t>(to)].senders_waiting & peer::has_bundle) == 0 ||
         try_send_bundle(to);
}

bool has_new_loss();

bool someone_can_send() {
  if (++dispatcher.looks_in_vain == dispatcher.looks_until_idle) dispatcher.when_idle(true);
  if (has_new_loss()) return true;
  if (dispatcher.waiting_senders == 0 && dispatcher.waiting_replies == 0) return false;
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

void wake_sender(void* sender) { make_ready(static_cast<piece*>(sender), woken_here); }

/// There is room, or credit, for what `s` sends. It takes that before the pieces that are ready
/// already, which may want it, too.
void run_now(const pending_send& s) {
  if (s.go != wake_sender) return s.go(s.context);
  make_ready_first(static_cast<piece*>(s.context), woken_here);
  run_ready(1);
}

int retry_senders() {
  if (dispatcher.waiting_senders == 0 && dispatcher.waiting_replies == 0) [[likely]]
    return 0;
  int done = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(job.count); ++i) {
    int to = static_cast<int>(i);
    peer& p = dispatcher.peers[i];
    while (!p.replies.empty()) {
      late_reply& r = p.replies.front();
      std::byte* room = dispatcher.transport->reserve(to, message_class::reply, r.bytes.size());
      if (room == nullptr) break;
      if (!r.bytes.empty()) std::memcpy(room, r.bytes.data(), r.bytes.size());
      dispatcher.transport->commit(to, message_class::reply, static_cast<std::uint16_t>(r.kind),
                                   r.flags, r.ticket);
      p.replies.pop_front();
      --p.replies_waiting;
      --dispatcher.waiting_replies;
      ++done;
    }
    // One sender a round: it fills its room before the next one is considered.
    if (caller_may_go(p) && bundle_is_sent(to)) {
      pending_send s = p.callers.front();
      p.callers.pop_front();
      --dispatcher.waiting_senders;
      run_now(s);
      ++done;
    }
    if (sender_may_go(to) && bundle_is_sent(to) && sender_may_go(to)) {
      pending_send s = p.senders.front();
      p.senders.pop_front();
      --p.senders_waiting;
      --dispatcher.waiting_senders;
      run_now(s);
      ++done;
    }
  }
  return done;
}

struct handler_call {
  request_handler run;
  request message;
  const arrival* from;
};

void run_user_handler(void* context) {
  auto* call = static_cast<handler_call*>(context);
  call->run(call->message);
}

void run_rest_of_bundle(void* context) {
  rest_of_bundle(static_cast<handler_call*>(context)->message);
}

// The message whose handler was entered last, until that handler returned or blocked:
// request::consume refers to it, and a fiber that a blocked handler has become is known by the
// ticket of its answer.
const arrival* entered = nullptr;

void consume_call(const arrival& a) {
  if (a.source == job.me) return dispatcher.own.consume();
  dispatcher.transport->consume(a);
}

void deliver_to_user(arrival& a) {
  std::size_t index = a.handler - first_user_handler;
  if (index >= dispatcher.handler_count) {
    die("a message from rank %d names handler %zu of %zu: it does not come from this program",
        a.source, index, dispatcher.handler_count);
  }
  void* scope = nullptr;
  if (!is_of_this_job(a.ticket)) [[unlikely]]
    refuse_arrival(a, "is to be answered to a rank that is not there");
  if (a.flags & flag_scope) {
    message_reader from(a);
    scope = scopes_on_wire.give(a, from.take_last<scope_ticket>());
    a.bytes = from.left();
  }
  if (fibers_unfinished() > fibers_max) [[unlikely]] {
    ticket_id answer = a.ticket;
    int source = a.source;
    consume_call(a);
    if (answer == 0)
      die("more than %zu computations are blocked here and rank %d calls", fibers_max, source);
    send_exception(answer, std::make_exception_ptr(error(format(
                               "rank %d refuses a call: more than %zu computations are blocked "
                               "there; start fewer at a time",
                               job.me, fibers_max))));
    if (scope != nullptr) on_scope.left(scope);
    return;
  }
  ++counts.handlers_run;
  entered = &a;
  handover.called_by = a.source;
  const user_handler& handler = dispatcher.handlers[index];
  handler_call call{
      handler.run, {a.payload, static_cast<std::uint32_t>(a.bytes), a.source, a.ticket}, &a};
  // A handler that never waits runs here, on no fiber, unless it needs one: scopes and bundles
  // belong to fibers, and checked mode tells more about a fiber.
  if (handler.promises != nullptr && scope == nullptr && bundles_waiting == 0 && !checked()) {
    begin_promise(promise_of_handler::nonblocking, handler.promises);
    handler.run(call.message);
    if (running.mutexes != nullptr) [[unlikely]]
      ended_with_mutex();
    end_promise();
    return;
  }
  const bool bundled = is_bundle(handler.run);
  handler_end end = run_handler(run_user_handler, &call, !handler.may_migrate, scope, !bundled);
  while (bundled && end == handler_end::fiber_waits) {
    if (scope != nullptr) on_scope.joined(scope);
    end = run_handler(run_rest_of_bundle, &call, true, scope);
  }
  if (scope != nullptr && end == handler_end::returned) on_scope.left(scope);
}

/// Handles a message. True when something has become ready, which then runs before more messages
/// are looked at.
bool deliver(arrival& a, void*) {
  if (counts_as_traffic(a.handler)) {
    ++dispatcher.moved.received;
  } else {
    ++dispatcher.moved_collective.received;
  }
  if (a.handler < first_user_handler) {
    const bounded_handler& handler = runtime_handlers[a.handler];
    if (a.bytes < handler.least) [[unlikely]]
      refuse_arrival(a, "is shorter than any of its kind");
    handler.run(a);
  } else {
    deliver_to_user(a);
  }
  return anything_ready();
}
/// The same for polls at which something is ready already, such as a fiber that yields in order to
/// let messages run.
bool deliver_all(arrival& a, void*) {
  (void)deliver(a, nullptr);
  return false;
}

/// Delivers as many requests of this rank to itself as a poll takes from another rank.
int deliver_own() {
  int delivered = 0;
  do {
    ++dispatcher.moved.received;
    arrival a = dispatcher.own.next();
    deliver_to_user(a);
    ++delivered;
  } while (!dispatcher.own.empty() && !anything_ready() && delivered < messages_a_round);
  return delivered;
}

/// Reads the clock, but not at every call: true when a sleeper's time has come.
[[gnu::noinline]] bool look_for_sleepers() {
  if (++dispatcher.rounds_with_sleepers % rounds_a_look_at_the_clock == 0 &&
      now_ns() >= next_timer_ns) {
    dispatcher.sleepers_are_due = true;
  }
  return dispatcher.sleepers_are_due;
}

int wake_sleepers(bool idle) {
  if (!idle && !look_for_sleepers()) return 0;
  dispatcher.sleepers_are_due = false;
  return wake_due(now_ns());
}

void queue_sender(int to, const pending_send& sender) {
  peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  if (sender.needs_credit && p.unanswered >= unanswered_max) {
    // In a queue of their own: what needs no answer, and may be what the answers wait for, passes
    // them.
    p.callers.push_back(sender);
  } else {
    p.senders.push_back(sender);
    ++p.senders_waiting;
  }
  ++dispatcher.waiting_senders;
}

struct room_wait {
  int to;
  std::size_t bytes;
  bool needs_credit;
};

bool has_new_loss() {
  return dispatcher.told.count != nullptr &&
         dispatcher.told.count->load(std::memory_order_relaxed) != dispatcher.losses_seen;
}

/// Fails what waits for ranks that have ended since the last call.
[[gnu::noinline]] int meet_losses() {
  dispatcher.losses_seen = dispatcher.told.count->load();
  for (int rank = 0; rank < job.count; ++rank) {
    if (!dispatcher.told.is_lost(rank) || is_lost(rank)) continue;
    peer& p = dispatcher.peers[static_cast<std::size_t>(rank)];
    p.senders_waiting |= peer::is_lost;
    if (dispatcher.first_lost == no_rank) dispatcher.first_lost = rank;
    // A woken fiber sees for itself that the rank is lost. Messages of the runtime go on waiting
    // for room.
    for (auto* queue : {&p.senders, &p.callers}) {
      std::deque<pending_send> stay;
      for (const pending_send& s : *queue) {
        if (s.go != wake_sender) {
          stay.push_back(s);
          continue;
        }
        --dispatcher.waiting_senders;
        if (queue == &p.senders) --p.senders_waiting;
        s.go(s.context);
      }
      queue->swap(stay);
    }
    dispatcher.told.fail_waits(rank);
  }
  return 1;
}

void suspend_for_room(int to, std::size_t bytes, bool needs_credit) {
  if (is_lost(to)) throw_rank_lost(to, "a message");
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
  if (is_lost(to)) throw_rank_lost(to, "a call");
  // Bundled calls, which this fiber may have made, go first. If there were any and nobody waits any
  // more, it is this fiber's turn.
  const peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  bool my_turn = (p.senders_waiting & peer::has_bundle) != 0;
  if (my_turn) send_bundle(to);
  my_turn = my_turn && (p.senders_waiting & peer::number_of_senders) == 0;
  for (;; my_turn = true) {
    if (my_turn &&
        (!answered || dispatcher.peers[static_cast<std::size_t>(to)].unanswered < unanswered_max)) {
      if (std::byte* room = reserve_call(to, bytes)) return room;
    }
    suspend_for_room(to, bytes, answered);
    if (is_lost(to)) throw_rank_lost(to, "a call");
  }
}

/// SameProgram: only to ranks that run this program; else to any rank.
template <bool SameProgram>
[[gnu::always_inline]] inline outgoing begin_call(int to, std::size_t bytes, bool answered) {
  constexpr std::uint32_t closed = SameProgram ? ~std::uint32_t{0} : ~peer::of_other_program;
  const peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  std::byte* room = nullptr;
  if ((p.senders_waiting & closed) == 0 && (!answered || p.unanswered < unanswered_max))
      [[likely]] {
    room = reserve_call(to, bytes);
  }
  if (room == nullptr) [[unlikely]]
    room = reserve_call_when_room<SameProgram>(to, bytes, answered);
  if (to != job.me) {
    ++counts.requests_sent;
    counts.request_bytes += bytes + header_bytes;
  }
  if (!answered) return {room, 0};
  // Looked up again: a fiber that has waited may go on in a job restored from a checkpoint, whose
  // tables lie elsewhere.
  dispatcher.peers[static_cast<std::size_t>(to)].unanswered += to != job.me;  // none to itself
  return {room, open_ticket(to)->id};
}

template <bool SameProgram>
[[gnu::noinline]] outgoing begin_in_scope(void* scope, int to, std::size_t bytes, bool answered) {
  if (SameProgram && runs_other_program(to)) refuse_unnamed_call(to);
  const scope_ticket weight = scopes_on_wire.take(scope);
  const std::size_t before = (bytes + 7) / 8 * 8;
  const outgoing out = begin_call<SameProgram>(to, before + sizeof(scope_ticket), answered);
  dispatcher.request_scope = weight;
  dispatcher.request_scope_at = static_cast<std::byte*>(out.payload) + before;
  return out;
}

[[noreturn]] void refuse_length(std::size_t bytes) {
  throw error(format(
      "arguments of %zu bytes are too long for a call: move large data with put and get", bytes));
}

[[noreturn, gnu::cold]] void refuse_rank(int to) {
  if (dispatcher.ranks == 0) refuse_before_run("a call");
  throw error(format("there is no rank %d: this job has ranks 0 to %d", to, job.count - 1));
}

[[gnu::always_inline]] inline void check_rank(int to) {
  if (to < 0 || to >= dispatcher.ranks) [[unlikely]]
    refuse_rank(to);
}

}  // namespace

active_transport& wire() { return *dispatcher.transport; }

void on_message(runtime_message kind, runtime_handler handler, std::size_t least) {
  runtime_handlers[static_cast<std::size_t>(kind)] = {handler, least};
}

std::uint16_t register_request_handler(request_handler handler, bool may_migrate,
                                       const char* promises, std::size_t keeps) {
  auto& table = user_handlers();
  table.push_back({handler, may_migrate, promises, keeps});
  std::size_t index = table.size() - 1 + first_user_handler;
  if (index > 0xffff) die("a program has at most 65,000 different remote calls");
  return static_cast<std::uint16_t>(index);
}

namespace {

// While a handler runs that must not wait: the compiler's name for what it calls.
const char* promised = nullptr;
promise_of_handler promise;

[[noreturn, gnu::cold]] void promise_was_broken() {
  // Compilers write "… [with F = name]".
  std::string_view name = promised;
  std::size_t begin = name.find("= ");
  if (begin != std::string_view::npos) name = name.substr(begin + 2, name.size() - begin - 3);
  const int length = static_cast<int>(name.size());
  if (promise == promise_of_handler::view) {
    die("`%.*s` takes a sojourn::view, and waited or migrated while its arguments lay in the "
        "message; "
        "a function that waits takes std::span<const T> or std::string_view (docs/marshalling.md)",
        length, name.data());
  }
  die("`%.*s` promised not to wait (sojourn::nonblocking), and waited or migrated: call it without "
      "the promise (docs/aggregation.md)",
      length, name.data());
}

}  // namespace

void begin_promise(promise_of_handler what, const char* called) {
  promise = what;
  promised = called;
}
void end_promise() { promised = nullptr; }

void on_request(fixed_handler which, request_handler handler, bool may_migrate) {
  user_handlers()[static_cast<std::size_t>(which)] = {handler, may_migrate};
}

void close_to_other_programs() {
  for (int r = 0; r < job.count; ++r) {
    if (!runs_other_program(r)) continue;
    dispatcher.peers[static_cast<std::size_t>(r)].senders_waiting |= peer::of_other_program;
  }
}

void attach_dispatcher(std::byte* transport_memory, int rank, int ranks, int cores) {
  void* room = runtime_memory(sizeof(active_transport));
  dispatcher.transport = ::new (room) active_transport(transport_memory, rank, ranks, cores);
  dispatcher.looks_until_idle =
      dispatcher.transport->spins_for_replies() ? looks_until_idle : looks_until_idle_when_crowded;
  dispatcher.own.attach(rank, dispatcher.transport->payload_max());
  dispatcher.peers = runtime_array<peer>(static_cast<std::size_t>(ranks));
  dispatcher.ranks = ranks;
  // In memory that the scan ignores, because the address of the copy is left on many stacks.
  const auto& table = user_handlers();
  auto* handlers = runtime_array<user_handler>(table.size() + 1);
  std::copy(table.begin(), table.end(), handlers);
  dispatcher.handlers = handlers;
  dispatcher.handler_count = table.size();
  on_wait_outside_fiber = [] {
    if (promised != nullptr) promise_was_broken();
  };
  on_fiber_made = [](piece* p) {
    if (promised != nullptr) [[unlikely]]
      promise_was_broken();
    if (handover.called_by != no_rank) p->result = entered->ticket;
    if (p->is_thread_base()) on_thread.here(p);
  };
}

void request::consume() { consume_call(*entered); }

namespace {

/// `Delayed`: the test mode SOJOURN_DELAY is on.
template <bool Delayed>
void dispatch(bool (*done)()) {
  for (;;) {
    // Messages first: they are what this rank has just been waiting for.
    int did = dispatcher.transport->poll(anything_ready() ? deliver_all : deliver, nullptr,
                                         messages_a_round);
    if (!dispatcher.own.empty()) {
      if (Delayed && dispatcher.transport->holds_own()) {
        ++did;  // the loop goes round until the time of its own message has come
      } else {
        did += deliver_own();
        if (Delayed) dispatcher.transport->own_passed();
      }
    }
    did += run_what_is_here(pieces_a_round);
    did += retry_senders();
    wait_times.end_round();
    if (bundles_waiting != 0) [[unlikely]]
      did += send_due_bundles(did == 0 && !anything_ready());
    if (next_timer_ns != never_ns) [[unlikely]]
      did += wake_sleepers(did == 0);
    if (auto* each = dispatcher.each_round.load(std::memory_order_relaxed); each != nullptr)
        [[unlikely]]
      did += each(did == 0 && !anything_ready());
    if (did > 0 || anything_ready()) continue;
    if (has_new_loss()) [[unlikely]] {
      meet_losses();
      continue;
    }
    if (done()) return;
    if (posted.first != nullptr || anything_ready()) continue;
    if (dispatcher.transport->spins_for_replies() && wake_to_stand_by()) continue;
    dispatcher.looks_in_vain = 0;
    if (heap_bytes_kept != 0) [[unlikely]]
      trim_heap();
    dispatcher.transport->wait(someone_can_send, dispatcher.around_sleep, next_timer_ns);
    if (dispatcher.looks_in_vain >= dispatcher.looks_until_idle) dispatcher.when_idle(false);
  }
}

}  // namespace

void dispatch_until(bool (*done)()) {
  dispatcher.transport->delays_messages() ? dispatch<true>(done) : dispatch<false>(done);
}

void send_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket,
                const void* bytes, std::size_t size) {
  if (counts_as_traffic(static_cast<std::uint16_t>(kind))) {
    ++dispatcher.moved.sent;
  } else {
    ++dispatcher.moved_collective.sent;
  }
  if (to != job.me) count_message(kind, size);
  peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  std::byte* room = p.replies_waiting == 0
                        ? dispatcher.transport->reserve(to, message_class::reply, size)
                        : nullptr;
  if (room == nullptr) [[unlikely]] {
    const auto* first = static_cast<const std::byte*>(bytes);
    p.replies.push_back({kind, flags, ticket, {first, first + size}});
    ++p.replies_waiting;
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
  peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  std::byte* room = p.replies_waiting == 0
                        ? dispatcher.transport->reserve(to, message_class::reply, size)
                        : nullptr;
  if (room != nullptr) [[likely]]
    return room;
  p.replies.push_back({kind, 0, 0, std::vector<std::byte>(size), false});
  ++p.replies_waiting;
  ++dispatcher.waiting_replies;
  return p.replies.back().bytes.data();
}

void commit_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket) {
  peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  if (p.replies_waiting != 0 && !p.replies.back().written) [[unlikely]] {
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
  const peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
  if ((p.senders_waiting & peer::number_of_senders) != 0 || !bundle_is_sent(to)) return nullptr;
  return dispatcher.transport->reserve(to, message_class::request, bytes);
}

void when_room(int to, std::size_t bytes, void (*go)(void*), void* context, piece* waiter) {
  ++counts.suspensions_for_room;
  wait_times.begins(waiter);
  queue_sender(to, {bytes, go, context, false, waiter});
}

std::byte* reserve_request(int to, std::size_t bytes) {
  if (bytes > dispatcher.transport->payload_max()) {
    throw error(
        format("a message of %zu bytes is longer than the longest (%zu): move large data "
               "with put and get",
               bytes, dispatcher.transport->payload_max()));
  }
  if (is_lost(to)) throw_rank_lost(to, "a message");
  std::byte* room = try_reserve_request(to, bytes);
  while (room == nullptr) {
    suspend_for_room(to, bytes, false);
    // This fiber was woken in its turn: senders behind it in the queue do not matter.
    room = dispatcher.transport->reserve(to, message_class::request, bytes);
  }
  return room;
}

bool is_lost(int rank) {
  return (dispatcher.peers[static_cast<std::size_t>(rank)].senders_waiting & peer::is_lost) != 0;
}

void attach_losses(const losses& told) { dispatcher.told = told; }

int first_lost_rank() { return dispatcher.first_lost; }

void throw_rank_lost(int rank, const char* to_do) {
  throw rank_lost(
      rank, format("%s needs rank %d, which has ended in the middle of the job", to_do, rank));
}

ticket_id open_answer(int rank) {
  dispatcher.peers[static_cast<std::size_t>(rank)].unanswered += rank != job.me;
  return open_ticket(rank)->id;
}

std::byte* try_reserve_bundle(int to, std::size_t bytes) { return reserve_call(to, bytes); }

void commit_bundle(int to, runtime_message handler, std::uint16_t flags) {
  if (to != job.me) return commit_message(to, message_class::request, handler, flags, 0);
  ++dispatcher.moved.sent;
  dispatcher.own.commit(static_cast<std::uint16_t>(handler), flags, 0);
}

void wait_for_room(int to, std::size_t bytes) { suspend_for_room(to, bytes, false); }

void hold_back(int to, bool held) {
  std::uint32_t& waiting = dispatcher.peers[static_cast<std::size_t>(to)].senders_waiting;
  waiting = held ? waiting | peer::has_bundle : waiting & ~peer::has_bundle;
  want_rounds(held);
}

void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket) {
  ++dispatcher.moved.sent;
  dispatcher.transport->commit(to, kind, static_cast<std::uint16_t>(handler), flags, ticket);
}

namespace {

/// SameProgram: only to ranks that run this program; else to any rank.
template <bool SameProgram>
[[gnu::always_inline]] inline outgoing begin(int to, std::size_t bytes, bool answered) {
  check_rank(to);
  if (bytes > dispatcher.transport->payload_max()) [[unlikely]]
    refuse_length(bytes);
  const piece* runs = running_piece();
  if (runs != nullptr && runs->scope != nullptr) [[unlikely]]
    return begin_in_scope<SameProgram>(runs->scope, to, bytes, answered);
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
  if (dispatcher.request_scope_at != nullptr) [[unlikely]] {
    flags = flag_scope;
    std::memcpy(dispatcher.request_scope_at, &dispatcher.request_scope, sizeof(scope_ticket));
    dispatcher.request_scope_at = nullptr;
  }
  ++dispatcher.moved.sent;
  if (to == job.me) return dispatcher.own.commit(handler, flags, ticket);
  dispatcher.transport->commit(to, message_class::request, handler, flags, ticket);
}

bool take_reply_in_place(int rank) {
  if (anything_ready() || !dispatcher_idle() || someone_goes_on_if_blocked()) return false;
  // Sleepers whose time has come get their turn, however fast replies come.
  if (next_timer_ns != never_ns && look_for_sleepers()) [[unlikely]]
    return false;
  return dispatcher.transport->poll_reply(rank, deliver, nullptr);
}

void answered_by(int rank) {
  dispatcher.peers[static_cast<std::size_t>(rank)].unanswered -= rank != job.me;
}

std::uint32_t unanswered_by(int rank) {
  return dispatcher.peers[static_cast<std::size_t>(rank)].unanswered;
}
void restore_unanswered(int rank, std::uint32_t count) {
  dispatcher.peers[static_cast<std::size_t>(rank)].unanswered = count;
}
void wake_callers() {
  for (int to = 0; to < job.count; ++to) {
    auto& callers = dispatcher.peers[static_cast<std::size_t>(to)].callers;
    for (; !callers.empty(); callers.pop_front()) {
      --dispatcher.waiting_senders;
      callers.front().go(callers.front().context);
    }
  }
}

traffic traffic_so_far() { return dispatcher.moved; }
traffic collective_traffic_so_far() { return dispatcher.moved_collective; }

void call_around_sleep(void (*around_sleep)(bool falls_asleep)) {
  dispatcher.around_sleep = around_sleep;
}

namespace {

int run_at_next_round(bool idle) {
  int (*wanted)(bool) = dispatcher.wanted_each_round;
  dispatcher.each_round.store(wanted);
  auto* fn = dispatcher.at_next_round.exchange(nullptr);
  if (fn != nullptr) fn(idle);
  return wanted != nullptr ? wanted(idle) : 0;
}

}  // namespace

void call_each_round(int (*fn)(bool idle)) {
  dispatcher.wanted_each_round = fn;
  dispatcher.each_round.store(dispatcher.at_next_round.load() != nullptr ? run_at_next_round : fn);
}

void call_next_round(void (*fn)(bool idle)) {
  dispatcher.at_next_round.store(fn);
  dispatcher.each_round.store(run_at_next_round);
}

void call_when_idle(void (*fn)(bool idle)) { dispatcher.when_idle = fn; }

void want_rounds(bool wanted) {
  // Counts as a sender that waits, so that one number says whether anything holds the rank up.
  dispatcher.waiting_senders += wanted ? 1 : std::size_t(-1);
}

std::uint16_t handler_entered() { return entered->handler; }

bool starts_thread(std::uint16_t handler, std::size_t bytes) {
  const std::size_t index = std::size_t{handler} - first_user_handler;
  if (index >= dispatcher.handler_count) return false;
  const std::size_t keeps = dispatcher.handlers[index].keeps;
  return keeps != 0 && bytes >= keeps;
}

void run_kept(std::uint16_t handler, const request& message, void* scope) {
  const user_handler& h = dispatcher.handlers[handler - first_user_handler];
  arrival a{message.source, message_class::request, handler,       0,
            message.ticket, message.payload,        message.bytes, nullptr};
  entered = &a;
  handover.called_by = message.source;
  handler_call call{h.run, message, &a};
  const handler_end end = run_handler(run_user_handler, &call, !h.may_migrate, scope);
  if (scope != nullptr && end == handler_end::returned) on_scope.left(scope);
  entered = nullptr;
}

void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context) {
  for (int to = 0; to < job.count; ++to) {
    const peer& p = dispatcher.peers[static_cast<std::size_t>(to)];
    for (const auto* queue : {&p.senders, &p.callers}) {
      for (const pending_send& s : *queue) visit(s.waiter, to, context);
    }
  }
}

bool dispatcher_idle() {
  return posted.first == nullptr && first_shut_out == nullptr && dispatcher.waiting_senders == 0 &&
         dispatcher.waiting_replies == 0 && dispatcher.own.empty();
}

}  // namespace sojourn::detail

namespace sojourn {

void yield() { detail::give_turn_to_any(); }

}  // namespace sojourn
