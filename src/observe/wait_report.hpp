// SPDX-License-Identifier: Apache-2.0
// What a rank tells of its waits: a line that says whether it sleeps and what it has sent and
// received, and a report, written on request, of what its fibers wait for. Both lie in the memory
// that the job shares. Numbers and code addresses only: whoever reads them finds the names.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sojourn/detail/ticket.hpp"
#include "transport/sleepers.hpp"

namespace sojourn::detail {

enum class wait_kind : std::uint8_t {
  unknown,
  ready,            ///< Only for its turn.
  being_read,       ///< Another rank, which reads frames in a slot where its own frames belong.
  call,             ///< The answer of a call sent to `rank`.
  result,           ///< A result that a migrated or forked activation, or a future, will give.
  first,            ///< The first of `results` results, one of them of the kind `call` or `result`.
  collective,       ///< The part of `rank` in a collective operation.
  finish,           ///< All computations of a finish scope.
  room,             ///< Room to send to `rank`, or fewer unanswered calls there.
  fibers,           ///< A main fiber whose body has returned: the other fibers of its rank.
  time,             ///< A time: it sleeps.
  mutex,            ///< A mutex of its rank, which `holder` holds.
  static_variable,  ///< A static variable of its rank, which `holder` initialises.
  once,             ///< A function of std::call_once on its rank, which `holder` runs.
  condition,        ///< Notification by a condition variable of its rank.
  semaphore,        ///< A semaphore of its rank.
  latch,            ///< A latch of its rank.
  dist_object,      ///< A dist_object of its rank: until it is made, or no call is in it.
  shared_page,      ///< A page of shared memory, from other ranks.
  shared_mutex,     ///< A shared::mutex: who holds it stands in some rank's `held`.
  shared_barrier,   ///< All threads that share memory.
  shared_local_barrier,    ///< The threads of this rank that share memory.
  shared_atomic,           ///< An answer about a shared::atomic.
  shared_flag,             ///< A shared::flag.
  shared_condition,        ///< Notification by a shared::condition_variable.
  shared_counted_barrier,  ///< Others at a shared::counted_barrier.
  barrier,                 ///< Main's first barrier, in a job that was restored.
};

/// Whether a fiber_record of this kind has a `holder`.
constexpr bool has_holder(wait_kind kind) {
  return kind == wait_kind::mutex || kind == wait_kind::static_variable || kind == wait_kind::once;
}

/// Name of a thread; zeroes for none. A broken rank may leave it without a NUL, so readers limit
/// its length.
using told_name = char[24];

struct fiber_record {
  static constexpr std::size_t frames_max = 16;
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  static constexpr std::int32_t holder_runs = -2;

  std::uint64_t piece;      ///< Its number in its rank as long as it lives there.
  std::uint64_t since;      ///< Differs in each of its waits; 0 when not known.
  ticket_id waits_for;      ///< Ticket, or 0.
  ticket_id result;         ///< Ticket that its end completes, or 0.
  ticket_id scope;          ///< Finish scope it counts in, or 0.
  std::uint64_t waited_ns;  ///< 0 when not known.
  std::uint64_t left_ns;    ///< Until it goes on in any case; no_limit: there is no such time.
  std::uint64_t object;     ///< Of shared memory: its address, or 0.
  std::int32_t rank;        ///< Rank that it waits for, or -1.
  std::int32_t home;        ///< Rank that keeps `object`, or -1.
  std::uint32_t results;    ///< Of a `first`; 0 when not known. Fibers that meet at a
                            ///< `shared_counted_barrier`.
  std::int32_t holder;      ///< Of a wait for a holder: place in `fibers`, holder_runs, or -1.
  wait_kind kind;
  bool is_main;
  bool takes_part;         ///< In shared::barrier(), as far as the rank can tell.
  std::uint8_t operation;  ///< Which `collective` it waits in.
  std::uint8_t frame_count;
  told_name thread;
  std::uint64_t frames[frames_max];  ///< Addresses inside the calls, youngest first.
};

/// True for a wait that only a fiber can end, by ending itself or by unlocking a mutex, however
/// long that takes.
bool waits_for_a_fiber(const fiber_record& fiber);

/// The result of ticket `from`, whose home is the rank that reports, is forwarded to `to`.
struct ticket_link {
  ticket_id from;
  ticket_id to;
};

/// A shared::mutex that a fiber of the rank has locked.
struct held_mutex {
  static constexpr std::int32_t untold = -1;
  static constexpr std::int32_t ended = -3;

  std::uint64_t object;     ///< Its address.
  std::uint64_t locked_at;  ///< Code address inside the call of lock().
  std::int32_t fiber;       ///< Place in `fibers`, holder_runs, untold or ended.
};

/// Fibers that take part in shared::barrier().
struct barrier_part {
  std::uint32_t members;  ///< That began on this rank.
  std::uint32_t arrived;  ///< Of these.
  std::uint32_t guests;   ///< Have arrived here and began on other ranks.
};

struct rank_report {
  static constexpr std::size_t fibers_max = 64;
  static constexpr std::size_t links_max = 64;
  static constexpr std::size_t stack_max = 32;
  static constexpr std::size_t held_max = 64;

