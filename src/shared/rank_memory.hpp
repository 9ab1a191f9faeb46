// SPDX-License-Identifier: Apache-2.0
// The shared memory of this rank, joined to its fibers and messages. It begins when it is first
// used: here, or by another rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "base/saved_file.hpp"
#include "fiber/waiters.hpp"
#include "message/message_reader.hpp"
#include "shared/doorbell.hpp"
#include "shared/mapping.hpp"
#include "shared/pages/allocator.hpp"
#include "shared/pages/rank_pages.hpp"
#include "shared/pages/services.hpp"
#include "shared/pages/streams.hpp"
#include "shared/protection.hpp"
#include "shared/rank_blocks.hpp"
#include "shared/shared_report.hpp"
#include "shared/shared_settings.hpp"
#include "shared/wait_counts.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

namespace pages {

/// Of the fibers that take part in shared::barrier().
struct barrier_attendance {
  std::uint32_t members = 1;  ///< Began on this rank: its main fiber, as long as nothing is said.
  std::uint32_t arrived = 0;  ///< Of these.
  std::uint32_t guests = 0;   ///< Have arrived here and began on other ranks.
};

class rank_memory final : public services {
 public:
  rank_memory();

  // --- What fibers ask for

  /// A fiber has faulted. Suspends. `registers`, `code`: see page_fault_hooks.
  void reach(std::uint64_t address, bool store, std::uint64_t registers, std::uint64_t code);

  /// See shared::pinned. Suspends. `code`: who wants it. Errors: sojourn::error.
  void pin(std::uint64_t address, std::size_t bytes, access how, std::uint64_t code);
  /// Takes replies while pinned pages are being brought up to date; never suspends.
  void unpin(std::uint64_t address, std::size_t bytes, access how);
  /// See shared::undivided. `scope`: an address in the running fiber's frames.
  void begin_undivided(std::uint64_t scope) { undivided_.push_back(scope); }
  void end_undivided(std::uint64_t scope) { std::erase(undivided_, scope); }

  /// `code`: where the program has called, for reports.
  void lock(std::uint64_t l, std::uint64_t code);
  bool try_lock(std::uint64_t l, std::uint64_t code);
  /// `fair`: see locks::others_turn.
  void unlock(std::uint64_t l, bool fair);
  /// False: see shared::detail::barrier_of_members.
  bool barrier();
  /// The barrier of the threads that began on this rank; also called for those that have moved.
  void local_barrier();
  /// Asks an object's home (class events), and waits for the last answer; the value in it.
  std::uint64_t ask(const event_question& q, waits_at kind);
  /// Unlocks, waits until notified, and locks again.
  void wait_for_condition(std::uint64_t condition, std::uint64_t l);

  /// Whether the fiber that runs takes part in barriers; it has moved here from another rank.
  bool takes_part() const;
  /// Errors: sojourn::error when it does not. `what` it has called.
  void require_part(const char* what) const {
    if (!takes_part()) refuse_fiber(what);
  }
  bool is_guest() const;
  /// For reports: whether the suspended fiber does.
  bool takes_part(const piece* p) const;
  /// Async-signal-safe.
  barrier_attendance attendance() const;
  /// See sojourn/detail/shared_members.hpp.
  void member_joins(std::uint32_t fibers);
  void member_is_here();
  void member_is_gone();
  bool members_wait() const { return pages_.arrived() != 0; }
  /// For barrier_break(). On rank 0, first: which barrier it is, counted from 1.
  std::uint64_t begin_break();
  /// Arrives at it for all those of this rank who have not; returns when it is left.
  void arrive_for_absent(std::uint64_t number);

  /// Errors: shared::exhausted.
  allocator::block allocate(std::size_t bytes, std::size_t align, protocol_kind how);
  void free_here(std::uint64_t at);
  /// See shared::name.
  void name(std::uint64_t at, const char* text);
  /// Where an address was allocated.
  int owner(std::uint64_t address) { return pages_.layout.home(page_of(address)); }
  /// Whether some rank may have allocated the address. A rank knows of other ranks' allocations
  /// only what messages have told it.
  bool is_allocated(std::uint64_t address);
  std::size_t capacity() const { return pages_of_part_ * page_bytes; }

