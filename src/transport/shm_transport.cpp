// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_transport.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/detail/counts.hpp"
#include "transport/far/far_rank.hpp"
#include "transport/link/link.hpp"

namespace sojourn::detail::shm {

namespace {

// About ten round trips (bench ping): longer spinning only delays other ranks on this core.
constexpr int spins_with_a_core_each = 4000;
constexpr int spins_when_crowded = 20;
// About three round trips between far cores.
constexpr int reply_spins_with_a_core_each = 64;
constexpr int looks_a_reply_spin = 8;
constexpr unsigned looks_for_requests_after = 16;  // in replies taken in place; a power of two
// The first spins have no pause, which takes tens of nanoseconds in which a message may arrive.
constexpr int spins_without_pause = 2000;
// A yield costs 0.2 to 1.3 us; a sleep and a wake 2 to 15 us.
constexpr int yields_with_a_core_each = 10;
constexpr int yields_when_crowded = 60;
// A rank spins between two yields, too, in all for some 0.4 ms: ranks that compute and meet wait
// for each other for tens of microseconds, and a core of a virtual machine that falls asleep may
// take as long again to come back (apps/lu, 2048 rows: 50 sleeps a factorization, a tenth of its
// time). Where ranks share a core after all, yielding lets the other one run.
constexpr int spins_a_yield_with_a_core_each = 1600;
// Some round trips between hosts, at 0.3 us a look: a sleep that a message from another host ends
// costs two of them.
constexpr int looks_among_hosts = 200;
// Looks at those who spoke last, for one at all.
constexpr int looks_at_last_speakers = 8;
// How long a rank naps whose fibers only poll; the system makes it twice as long.
constexpr long nap_ns = 50'000;
// Pauses between two looks at the clock: about a microsecond.
constexpr int pauses_a_look_at_the_clock = 32;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// What the ring holds of what lies in memory of this rank, to a rank of another host: of no
/// blocks.
struct lent_payload {
  long_payload lies;
  transport::loan lent;
};

}  // namespace

/// What a job of several hosts has besides. Where there is one, poll() and poll_reply() turn to
/// their second forms, as they do for delays.
struct shm_transport::far_ranks final : far_rank::long_messages {
  far_ranks(shm_transport& transport, const several_hosts& hosts)
      : of(transport), carrier(*hosts.carrier), bell(hosts.bell) {}

  std::span<const std::byte> payload(const message_header& message) const override {
    const auto* lies = reinterpret_cast<const long_payload*>(&message + 1);
    if (lies->block_count == 0) {
      const loan& lent = reinterpret_cast<const lent_payload*>(&message + 1)->lent;
      return {lent.from, lent.bytes};
    }
    return {of.blocks_of(of.rank_) + lies->first_block * of.layout_.block_bytes, lies->bytes};
  }
  void free(const message_header& message) override {
    const auto* lies = reinterpret_cast<const long_payload*>(&message + 1);
    if (lies->block_count == 0) {
      const loan lent = reinterpret_cast<const lent_payload*>(&message + 1)->lent;
      return lent.returned(lent.context);
    }
    free_blocks(of.wake_[of.rank_], *lies);
  }
  far_rank* at(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }

  /// Looks at the network, if the last look was some time ago.
  void pump_now_and_then() {
    const std::uint64_t now = now_ns();
    if (now - looked_ns < ns_between_looks) return;
    looked_ns = now;
    carrier.pump(true);
  }
  /// A look at idle connections costs 0.2 us, and a round of the loop that polls less than that.
  static constexpr std::uint64_t ns_between_looks = 2'000;

