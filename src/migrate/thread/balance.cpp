// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/balance.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "migrate/gate.hpp"
#include "migrate/thread/handovers.hpp"
#include "migrate/thread/thread_asks.hpp"
#include "migrate/thread/thread_home.hpp"
#include "migrate/thread_trailer.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

bool threads_wait_to_start = false;

namespace {

// How many ranks are asked at the same time. Several, because one of them may compute for long
// before it answers.
constexpr int asked_at_once = 4;
// How many ready pieces are examined at a time. (Their order does not tell which of them may go.)
constexpr int ready_looked_at = 256;
// How many started threads are handed over at a time.
constexpr int started_at_once = 32;
// A larger message would be sent as a long one, outside the ring.
constexpr std::size_t batch_bytes = 7 << 10;
// The number of rounds between looks at the ready pieces doubles after a look in vain, up to this.
constexpr unsigned rounds_between_looks_max = 1024;
// One start in so many takes the oldest kept thread, so that none waits for ever.
constexpr unsigned starts_of_newest = 16;
// The time between two looks at the neighbours' loads, in which some handovers fit.
constexpr std::uint64_t diffusion_ns = 100'000;

/// A thread that has not started; the payload of the message that starts it follows.
struct kept_thread {
  kept_thread* newer;
  kept_thread* older;
  void* scope;
  ticket_id thread;
  std::uint32_t bytes;
  std::uint32_t moves;
  std::int32_t source;
  std::uint16_t handler;
  balance_record balance;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};

/// A kept thread in a message; its payload follows.
struct handed_thread {
  ticket_id thread;
  scope_ticket scope;
  std::uint32_t bytes;
  std::uint32_t moves;
  std::int32_t source;
  std::uint16_t handler;
  std::uint8_t has_scope;
  balance_record balance;
};

constexpr std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }
constexpr std::size_t kept_bytes(std::size_t payload) { return sizeof(kept_thread) + payload; }
constexpr std::size_t handed_bytes(std::size_t payload) {
  return rounded_up(sizeof(handed_thread)) + rounded_up(payload);
}

struct {
  balance_policy policy = balance_policy::none;
  std::minstd_rand random;

  kept_thread* newest = nullptr;
  kept_thread* oldest = nullptr;
  std::size_t kept = 0;
  unsigned starts = 0;
  bool stands_still = false;
  kept_thread* starting = nullptr;
  // What was known of the thread whose body begins now, when it was kept.
  bool was_kept = false;
  std::uint32_t moves = 0;
  balance_record balance;

  int served_last = 0;
  unsigned rounds = 0;
  unsigned rounds_between_looks = 1;

  std::vector<int> neighbours;
  std::uint64_t next_look_ns = 0;
  int told = 0;
} state;

// --- kept threads --------------------------------------------------------------------------------

kept_thread* new_kept(std::size_t bytes) {
  return ::new (runtime_resource()->allocate(kept_bytes(bytes))) kept_thread{};
}
void free_kept(kept_thread* k) { runtime_resource()->deallocate(k, kept_bytes(k->bytes)); }

void keep(kept_thread* k) {
  k->older = state.newest;
  k->newer = nullptr;
  (k->older != nullptr ? k->older->newer : state.oldest) = k;
  state.newest = k;
  if (state.kept++ == 0) want_rounds(true);
}

void forget(kept_thread* k) {
  (k->newer != nullptr ? k->newer->older : state.newest) = k->older;
  (k->older != nullptr ? k->older->newer : state.oldest) = k->newer;
  if (--state.kept == 0) want_rounds(false);
}

bool start_one() {
  if (state.kept == 0) return false;
  kept_thread* k = ++state.starts % starts_of_newest == 0 ? state.oldest : state.newest;
  forget(k);
  state.starting = k;
  run_kept(k->handler, {k->payload(), k->bytes, k->source, k->thread}, k->scope);
  return true;
}

// --- which threads may go ------------------------------------------------------------------------

bool may_go(const piece* p, int to) {
  // With `resumed::anywhere` the thread has run here since it came.
  if (!p->is_thread_base() || p->word != resumed::anywhere || p->departs_to != no_rank || p->pinned)
    return false;
  if (slots[p->slot].being_read != 0 || reason_whole_stays(p) != nullptr) return false;
  return may_go(p->extra != nullptr ? p->extra->balance : balance_record{}, to);
}