  void begin_threads(int count);
  void end_threads();
  int threads_of_rank() const { return of_rank_; }
  /// The numbers of threads of run_threads(), by thread.
  std::pmr::unordered_map<std::uint64_t, int>& numbers() { return numbers_; }

  /// Frames leave this rank: perhaps those of a fiber that it expects at the next barrier.
  void frames_leave() { pages_.fiber_went(); }

  // --- Checkpoints: each rank saves the pages of what was allocated there. When nobody stores any
  // more, all ranks meet at a barrier, and fetch what they lack of these; a restored job begins
  // as if each page had been stored to by the rank where it was allocated.

  /// Why this cannot be saved now, or null.
  const char* unsaved() const;
  /// See shared_memory_part.
  void gather();
  void save(file_writer& to);
  void load(file_reader& from);

  void receive(arrival& a);
  /// What this rank tells in the report of the job. Requires: a report is wanted.
  report_part part_of_report() const;
  /// A rank that waits for an answer has interrupted this one: answers what has come, if the
  /// program's own code was interrupted. In a signal handler.
  void answer_bell(const void* context);
  /// See dispatcher_hooks::tell.
  bool tell(int to, message_class c);

  /// A rank has ended. From now on what this rank has can be used, and nothing that another one
  /// would have to give: nobody knows through whose hands an answer would have come. What waits
  /// for a mutex or a barrier fails with rank_lost; what waits for a page cannot fail, and so the
  /// rank ends with a sentence.
  void fail_waits();
  /// Errors: rank_lost when a rank has ended. `to_do` is what needs all ranks.
  void require_all_ranks(const char* to_do) const;

  // --- What the protocols ask for: see services

  std::byte* bytes(page_number page) override { return runtime_page(page); }
  void protect(page_range range, access from, access to) override;
  void send(int to, std::span<const std::byte> front, std::span<const std::byte> back) override;
  void wake_page(page_number page, access allowed) override;
  void wake_locker(waiter fiber) override;
  void wake_barrier() override {
    incomplete_ = incomplete_ << 1 | std::uint64_t{pages_.last_barrier_was_incomplete()};
    wake_all(at_barrier_);
  }
  void answered(waiter fiber, const event_answer& a) override;
  int home_of(std::uint64_t object) override;
  std::uint32_t fetched_together(page_number page) override { return streams_.pages_at(page); }
  std::pmr::memory_resource* memory() override;
  void refuse(int, const char* why) override;

 private:
  struct leaving_task : task {
    explicit leaving_task(rank_memory& m);
    rank_memory& of;
    bool is_posted = false;
  };

  /// News that go before requests, and are sent in parts.
  struct unsent_news {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    explicit unsent_news(const allocator_type& a) : bytes(a) {}
    unsent_news(unsent_news&& other, const allocator_type& a)
        : bytes(std::move(other.bytes), a), sent(other.sent) {}
    std::pmr::vector<std::byte> bytes;
    std::size_t sent = 0;
  };

  static std::span<page_entry> entries(std::uint64_t count);
  allocator& blocks_of(std::uint64_t address);
  [[noreturn]] void end_for_want_of(page_number page, access needed);
  [[noreturn]] static void throw_mutex_lost(std::uint64_t l);
  template <class Visit>
  void each_page_to_save(Visit visit);
  void note_ran();
  bool is_undivided(const piece* p) const;
  void refresh_pinned();
  bool send_rest(int to, unsent_news& news);
  bool fault_is_over() const;
  wait_counts::kind kind_of(const waiters& queue) const;
  void wait_for(waiters& queue, std::uint64_t what);
  void exchange_pages();
  /// `rings`: another rank owes an answer.
  void wait_for(waiters& queue, std::uint64_t what, bool rings);
  void leave_to_wait_in(waiters& queue, bool rings);
  /// As wait_for; but first, what it waits for is looked for in place: if it comes from the rank
  /// `from` within about a round trip, the fiber need not leave its stack. `over()`: it has come.
  template <class Over>
  void wait_for(waiters& queue, std::uint64_t what, bool rings, int from, Over over);
  [[noreturn]] void refuse_fiber(const char* what) const;
  void fail_sync_waits();
  struct event_wait;
  event_wait* begin_to_ask(const event_question& q, waits_at kind);
  void wait_for_answer(event_wait& w);
  [[noreturn]] static void throw_event_lost(waits_at kind, std::uint64_t object);
  void wake_all(waiters& queue);