  shm_transport& of;
  link& carrier;
  int bell;
  std::pmr::vector<far_rank*> ranks{runtime_resource()};  ///< Null for those of this host.
  std::uint64_t looked_ns = 0;
  int replies_in_a_row = 0;  ///< In place of the transport's, which says that this is here.
};

shm_transport::shm_transport(std::byte* memory, int rank, int ranks, int cores,
                             std::uint32_t last_number, const several_hosts* hosts)
    : layout_(ranks, hosts == nullptr ? ranks : hosts->near),
      memory_(memory),
      wake_(layout::wake_lines(memory)),
      rank_(rank),
      ranks_(ranks),
      first_near_(hosts == nullptr ? 0 : hosts->first_near),
      spins_(cores >= layout_.near ? spins_with_a_core_each : spins_when_crowded),
      reply_spins_(cores >= layout_.near ? reply_spins_with_a_core_each : 0),
      yields_(cores >= layout_.near ? yields_with_a_core_each : yields_when_crowded),
      spins_a_yield_(cores >= layout_.near ? spins_a_yield_with_a_core_each : 0),
      spins_for_replies_(cores >= layout_.near),
      short_max_(std::min<std::size_t>(layout_.ring_capacity / 8, 8 << 10)),
      blocks_(layout_, wake_[rank]),
      memory_of_(wake_, rank, ranks) {
  peers_ = runtime_array<peer>(static_cast<std::size_t>(ranks));
  const auto n = static_cast<std::size_t>(layout_.near);
  auto ring = [&](std::size_t from, std::size_t to, std::size_t kind) {
    return reinterpret_cast<ring_memory*>(memory_ + layout_.rings_offset() +
                                          ((to * n + from) * 2 + kind) * layout_.ring_stride);
  };
  const auto me = static_cast<std::size_t>(rank - first_near_);
  for (std::size_t other = 0; other < n; ++other) {
    peer& p = peers_[first_near_ + static_cast<int>(other)];
    for (std::size_t kind = 0; kind < 2; ++kind) {
      p.out[kind].attach(ring(me, other, kind), layout_.ring_capacity, last_number);
      p.in[kind].attach(ring(other, me, kind), layout_.ring_capacity, last_number);
    }
  }
  if (const auto by = delay_setting::from_environment()) {
    const std::size_t rings = number_of_own() + 1;
    delays_ = ::new (runtime_memory(sizeof(delays)))
        delays(*by, rank, rings, runtime_memory(delays::memory_bytes(rings)));
    // poll(), poll_reply() and wait() have a second form for messages with delays, which they turn
    // to where their usual form is at an end. With these values it is so at once.
    replies_in_a_row_ = INT_MAX;
    reply_spins_ = 0;
    spins_ = 0;
    // Where ranks share a core, nothing comes in the time of some yields; and a rank that sleeps
    // until a message is due is to wake then, not 50 us later, as the system would have it.
    if (!delays_->is_test_mode() && !spins_for_replies_) yields_ = 0;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  if (hosts != nullptr) attach_far(*hosts, last_number);
  membarrier_ = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  if (!membarrier_) wake_[rank_].needs_fences.store(1);
}

shm_transport::~shm_transport() {
  if (far_ == nullptr) return;
  for (far_rank* r : far_->ranks) {
    if (r != nullptr) r->~far_rank();
  }
  far_->~far_ranks();
}

void shm_transport::attach_far(const several_hosts& hosts, std::uint32_t last_number) {
  far_ = ::new (runtime_memory(sizeof(far_ranks))) far_ranks(*this, hosts);
  auto* const memory = hosts.memory != nullptr ? hosts.memory : runtime_resource();
  far_->ranks.resize(static_cast<std::size_t>(ranks_));
  for (int r = 0; r < ranks_; ++r) {
    if (!is_far(r)) continue;
    auto* rank = ::new (runtime_memory(sizeof(far_rank)))
        far_rank(payload_max(), *far_, memory, last_number);
    rank->attach(peers_[r].out, peers_[r].in, delays_ != nullptr);
    far_->ranks[static_cast<std::size_t>(r)] = rank;
    memory_of_.note_far(r);
    wake_[r].asleep.store(wake_line::is_far);
  }
  wake_[rank_].bell.store(hosts.bell);
  replies_in_a_row_ = INT_MAX;
  reply_spins_ = 0;
}

void shm_transport::begin() {
  for (int r = 0; r < ranks_; ++r) {
    if (wake_[r].needs_fences.load() != 0) fences_ = true;
  }
  if (far_ != nullptr) far_->carrier.begin(far_->ranks);
}

void shm_transport::lose(int rank) {
  if (!is_far(rank)) return;
  far_->carrier.lose(rank);  // first: it may be about to fill what the next line gives back
  far_->at(rank)->lose();
}

void shm_transport::finish() {
  if (far_ == nullptr) return;
  constexpr std::uint64_t look_again_ns = 10'000'000;
  const auto unsent = [this] {
    for (int r = 0; r < ranks_; ++r) {
      if (is_far(r) && far_->carrier.has_unsent(r)) return true;
    }
    return false;
  };
  for (int r = 0; r < ranks_; ++r) {
    if (is_far(r) && far_->carrier.has_unsent(r)) far_->carrier.push(r);
  }
  far_->carrier.end();
  while (unsent()) {
    pollfd on[1] = {{far_->carrier.descriptor(), POLLIN, 0}};
    if (far_->carrier.arm()) sleep_on(on, now_ns() + look_again_ns);
    far_->carrier.pump(true);
  }
}

bool shm_transport::is_reserved() const {
  // The next message of that ring is still to be published.
  return std::any_of(peers_, peers_ + ranks_, [this](const peer& p) {
    return p.out[0].next() == reserved_ || p.out[1].next() == reserved_;
  });
}

std::byte* shm_transport::reserve_long(int to, message_class kind, std::size_t bytes) {
  message_header* header = peers_[to].out[at(kind)].reserve(header_bytes + sizeof(long_payload));
  const int first = header == nullptr ? -1 : blocks_.find(bytes);
  if (first < 0) return nullptr;
  const int count = blocks_.take(first, bytes);
  reserved_ = header;
  long_flag_ = flag_long;
  auto* payload = reinterpret_cast<long_payload*>(header + 1);
  payload->first_block = static_cast<std::uint32_t>(first);
  payload->block_count = static_cast<std::uint32_t>(count);
  payload->bytes = bytes - header_bytes;
  return blocks_of(rank_) + static_cast<std::size_t>(first) * layout_.block_bytes;
}

bool shm_transport::lend(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
                         std::uint64_t ticket, const loan& payload) {
  if (!is_far(to) || header_bytes + payload.bytes <= short_max_) return false;
  message_header* header = peers_[to].out[at(kind)].reserve(header_bytes + sizeof(lent_payload));
  if (header == nullptr) return false;
  reserved_ = header;
  long_flag_ = flag_long;
  ::new (static_cast<void*>(header + 1)) lent_payload{{0, 0, payload.bytes}, payload};
  commit(to, kind, handler, flags, ticket);
  return true;
}

bool shm_transport::has_room(int to, message_class kind, std::size_t bytes) const {
  bytes += header_bytes;
  const ring_writer& ring = peers_[to].out[at(kind)];
  if (bytes <= short_max_) return ring.has_room(bytes_in_ring(bytes));
  return ring.has_room(header_bytes + sizeof(long_payload)) && blocks_.find(bytes) >= 0;
}

int shm_transport::poll(bool (*deliver)(arrival&, void*), void* context, int most) {
  int delivered = 0;
  // Replies first; but a rank to which replies never cease must serve requests, too.
  message_class kind = message_class::reply;
  if (replies_in_a_row_ >= (most & in_order_)) [[unlikely]] {
    if (passed_over_.any()) return deliver_passed_over(deliver, context, most);
    if (far_ != nullptr && replies_in_a_row_ == INT_MAX)
      return poll_among_hosts(deliver, context, most);
    if (delays_ != nullptr) return poll_delayed(deliver, context, most);
    replies_in_a_row_ = 0;
    kind = message_class::request;
  }
  peer* const end = peers_ + ranks_;
  peer* const first = peers_ + first_source_;
  for (int classes = 0; classes < 2; ++classes, kind = other(kind)) {
    peer* p = first;
    do {
      peer* const from = p;
      if (++p == end) p = peers_;
      message_header* header = from->in[at(kind)].next();
      if (header == nullptr) [[likely]]
        continue;
      const int source = static_cast<int>(from - peers_);
      // What a handler has passed over comes first: then nothing more is taken.
      for (int i = 0; header != nullptr && i < (most & in_order_);
           header = from->in[at(kind)].next(), ++i) {
        arrival a = arrival_of(header, source, kind);
        ++delivered;
        if (!deliver(a, context)) continue;
        // The sender has just written the header after this message, so that looking at it now
        // would wait for its line. What has become ready runs first, and another rank is polled
        // first next time.
        first_source_ = static_cast<int>(p - peers_);
        replies_in_a_row_ = kind == message_class::reply ? replies_in_a_row_ + 1 : 0;
        return delivered;
      }
    } while (p != first);
  }
  replies_in_a_row_ = 0;
  return delivered;
}

/// As poll() in a job of one host, with the network looked at before.
int shm_transport::poll_among_hosts(bool (*deliver)(arrival&, void*), void* context, int most) {
  far_->pump_now_and_then();
  if (delays_ != nullptr) return poll_delayed(deliver, context, most);
  replies_in_a_row_ = far_->replies_in_a_row;
  const int delivered = poll(deliver, context, most);
  far_->replies_in_a_row = std::exchange(replies_in_a_row_, INT_MAX);
  return delivered;
}

int shm_transport::poll_replies(bool (*deliver)(arrival&, void*), void* context, int most,
                                int only) {
  if (passed_over_.any() && only == any_handler) [[unlikely]]
    return deliver_passed_over(deliver, context, most);
  if (far_ == nullptr) [[likely]]
    return take_replies(deliver, context, most, only);
  if (only == any_handler) {
    far_->pump_now_and_then();
    return take_replies(deliver, context, most, only);
  }
  far_->carrier.pump(false);
  return take_replies(deliver, context, most, only);
}

void shm_transport::place_replies(reply_place* place) {
  for (int r = 0; r < ranks_; ++r) {
    if (is_far(r)) far_->at(r)->place_replies(r, place);
  }
}

void shm_transport::enter_handler(interrupted what) {
  if (far_ != nullptr) far_->carrier.enter_handler(what);
}

int shm_transport::take_replies(bool (*deliver)(arrival&, void*), void* context, int most,
                                int only) {
  int delivered = 0;
  for (int source = 0; source < ranks_; ++source) {
    ring_reader& ring = peers_[source].in[at(message_class::reply)];
    for (int taken = 0; taken < most && ring.has_message();) {
      if (delays_ != nullptr) {
        if (!may_deliver(source, message_class::reply, now_ns())) break;
        delays_->passed(number_of(source, message_class::reply));
      }
      arrival a = arrival_of(ring.next(), source, message_class::reply);
      if (only != any_handler && a.handler != only) {
        if (!pass_over(a)) break;
        continue;
      }
      ++taken;
      ++delivered;
      if (deliver(a, context)) return delivered;
    }
  }
  return delivered;
}

/// False when so much has been passed over that the ring is to fill, and its writer to wait.
bool shm_transport::pass_over(const arrival& a) {
  if (!passed_over_.has_room()) return false;
  const auto* header = static_cast<const message_header*>(a.message);
  const bool is_long_from_afar = (header->flags & flag_long) != 0 && is_far(a.source);
  const std::size_t length = header->length();
  passed_over_.keep(a, is_long_from_afar ? a.bytes : 0);
  in_order_ = 0;
  // Of long ones there is room for few between hosts: their sender is told at once.
  if (peers_[a.source].in[at(a.kind)].consume(length) || is_long_from_afar) wake_writer(a.source);
  return true;
}

int shm_transport::deliver_passed_over(bool (*deliver)(arrival&, void*), void* context, int most) {
  int delivered = 0;
  while (passed_over_.any() && delivered < most) {
    ++delivered;
    arrival a = passed_over_.first();
    if (deliver(a, context)) break;
  }
  if (!passed_over_.any()) in_order_ = all_bits;
  return delivered;
}

bool shm_transport::requests_arrived() const {
  for (int source = 0; source < ranks_; ++source) {
    if (peers_[source].in[at(message_class::request)].has_message()) return true;
  }
  return false;
}

bool shm_transport::poll_reply(int source, bool (*deliver)(arrival&, void*), void* context) {
  if (passed_over_.any()) [[unlikely]]
    return false;
  ring_reader& ring = peers_[source].in[at(message_class::reply)];
  for (int i = 0; i < reply_spins_; ++i) {
    for (int look = 0; look < looks_a_reply_spin; ++look) {
      if (!ring.has_message()) continue;
      // Requests may have to wait for a while, but not for as long as replies come.
      if ((++replies_in_place_ & (looks_for_requests_after - 1)) == 0 && requests_arrived())
        return false;
      arrival a = arrival_of(ring.next(), source, message_class::reply);
      deliver(a, context);
      return true;
    }
    if (anything_here() && !ring.has_message()) return false;
  }
  return reply_spins_ == 0 && poll_reply_otherwise(source, deliver, context);
}

/// Where messages have delays, or there are several hosts.
bool shm_transport::poll_reply_otherwise(int source, bool (*deliver)(arrival&, void*),
                                         void* context) {
  if (delays_ != nullptr) return poll_reply_delayed(source, deliver, context);
  // A round trip to another host takes longer than to leave the stack.
  if (far_ == nullptr || !spins_for_replies_ || is_far(source)) return false;
  reply_spins_ = reply_spins_with_a_core_each;
  const bool taken = poll_reply(source, deliver, context);
  reply_spins_ = 0;
  return taken;
}

// How messages are delivered that SOJOURN_DELAY holds (delays.hpp).

/// When the first message there may be delivered: never where there is none.
std::uint64_t shm_transport::due(int source, message_class kind, std::uint64_t now) {
  ring_reader& ring = peers_[source].in[at(kind)];
  if (!ring.has_message()) return never_ns;
  return delays_->due(number_of(source, kind), ring.next()->sent, now);
}

/// When this rank may deliver something: 0 when it may now, never when nothing has arrived.
std::uint64_t shm_transport::first_due() {
  if (delays_ == nullptr) return anything_here() ? 0 : never_ns;
  const std::uint64_t now = now_ns();
  std::uint64_t first = never_ns;
  for (int source = 0; source < ranks_; ++source) {
    for (message_class kind : {message_class::reply, message_class::request}) {
      first = std::min(first, due(source, kind, now));
    }
  }
  return first <= now ? 0 : first;
}

/// Takes classes and ranks in a random order.
int shm_transport::poll_delayed(bool (*deliver)(arrival&, void*), void* context, int most) {
  int delivered = 0;
  const std::uint64_t now = now_ns();
  message_class kind = delays_->any(2) == 0 ? message_class::reply : message_class::request;
  for (int classes = 0; classes < 2; ++classes, kind = other(kind)) {
    const int first = static_cast<int>(delays_->any(static_cast<std::size_t>(ranks_)));
    for (int i = 0; i < ranks_; ++i) {
      const int source = (first + i) % ranks_;
      for (int n = 0; n < (most & in_order_) && may_deliver(source, kind, now); ++n) {
        delays_->passed(number_of(source, kind));
        arrival a = arrival_of(peers_[source].in[at(kind)].next(), source, kind);
        ++delivered;
        if (deliver(a, context)) return delivered;
      }
    }
  }
  return delivered;
}

bool shm_transport::poll_reply_delayed(int source, bool (*deliver)(arrival&, void*),
                                       void* context) {
  for (int i = 0; spins_for_replies_ && i < reply_spins_with_a_core_each; ++i) {
    if (may_deliver(source, message_class::reply, now_ns())) {
      delays_->passed(number_of(source, message_class::reply));
      arrival a = arrival_of(peers_[source].in[at(message_class::reply)].next(), source,
                             message_class::reply);
      deliver(a, context);
      return true;
    }
    if (first_due() == 0) return false;
  }
  return false;
}

bool shm_transport::holds_own() {
  const std::uint64_t now = now_ns();
  if (delays_->due(number_of_own(), 0, now) <= now) return false;
  sched_yield();
  return true;
}
void shm_transport::own_passed() { delays_->passed(number_of_own()); }

arrival shm_transport::arrival_of(const message_header* header, int source, message_class kind) {
  peer& from = peers_[source];
  from.out[0].heard(header->heard[0]);
  from.out[1].heard(header->heard[1]);
  arrival a{source,
            kind,
            header->handler,
            static_cast<std::uint16_t>(header->flags & ~flag_long),
            header->ticket,
            payload_of(header, header->length()),
            header->length() - payload_offset(header->length()),
            header};
  if (header->flags & flag_long) [[unlikely]] {
    if (is_far(source)) {
      const auto* came = reinterpret_cast<const far_payload*>(header + 1);
      a.payload = came->at;
      a.bytes = came->bytes;
      return a;
    }
    const auto* payload = reinterpret_cast<const long_payload*>(a.payload);
    if (a.bytes != sizeof(long_payload) || !payload->lies_in_blocks(layout_)) {
      die("a long message from rank %d names a place outside the memory for messages: memory that "
          "ranks share was overwritten",
          source);
    }
    a.payload = blocks_of(source) + payload->first_block * layout_.block_bytes;
    a.bytes = payload->bytes;
  }
  return a;
}

void shm_transport::consume(const arrival& a) {
  const auto* header = static_cast<const message_header*>(a.message);
  if (header->flags & flag_long) [[unlikely]]
    return consume_rare(a);
  if (peers_[a.source].in[at(a.kind)].consume(header->length())) [[unlikely]]
    wake_writer(a.source);
}

/// A long message, or one that was passed over.
void shm_transport::consume_rare(const arrival& a) {
  const auto* header = static_cast<const message_header*>(a.message);
  const bool was_passed_over = passed_over_.any() && header == passed_over_.first().message;
  const bool is_long = !was_passed_over || passed_over_.first_is_long();
  if (is_long && is_far(a.source)) {
    far_->at(a.source)->free_payload(*reinterpret_cast<const far_payload*>(header + 1));
  } else if (is_long) {
    free_blocks(wake_[a.source], *reinterpret_cast<const long_payload*>(header + 1));
  }
  if (was_passed_over) {
    passed_over_.drop_first();
  } else {
    peers_[a.source].in[at(a.kind)].consume(header->length());
  }
  wake_writer(a.source);
}

/// It may sleep until there is room.
void shm_transport::wake_writer(int rank) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (fences_) std::atomic_thread_fence(std::memory_order_seq_cst);
  if (wake_[rank].asleep.load(std::memory_order_relaxed) == wake_line::awake) return;
  if (is_far(rank)) far_->at(rank)->note_read();
  wake(rank);
}

bool shm_transport::anything_arrived() const {
  if (far_ != nullptr) [[unlikely]]
    far_->carrier.pump(true);
  return anything_here();
}

bool shm_transport::anything_here() const {
  if (passed_over_.any()) return true;
  for (const peer* p = peers_; p != peers_ + ranks_; ++p) {
    if (p->in[0].has_message() || p->in[1].has_message()) return true;
  }
  return false;
}

void shm_transport::tell_writers() {
  for (int source = first_near_; source < first_near_ + layout_.near; ++source) {
    bool told = false;
    for (message_class kind : {message_class::reply, message_class::request}) {
      told |= peers_[source].in[at(kind)].tell();
    }
    if (told) wake_writer(source);
  }
}

void shm_transport::wake(int rank) {
  if (rank == rank_) return;
  if (is_far(rank)) {
    if (far_->at(rank)->is_lost()) return far_->at(rank)->throw_away();
    return far_->carrier.push(rank);
  }
  if (wake_sleeper(wake_[rank])) ++counts.wakeups_sent;
}

void shm_transport::give_core_away() {
  if (spins_for_replies_) return;
  const std::uint64_t before = now_ns();
  if (giving_away_.begin_wait()) {
    tell_writers();
    sched_yield();
    giving_away_.yielded(now_ns() - before);
    return;
  }
  // Others compute, and would keep the core for long: a rank that naps has it back at once, and
  // takes turns with them in parts of their time. Half of its own time stays for it, in which its
  // fibers may compute, too, between their turns.
  if (before - last_nap_ns_ < 2 * nap_ns) return;
  tell_writers();
  const timespec nap{0, nap_ns};
  nanosleep(&nap, nullptr);
  last_nap_ns_ = now_ns();
}

void shm_transport::wait(bool (*other_work)(), void (*around_sleep)(bool falls_asleep),
                         std::uint64_t deadline_ns) {
  if (far_ != nullptr) [[unlikely]]
    return wait_among_hosts(other_work, around_sleep, deadline_ns);
  auto is_late = [deadline_ns] { return deadline_ns != never_ns && now_ns() >= deadline_ns; };
  for (int i = 0; i < spins_; ++i) {
    for (int source = 0; source < ranks_; ++source) {
      if (peers_[source].in[0].has_message() || peers_[source].in[1].has_message()) {
        first_source_ = source;
        return;
      }
    }
    if (other_work()) return;
    if (i < spins_without_pause) continue;
    pause_briefly();
    if (i % pauses_a_look_at_the_clock == 0 && is_late()) return;
  }
  tell_writers();
  const int yields = yielding_.begin_wait() ? yields_ : 0;
  bool goes_on = true;
  for (int i = 0; goes_on && i < yields; ++i) {
    const std::uint64_t before = now_ns();
    sched_yield();
    const std::uint64_t now = now_ns();
    goes_on = yielding_.yielded(now - before);
    if (now >= deadline_ns) return;
    for (int spin = 0;; ++spin) {
      if (first_due() == 0 || other_work()) return;
      if (spin >= spins_a_yield_) break;
      pause_briefly();
      if (spin % pauses_a_look_at_the_clock == 0 && is_late()) return;
    }
  }
  wake_line& mine = wake_[rank_];
  mine.asleep.store(wake_line::on_word, std::memory_order_seq_cst);
  // Pairs with the plain load of `asleep` after a commit: what was published before this barrier is
  // seen below, and whoever publishes after it sees that this rank sleeps.
  if (membarrier_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t first = first_due();
  if (first == 0 || other_work()) {
    mine.asleep.store(0, std::memory_order_relaxed);
    return;
  }
  // Where messages are held, nobody wakes this rank when their time comes; and it is not one that
  // has read everything, as others take a sleeping rank for.
  const bool has_read_all = first == never_ns;
  if (has_read_all) {
    ++counts.sleeps;
    if (around_sleep != nullptr) around_sleep(true);
  }
  while (mine.asleep.load(std::memory_order_acquire) != 0) {
    if (sleep_on(mine.asleep, wake_line::on_word, std::min(first, deadline_ns)))
      mine.asleep.store(wake_line::awake);
  }
  if (has_read_all && around_sleep != nullptr) around_sleep(false);
}

/// Sleeps on descriptors: the network's, and a bell that near ranks ring.
void shm_transport::wait_among_hosts(bool (*other_work)(), void (*around_sleep)(bool falls_asleep),
                                     std::uint64_t deadline_ns) {
  link& carrier = far_->carrier;
  const int looks = spins_for_replies_ ? looks_among_hosts : 1;
  for (int i = 0; i < looks; ++i) {
    carrier.pump(i % looks_at_last_speakers == 0);
    const std::uint64_t now = now_ns();
    if (first_due() == 0 || other_work() || now >= deadline_ns) {
      far_->looked_ns = now;  // the next poll need not look again
      return;
    }
  }
  tell_writers();
  wake_line& mine = wake_[rank_];
  mine.asleep.store(wake_line::on_descriptors, std::memory_order_seq_cst);
  // As in wait().
  if (membarrier_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool sleeps = false;
  bool has_read_all = false;
  for (;;) {
    carrier.pump(true);
    const std::uint64_t first = first_due();
    if (mine.asleep.load(std::memory_order_acquire) == wake_line::awake) break;
    if (first == 0 || other_work() || now_ns() >= deadline_ns) break;
    // Something has come that is held: who has read everything does not sleep on with that.
    if (has_read_all && first != never_ns) break;
    if (!carrier.arm()) continue;
    if (!std::exchange(sleeps, true) && (has_read_all = first == never_ns)) {
      ++counts.sleeps;
      if (around_sleep != nullptr) around_sleep(true);
      continue;  // a rank that falls asleep may have told others so, which the carrier is to take
    }
    pollfd on[2] = {{carrier.descriptor(), POLLIN, 0}, {far_->bell, POLLIN, 0}};
    sleep_on(on, std::min(first, deadline_ns));
    // Whoever rings has set the word before, perhaps that of an earlier sleep.
    std::uint64_t rung;
    if ((on[1].revents & POLLIN) != 0) (void)!read(far_->bell, &rung, sizeof rung);
  }
  mine.asleep.store(wake_line::awake);
  if (has_read_all && around_sleep != nullptr) around_sleep(false);
}

bool shm_transport::read_memory(int from, std::uint64_t address, void* to, std::size_t bytes) {
  return memory_of_.copy(from, address, to, bytes, false);
}

bool shm_transport::write_memory(int to, std::uint64_t address, const void* from,
                                 std::size_t bytes) {
  return memory_of_.copy(to, address, const_cast<void*>(from), bytes, true);
}

}  // namespace sojourn::detail::shm
