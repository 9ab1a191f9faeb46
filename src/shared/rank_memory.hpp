// SPDX-License-Identifier: Apache-2.0
// The shared memory of this rank, joined to its fibers and messages. It begins when it is first
// used: here, or by another rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <unordered_map>

#include "base/saved_file.hpp"
#include "fiber/waiters.hpp"
#include "message/message_reader.hpp"
#include "shared/allocator.hpp"
#include "shared/doorbell.hpp"
#include "shared/mapping.hpp"
#include "shared/protection.hpp"
#include "shared/rank_pages.hpp"
#include "shared/services.hpp"
#include "shared/shared_report.hpp"
#include "shared/shared_settings.hpp"
#include "shared/streams.hpp"
#include "shared/wait_counts.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

namespace pages {

class rank_memory final : public services {
 public:
  rank_memory();

  // --- What fibers ask for

  /// A fiber has faulted. Suspends. `registers`, `code`: see page_fault_hooks.
  void reach(std::uint64_t address, bool store, std::uint64_t registers, std::uint64_t code);

  void lock(std::uint64_t l);
  bool try_lock(std::uint64_t l);
  void unlock(std::uint64_t l);
  void barrier();

  /// Errors: shared::exhausted.
  allocator::block allocate(std::size_t bytes, std::size_t align, protocol_kind how);
  void free_here(std::uint64_t at);
  /// See shared::name.
  void name(std::uint64_t at, const char* text);
  /// Where an address was allocated.
  int owner(std::uint64_t address) { return home(page_of(address)); }
  /// False: never dealt out, as far as this rank can know.
  bool is_allocated(std::uint64_t address);
  std::size_t capacity() const { return pages_of_part_ * page_bytes; }

  void begin_threads(int count);
  void end_threads();
  int threads_of_rank() const { return of_rank_; }
  /// The numbers of threads of start(), by thread.
  std::pmr::unordered_map<std::uint64_t, int>& numbers() { return numbers_; }

  /// Frames leave this rank: perhaps those of a fiber that it expects at the next barrier.
  void frames_leave() { pages_.fiber_went(); }

  // --- Checkpoints: each rank saves the pages of what was allocated there. When nobody stores any
  // more, all ranks meet at a barrier, and fetch what they lack of these; a restored job begins
  // as if each page had been stored to by the rank where it was allocated.

  /// Why this cannot be saved now, or null.
  const char* unsaved() const;
  /// See shared_memory_hooks.
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
  void wake_barrier() override { wake_all(at_barrier_); }
  protocol_kind protocol_of(page_number page) override;
  int home(page_number page) override;
  std::uint32_t fetched_together(page_number page) override;
  std::pmr::memory_resource* memory() override;
  void refuse(int, const char* why) override;

 private:
  struct leaving_task : task {
    explicit leaving_task(rank_memory& m);
    rank_memory& of;
    bool is_posted = false;
  };

  /// What is known of a block for the report.
  struct block_note {
    std::uint64_t bytes = 0;
    std::uint64_t code = 0;  ///< Of the program, where it was allocated.
    std::pmr::string name;
  };

  static std::span<page_entry> entries(std::uint64_t count);
  allocator part(protocol_kind how) const;
  allocator& blocks_of(std::uint64_t address);
  [[noreturn]] void refuse_allocation(std::size_t bytes, protocol_kind how) const;
  [[noreturn]] void end_for_want_of(page_number page, access needed);
  [[noreturn]] static void throw_mutex_lost(std::uint64_t l);
  template <class Visit>
  void each_page_to_save(Visit visit);
  void note_ran();
  bool fault_is_over() const;
  wait_counts::kind kind_of(const waiters& queue) const;
  void wait_for(waiters& queue, std::uint64_t what);
  void wake_all(waiters& queue);

  std::unique_ptr<protection> protection_;
  mapping mapping_;
  const std::uint64_t page_count_;
  const std::uint64_t pages_of_part_;
  streams streams_;
  std::array<allocator, protocol_kinds> blocks_;
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
  } went_on_;
  /// While a doorbell is answered: the fiber that runs has not executed its instruction yet.
  bool instruction_waits_ = false;
  ringer ringer_;
  leaving_task leaves_{*this};
  waiters at_barrier_{waits_at::shared_barrier};
  std::uint64_t barriers_left_ = 0;
  int of_rank_ = 0;
  std::pmr::unordered_map<std::uint64_t, int> numbers_;
  const arrival* arriving_ = nullptr;
  std::uint64_t arrived_ns_ = 0;  ///< Its time, while it is handled.
  wait_counts waits_;
  std::unique_ptr<page_report> report_;                   ///< Where one is wanted.
  std::pmr::map<std::uint64_t, block_note> block_notes_;  ///< By address.
  rank_pages pages_;                                      ///< Last: it uses the others.
};

/// What the user has set.
const shared_settings& settings();
/// That of this rank, which begins now if it has not. Errors: sojourn::error before run(), and
/// where this machine can have no shared memory.
rank_memory& memory();
bool shared_memory_has_begun();

}  // namespace pages

/// At the end of the job, on all ranks: rank 0 prints and writes the report, where one is wanted.
/// Suspends. Called by the main fibers.
void report_shared_memory();

/// Requires: called on the worker thread, after map_region and before the dispatcher is attached.
void attach_shared_memory();
/// See rank_memory::fail_waits.
void fail_shared_memory();
/// See shared_memory_hooks.
const char* unsaved_shared_memory();
void gather_shared_memory();
void save_shared_memory(file_writer& to);
void load_shared_memory(file_reader& from);

}  // namespace sojourn::detail