  const tick_clock clock_;
  std::unique_ptr<protection> protection_;
  mapping mapping_;
  const std::uint64_t page_count_;
  const std::uint32_t pages_of_part_;
  streams streams_;
  rank_blocks blocks_;
  std::pmr::unordered_map<std::uint64_t, waiters> page_waits_;  ///< By wait_of.
  /// The fault that the protocols are being told of, whose fiber does not wait yet.
  struct {
    page_number page = 0;
    access needed = access::none;
    bool woken = false;
  } faulting_;
  /// The fiber that a fault has let go on last, to execute its instruction again.
  struct {
    waiter fiber = nullptr;
    std::uint64_t registers = 0;
    bool rang = false;  ///< A doorbell has found it there.
  } went_on_;
  /// While a doorbell is answered: the fiber that runs has not executed its instruction yet.
  bool instruction_waits_ = false;
  bool missed_bell_ = false;  ///< It rang where it could not be answered; unlock() looks after it.
  bool refreshes_pinned_ = false;
  std::pmr::vector<std::uint64_t> undivided_;            ///< Scopes that are open.
  std::pmr::vector<std::pmr::vector<std::byte>> parts_;  ///< Come of a message, by rank and class.
  std::pmr::vector<unsent_news> unsent_news_;            ///< By rank.
  ringer ringer_{clock_};
  leaving_task leaves_{*this};
  waiters at_barrier_{waits_at::shared_barrier};
  std::uint64_t barriers_left_ = 0;
  /// Bit n: whether the barrier that was left n barriers before the last one was incomplete.
  std::uint64_t incomplete_ = 0;
  waiters at_local_barrier_{waits_at::shared_local_barrier};
  std::uint64_t local_barriers_left_ = 0;
  int at_local_barrier_count_ = 0;
  int of_rank_ = 0;
  /// Outside of run_threads(): threads that take part in barriers, and whether the main fiber does.
  std::pmr::unordered_set<std::uint64_t> members_;
  bool main_takes_part_ = true;
  std::pmr::unordered_map<std::uint64_t, int> numbers_;
  const arrival* arriving_ = nullptr;
  std::uint64_t arrived_ns_ = 0;  ///< Its time, while it is handled.
  wait_counts waits_;
  std::unique_ptr<page_report> report_;  ///< Where one is wanted.
  rank_pages pages_;                     ///< Last: it uses the others.
};

/// That of this rank, which begins now if it has not. Errors: sojourn::error before run(), and
/// where this machine can have no shared memory.
rank_memory& memory();
bool shared_memory_has_begun();

}  // namespace pages

/// At the end of the job, on all ranks: rank 0 prints and writes the report, where one is wanted.
/// Suspends. Called by the main fibers. False when it cannot be written.
bool report_shared_memory();

/// Requires: called on the worker thread, after map_region and before the dispatcher is attached.
void attach_shared_memory();
/// See rank_memory::fail_waits.
void fail_shared_memory();
/// See rank_memory. Whether or not this rank has used shared memory.
bool takes_part_in_shared_barrier(const piece* p);
pages::barrier_attendance attendance_at_shared_barrier();
/// See shared_memory_part.
const char* unsaved_shared_memory();
void gather_shared_memory();
void save_shared_memory(file_writer& to);
void load_shared_memory(file_reader& from);

}  // namespace sojourn::detail