int give_started(int to, int most) {
  int given = 0;
  int looked = 0;
  for (piece* p = first_ready; p != nullptr && given < most && looked < ready_looked_at;
       p = p->next_ready, ++looked) {
    if (!may_go(p, to)) continue;
    extra_of(p).asked_to_move = 0;
    p->departs_to = to;
    ++given;
  }
  return given;
}

// --- handing over --------------------------------------------------------------------------------

/// Writes `k` as a handed_thread with its payload; returns the end of what was written.
std::byte* write_handed(kept_thread* k, std::byte* room) {
  handed_thread h{};
  h.thread = k->thread;
  h.bytes = k->bytes;
  h.moves = ++k->moves;
  h.source = k->source;
  h.handler = k->handler;
  note_handover(k->balance);
  h.balance = k->balance;
  h.has_scope = k->scope != nullptr;
  if (h.has_scope) h.scope = on_dispatch.scopes.take(k->scope);
  std::memcpy(room, &h, sizeof h);
  std::memcpy(room + rounded_up(sizeof h), k->payload(), k->bytes);
  return room + handed_bytes(k->bytes);
}

/// `k` has left for `to`: forgets it here.
void forget_handed(kept_thread* k, int to) {
  ticket_id thread = k->thread;
  thread_departs(thread, k->moves, to);
  if (k->scope != nullptr) on_fiber.scope.left(k->scope);
  forget(k);
  free_kept(k);
  ask_on(thread);
}

int give_kept(int to, int most) {
  static std::vector<kept_thread*> chosen;
  chosen.clear();
  std::size_t bytes = 0;
  int looked = 0;
  // Each thread that counts in a finish scope takes half of the scope's weight on this rank. So
  // that `weight` tells when the weight is used up, only threads of one scope are chosen: that of
  // the oldest thread whose scope has weight here.
  void* scope = nullptr;
  std::uint64_t weight = 0;
  for (kept_thread* k = state.oldest;
       k != nullptr && static_cast<int>(chosen.size()) < most && looked < ready_looked_at;
       k = k->newer, ++looked) {
    if (!may_go(k->balance, to)) continue;
    if (k->scope != nullptr) {
      if (scope == nullptr) {
        weight = on_dispatch.scopes.available(k->scope);
        if (weight != 0) scope = k->scope;
      }
      if (k->scope != scope || weight == 0) continue;
      weight /= 2;
    }
    if (bytes != 0 && bytes + handed_bytes(k->bytes) > batch_bytes) break;
    bytes += handed_bytes(k->bytes);
    chosen.push_back(k);
  }
  if (chosen.empty()) return 0;
  std::byte* room = try_reserve_request(to, bytes);
  if (room == nullptr) return 0;  // the way to that rank is full, so it has enough to do
  for (kept_thread* k : chosen) room = write_handed(k, room);
  commit_message(to, message_class::request, runtime_message::threads_handed, 0, 0);
  // Only after the commit, because forget_handed() sends messages.
  for (kept_thread* k : chosen) forget_handed(k, to);
  ++balance_with.of[to].given;
  ++counts.balance_messages;
  counts.balance_bytes += bytes + header_bytes;
  return static_cast<int>(chosen.size());
}

int give(int to, int most) {
  if (int given = give_kept(to, most); given != 0) return given;
  return give_started(to, std::min(most, started_at_once));
}

/// How many threads could run now.
int load() {
  int n = static_cast<int>(std::min<std::size_t>(state.kept, 1 << 30));
  int looked = 0;
  for (const piece* p = first_ready; p != nullptr && looked < ready_looked_at;
       p = p->next_ready, ++looked) {
    n += p->departs_to == no_rank;
  }
  return n;
}

// --- steal ---------------------------------------------------------------------------------------