  std::uint32_t fiber_count;   ///< Of `fibers`: the newest, and the main fiber as the last.
  std::uint32_t fibers_alive;  ///< How many the rank has.
  std::uint32_t link_count;
  std::uint32_t stack_count;
  std::uint32_t held_count;
  barrier_part barrier;
  std::uint64_t stack[stack_max];  ///< Of the code that runs, when the rank was interrupted.
  ticket_id runs_for;              ///< Ticket that its end completes, or 0.
  told_name runs_thread;
  ticket_link links[links_max];
  held_mutex held[held_max];
  fiber_record fibers[fibers_max];
};

/// Brings the counts and the places in a report within their bounds, for a job of so many ranks:
/// the process that has written it may be broken.
void make_sound(rank_report& report, int ranks);

/// Written by its rank, except `report_wanted` and `brief_wanted`.
struct alignas(64) rank_watch {
  std::atomic<std::uint64_t> epoch;  ///< Odd when it can only sleep; grows by 1 at each change.
  std::atomic<std::uint64_t> sent;   ///< When it last fell asleep: messages of all kinds …
  std::atomic<std::uint64_t> received;
  std::atomic<std::uint64_t> wakes_at_ns;    ///< … and when it wakes by itself (now_ns()), or 0.
  std::atomic<std::uint32_t> report_wanted;  ///< Number of the last request.
  std::atomic<std::uint32_t> brief_wanted;   ///< The same number, when it asks for no stacks.
  std::atomic<std::uint32_t> report_given;   ///< Number of the last one answered by a report …
  std::atomic<std::uint32_t> stack_given;    ///< … and by a stack.
  std::atomic<std::int32_t> thread;          ///< Its worker, as the kernel numbers it.
  std::atomic<std::uint32_t> interruptible;  ///< 1: by SIGURG, which the program leaves to us.
  /// 1: when it last fell asleep, something that `received` does not count could wake it: a thread
  /// of its program, which may post, or room at a rank of another host.
  std::atomic<std::uint32_t> may_be_woken;
};

struct alignas(64) job_watch {
  std::atomic<std::uint32_t> asleep;  ///< Ranks whose epoch is odd.
  std::atomic<std::uint32_t> asked;   ///< Requests for a report made by signals to ranks.
};

/// Finds all this in the shared memory. Zeroed memory is a valid start.
class watch_area {
 public:
  watch_area(std::byte* memory, int ranks, sleepers asleep)
      : memory_(memory), ranks_(ranks), asleep_(asleep) {}
  watch_area() = default;

  static constexpr std::size_t bytes(int ranks) {
    return (reports_offset(ranks) + sizeof(rank_report) * static_cast<std::size_t>(ranks) + 4095) /
           4096 * 4096;
  }

  int ranks() const { return ranks_; }
  job_watch& all() const { return *reinterpret_cast<job_watch*>(memory_); }
  rank_watch& of(int rank) const {
    return reinterpret_cast<rank_watch*>(memory_ + sizeof(job_watch))[rank];
  }
  rank_report& report_of(int rank) const {
    return reinterpret_cast<rank_report*>(memory_ + reports_offset(ranks_))[rank];
  }
  bool is_asleep(int rank) const;
  /// True when it sleeps until a fiber's time comes: something will happen then.
  bool sleeps_for_a_time(int rank) const { return is_asleep(rank) && of(rank).wakes_at_ns != 0; }
  /// Asks a rank for a report. A rank that sleeps is woken; one that runs answers when it has
  /// nothing else to do. `brief`: without stacks. Returns true when the rank slept.
  bool ask(int rank, std::uint32_t request, bool brief = false) const;
  /// Wakes a rank that sleeps, which then looks for what has changed.
  void wake(int rank) const;

  /// What is known of ranks that all sleep at one moment. Each goes on sleeping while its epoch is
  /// the same.
  struct rest {
    std::uint64_t epochs = 0;  ///< The sum of their epochs, which grows when one of them wakes.
    std::uint64_t sent = 0;    ///< How many messages all of them had sent when they fell asleep.
    std::uint64_t received = 0;
    friend bool operator==(const rest&, const rest&) = default;
  };
  /// None when one of these ranks does not sleep, or may wake by itself.
  std::optional<rest> at_rest(int first, int count) const;

  /// True when it is proven that nothing will happen in this job any more: at one moment every rank
  /// slept, none of them until a time, no other thread could post, and all messages that were sent
  /// had been received. (Mattern, Algorithms for distributed termination detection, 1987: two
  /// counts around that moment.) Never true with several hosts: there the head of the job proves
  /// it.
  bool nothing_can_happen() const;

 private:
  static constexpr std::size_t reports_offset(int ranks) {
    return sizeof(job_watch) + sizeof(rank_watch) * static_cast<std::size_t>(ranks);
  }

  std::byte* memory_ = nullptr;
  int ranks_ = 0;
  sleepers asleep_;
};

}  // namespace sojourn::detail