/// Gives ranks that have asked what this rank can spare, and answers the others.
void serve() {
  if (balance_with.hungry == 0) [[likely]]
    return;
  int given_in_all = 0;
  bool looks = balance_with.unanswered != 0 || state.kept > 1 ||
               (anything_ready() && ++state.rounds % state.rounds_between_looks == 0);
  if (looks && state.policy == balance_policy::steal) {
    int spare = load() / 2;
    for (int i = 0; i < job.count && spare > 0 && balance_with.hungry != 0; ++i) {
      int to = state.served_last = (state.served_last + 1) % job.count;
      if (!balance_with.of[to].is_hungry) continue;
      int given = give(to, spare);
      if (given == 0) continue;
      given_in_all += given;
      spare = (2 * spare - given) / 2;
      set_hungry(to, false);
      balance_with.unanswered -= std::exchange(balance_with.of[to].wants_answer, false);
    }
    state.rounds_between_looks =
        given_in_all != 0 ? 1 : std::min(2 * state.rounds_between_looks, rounds_between_looks_max);
  }
  for (int to = 0; to < job.count && balance_with.unanswered != 0; ++to) {
    if (!std::exchange(balance_with.of[to].wants_answer, false)) continue;
    --balance_with.unanswered;
    answer_nothing(to);
  }
}

/// Asks other ranks for work. To be called when this rank has none.
void ask_others() {
  while (balance_with.not_asked > 0 && balance_with.asked < asked_at_once) {
    int rank = static_cast<int>(state.random() % static_cast<unsigned>(job.count));
    while (rank == job.me || balance_with.of[rank].asked || balance_with.of[rank].knows) {
      rank = (rank + 1) % job.count;
    }
    set_known(rank, true, false);
    ++counts.steal_requests;
    send_reply(rank, runtime_message::steal_ask, 0, 0, nullptr, 0);
  }
}

// --- diffuse -------------------------------------------------------------------------------------

void tell_load(int now) {
  if (now == state.told) return;
  state.told = now;
  for (int to : state.neighbours) {
    send_reply(to, runtime_message::load_told, 0, 0, &now, sizeof now);
  }
}

void diffuse(bool idle) {
  if (idle) return tell_load(0);
  std::uint64_t now = now_ns();
  if (now < state.next_look_ns) return;
  state.next_look_ns = now + diffusion_ns;
  int own = load();
  int degree = static_cast<int>(state.neighbours.size());
  for (int to : state.neighbours) {
    int more = own - balance_with.of[to].load;
    if (more < 2) continue;
    int given = give(to, std::max(1, more / (degree + 1)));
    own -= given;
    balance_with.of[to].load += given;
  }
  tell_load(own);
}

/// The ranks whose numbers, among the ranks of this program, differ from this one's in one bit.
std::vector<int> neighbours_in_hypercube() {
  std::vector<int> ranks;
  std::size_t mine = 0;
  for (int r = 0; r < job.count; ++r) {
    if (r == job.me) mine = ranks.size();
    if (!takes_no_stacks(r)) ranks.push_back(r);
  }
  std::vector<int> all;
  for (std::size_t bit = 1; bit < ranks.size(); bit <<= 1) {
    if ((mine ^ bit) < ranks.size()) all.push_back(ranks[mine ^ bit]);
  }
  return all;
}

// --- the loop, and messages ----------------------------------------------------------------------

int round(bool idle) {
  if (state.stands_still) return start_one();
  serve();
  bool has_work = !idle || state.kept != 0;
  if (state.policy == balance_policy::diffuse) diffuse(!has_work);
  if (start_one()) return 1;
  if (!has_work && state.policy == balance_policy::steal) ask_others();
  return 0;
}

void on_steal_ask(arrival& a) {
  int from = a.source;
  wire().consume(a);
  set_hungry(from, true);
  balance_with.unanswered += !std::exchange(balance_with.of[from].wants_answer, true);
  call_each_round();
}

void on_steal_nothing(arrival& a, const std::uint32_t& given) {
  int from = a.source;
  wire().consume(a);
  balance_peer& p = balance_with.of[from];
  counts.steals_empty += p.asked;
  bool is_old = static_cast<std::int32_t>(p.got - given) > 0;
  set_known(from, false, !is_old);
}

void on_load_told(arrival& a, const int& told) {
  // No rank has a negative load, and it would overflow where loads are compared.
  if (told < 0) refuse_arrival(a, "is negative");
  balance_with.of[a.source].load = told;
  wire().consume(a);
}

void on_threads_handed(arrival& a) {
  message_reader all(a);
  while (all.left() > 0) {
    const auto h = all.take<handed_thread>();
    (void)all.take_bytes(rounded_up(sizeof h) - sizeof h);
    const std::byte* payload = all.take_bytes(rounded_up(h.bytes));
    if (!starts_thread(h.handler, h.bytes))
      refuse_arrival(a, "holds a message that does not start a thread");
    (void)checked_ticket(a, h.thread);
    (void)checked_rank(a, h.source);
    kept_thread* k = new_kept(h.bytes);
    k->scope = h.has_scope ? on_dispatch.scopes.give(a, h.scope) : nullptr;
    k->thread = h.thread;
    k->bytes = h.bytes;
    k->moves = h.moves;
    k->source = h.source;
    k->handler = h.handler;
    k->balance = h.balance;
    std::memcpy(k->payload(), payload, h.bytes);
    note_arrival(k->balance);
    keep(k);
    thread_arrives(k->thread, k->moves, a.source);
  }
  int from = a.source;
  wire().consume(a);
  got_from(from);
  call_each_round();
}

balance_policy policy_from_environment() {
  const char* text = std::getenv("SOJOURN_BALANCE");
  if (text == nullptr || *text == '\0') return balance_policy::none;
  for (balance_policy p : {balance_policy::none, balance_policy::steal, balance_policy::diffuse}) {
    if (std::string_view(text) == name_of(p)) return p;
  }
  throw error(format("SOJOURN_BALANCE=%s is neither none, steal nor diffuse", text));
}

void set_policy(balance_policy policy) {
  state.policy = policy;
  threads_wait_to_start = policy != balance_policy::none;
  if (threads_wait_to_start) call_each_round();
}

}  // namespace

void attach_balance() {
  attach_handovers();
  state.random.seed(static_cast<unsigned>(job.me) + 1);
  on_message(runtime_message::steal_ask, on_steal_ask);
  on_message<std::uint32_t, on_steal_nothing>(runtime_message::steal_nothing);
  on_message<int, on_load_told>(runtime_message::load_told);
  on_message(runtime_message::threads_handed, on_threads_handed);
  on_dispatch.each_round = round;
  set_policy(policy_from_environment());
}

void balance_among_own_program() {
  state.neighbours = neighbours_in_hypercube();
  for (int r = 0; r < job.count; ++r) {
    // Noted as a rank that knows that this one is hungry and that has nothing to spare, so that it
    // is never asked.
    if (takes_no_stacks(r)) set_known(r, false, true);
  }
}

bool keep_thread(request& message) {
  if (state.starting != nullptr) return false;
  thread_options options;
  std::memcpy(static_cast<void*>(&options), message.payload, sizeof options);
  if (options.pinned) return false;
  kept_thread* k = new_kept(message.bytes);
  k->scope = running_piece()->scope;
  if (k->scope != nullptr) on_fiber.scope.joined(k->scope);
  k->thread = message.ticket;
  k->bytes = message.bytes;
  k->source = message.source;
  k->handler = handler_of(message);
  if (options.affinity) k->balance.affinity = static_cast<std::int16_t>(options.affinity.where());
  std::memcpy(k->payload(), message.payload, message.bytes);
  message.consume();
  keep(k);
  return true;
}

void thread_taken(request& message) {
  kept_thread* k = std::exchange(state.starting, nullptr);
  if (k == nullptr) return message.consume();
  state.was_kept = true;
  state.moves = k->moves;
  state.balance = k->balance;
  free_kept(k);
}

void stand_still(bool on) { state.stands_still = on; }
bool threads_are_kept() { return state.kept != 0; }

bool thread_started(piece* p, const thread_options& options) {
  p->moves = 0;
  if (state.was_kept) [[unlikely]] {
    state.was_kept = false;
    p->moves = state.moves;
    if (state.balance.matters()) extra_of(p).balance = state.balance;
  }
  if (options.affinity) [[unlikely]]
    extra_of(p).balance.affinity = static_cast<std::int16_t>(options.affinity.where());
  return state.stands_still;
}

}  // namespace sojourn::detail

namespace sojourn {

void balance(balance_policy policy) {
  detail::set_policy(policy);
  barrier();
}

balance_policy balance_now() { return detail::state.policy; }

const char* name_of(balance_policy policy) {
  switch (policy) {
    case balance_policy::none:
      return "none";
    case balance_policy::steal:
      return "steal";
    case balance_policy::diffuse:
      break;
  }
  return "diffuse";
}

}  // namespace sojourn
