// SPDX-License-Identifier: Apache-2.0
#include "shared/rank_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/printable.hpp"
#include "fiber/scheduler.hpp"
#include "frames/source_place.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "message/hooks.hpp"
#include "message/inbound.hpp"
#include "message/loop.hpp"
#include "message/losses.hpp"
#include "message/outbound.hpp"
#include "migrate/hooks.hpp"
#include "shared/fault_frame.hpp"
#include "shared/memory_or_end.hpp"
#include "shared/page_fault.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/shared/memory.hpp"
#include "sojourn/threads/thread.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail {

namespace pages {

namespace {

/// Fibers that wait for a load and for a store are different queues.
std::uint64_t wait_of(page_number page, access needed) {
  return 2 * std::uint64_t{page} + (needed == access::store ? 1 : 0);
}

/// Also where the loop has not handled it yet.
bool has_lost_rank() { return near_ranks().losses().load(std::memory_order_relaxed) != 0; }

rank_memory* memory_of_rank = nullptr;
/// Why there is no shared memory on this machine; or null.
const std::string* why_not = nullptr;

/// Flag of a message: it is a part, and the next one goes on.
constexpr std::uint16_t goes_on = 1;
/// More than any rank sends: what others keep of changes is bounded.
constexpr std::size_t longest_message = std::size_t{4} << 30;

/// How long a part is that has so many bytes before it. None is shorter than a head.
std::size_t length_of_part(std::size_t left) {
  const std::size_t most = std::min(settings().part_bytes, wire().payload_max());
  if (left <= most) return left;
  return left - most < sizeof(message_head) ? most - sizeof(message_head) : most;
}

rank_pages_settings settings_of_pages(page_report* report) {
  rank_pages_settings s;
  s.report = report;
  if (report != nullptr) {
    // All stores are to be noticed, and all changes to be seen as such.
    s.protocol.exclusive = s.protocol.whole_pages = s.protocol.claims = false;
  }
  s.protocol.together_max = settings().pages_a_fault;
  s.collect_bytes = settings().collect_bytes;
  s.counts = &counts.shared;
  return s;
}

}  // namespace

rank_memory& memory() {
  if (memory_of_rank == nullptr) [[unlikely]] {
    if (!is_in_job()) refuse_outside_job("shared memory");
    if (why_not != nullptr) throw error(*why_not);
    pages::require_registers_of_faults();
    memory_of_rank = ::new (runtime_memory(sizeof(rank_memory))) rank_memory;
  }
  return *memory_of_rank;
}

bool shared_memory_has_begun() { return memory_of_rank != nullptr; }

rank_memory::rank_memory()
    : protection_(choose_protection(settings().protected_by)),
      mapping_(*protection_),
      page_count_(mapping::capacity() / page_bytes),
      pages_of_part_(static_cast<std::uint32_t>(
          page_count_ / (static_cast<std::uint64_t>(job.count) * protocol_kinds))),
      streams_(settings().pages_a_fault),
      blocks_(addresses.shared +
                  static_cast<std::uint64_t>(job.me) * protocol_kinds * pages_of_part_ * page_bytes,
              pages_of_part_ * page_bytes, runtime_resource()),
      page_waits_(runtime_resource()),
      undivided_(runtime_resource()),
      parts_(2 * static_cast<std::size_t>(job.count), runtime_resource()),
      unsent_news_(static_cast<std::size_t>(job.count), runtime_resource()),
      members_(runtime_resource()),
      numbers_(runtime_resource()),
      waits_(counts.shared, runtime_resource()),
      report_(settings().wants_report()
                  ? std::make_unique<page_report>(job.count, runtime_resource())
                  : nullptr),
      pages_(*this, page_layout::of_ranks(job.count, pages_of_part_, runtime_resource()), job.me,
             job.count, entries(page_count_), settings_of_pages(report_.get())) {
  mapping_.grow(mapping::capacity());
  prepare_doorbell();
  pages_.fiber_came();
  pages_.set_members(static_cast<std::uint32_t>(job.count));
  share_memory();
  marshals_apart = true;
}

// --- What the protocols ask for

void rank_memory::protect(page_range range, access from, access to) {
  protection_->protect(range, from, to);
}

void rank_memory::send(int to, std::span<const std::byte> front, std::span<const std::byte> back) {
  if (is_lost(to)) return;  // what would wait for the answer has ended, or will not begin
  ringer_.sent(to);
  for (bool more = true; more;) {
    const std::size_t size = length_of_part(front.size() + back.size());
    std::byte* room = reserve_reply(to, runtime_message::shared_memory, size);
    const std::size_t of_front = std::min(size, front.size());
    std::memcpy(room, front.data(), of_front);
    if (size != of_front) std::memcpy(room + of_front, back.data(), size - of_front);
    front = front.subspan(of_front);
    back = back.subspan(size - of_front);
    more = !front.empty() || !back.empty();
    commit_reply(to, runtime_message::shared_memory, more ? goes_on : 0, 0);
  }
}

/// Sends what of a message of the request class has not been sent; false when there is no room.
bool rank_memory::send_rest(int to, unsent_news& news) {
  while (news.sent != news.bytes.size()) {
    const std::size_t size = length_of_part(news.bytes.size() - news.sent);
    std::byte* room = wire().reserve(to, message_class::request, size);
    if (room == nullptr) return false;
    std::memcpy(room, news.bytes.data() + news.sent, size);
    news.sent += size;
    commit_message(to, message_class::request, runtime_message::shared_memory,
                   news.sent != news.bytes.size() ? goes_on : 0, 0);
  }
  news.bytes.clear();
  news.sent = 0;
  return true;
}

void rank_memory::wake_page(page_number page, access allowed) {
  if (faulting_.page == page && faulting_.needed <= allowed) faulting_.woken = true;
  for (const access needed : {access::load, access::store}) {
    const auto at = page_waits_.find(wait_of(page, needed));
    if (at == page_waits_.end() || needed > allowed) continue;
    wake_all(at->second);
    page_waits_.erase(at);
  }
}

std::pmr::memory_resource* rank_memory::memory() { return memory_or_end(); }

void rank_memory::refuse(int from, const char* why) {
  // It may have been held until now.
  if (arriving_ != nullptr && arriving_->source == from) refuse_arrival(*arriving_, why);
  die("a malformed message about shared memory from rank %d %s (it does not come from this "
      "program, or memory that ranks share was overwritten)",
      from, why);
}

// --- What fibers ask for

void rank_memory::reach(std::uint64_t address, bool store, std::uint64_t registers,
                        std::uint64_t code) {
  const std::uint64_t began = clock_.ns();
  const bool is_writing = is_writing_message();
  const auto half_written = wire().set_aside();
  const page_number page = page_of(address);
  piece* self_piece = running_piece();
  waiter self = self_piece;
  const bool again = went_on_.fiber == self && went_on_.registers == registers;
  if (!again) note_ran();
  went_on_ = {};
  faulting_ = {page, store ? access::store : access::load, false};
  const std::uint64_t remote_before = counts.shared.faults_remote;
  pages_.fault(page, store, self, again);
  if (report_ != nullptr)
    report_->fault(page, store, counts.shared.faults_remote != remote_before,
                   code_in_program(code, self_piece->hi));
  counts.shared.faulting_ns += clock_.since(began);
  // The page may have come already, and even have left again. Then the fault is over: the fiber
  // must not wait, because nobody would wake it.
  if (!fault_is_over()) {
    if (has_lost_rank()) [[unlikely]]
      end_for_want_of(page, faulting_.needed);
    // Even while fibers stand still for a checkpoint: in the middle of an instruction no fiber can
    // be saved.
    piece* const faulted = running_piece();
    faulted->runs_frozen = true;
    if (is_writing || is_undivided(self_piece)) {
      struct standing {
        rank_memory& of;
        waiter self;
      } here{*this, self};
      ringer_.begin_wait();
      take_replies_until(
          [](void* context) {
            auto& [of, fiber] = *static_cast<standing*>(context);
            // No other fiber runs meanwhile, and others may have to wait for what has come for it
            // before they can answer.
            of.pages_.others_do_not_run(fiber);
            of.ringer_.look();
            return of.fault_is_over() || has_lost_rank();
          },
          &here);
      ringer_.end_wait();
      if (!fault_is_over()) end_for_want_of(page, faulting_.needed);
    } else {
      wait_for(page_waits_.try_emplace(wait_of(page, faulting_.needed), waits_at::shared_page)
                   .first->second,
               page, true);
    }
    faulted->runs_frozen = false;
  }
  note_ran();
  if (is_writing) wire().take_up(half_written);
  went_on_ = {self, registers, false};
  // When this fiber has left its stack, whatever for, the dispatcher lets these pages go.
  if (pages_.keeps_pages_for(self) && !leaves_.is_posted) {
    leaves_.is_posted = true;
    post_task(&leaves_);
  }
}

bool rank_memory::fault_is_over() const {
  return faulting_.woken || pages_.allowed(faulting_.page) >= faulting_.needed;
}

/// Right after a barrier all ranks are still here, and each fetches what its fibers will want: what
/// they wanted before. That takes some microseconds; to be heard later, in the middle of what the
/// others compute, takes ten times as long.
void rank_memory::exchange_pages() {
  constexpr std::uint64_t longest_ns = 20'000;
  // Other threads of this rank do not wait once more.
  if (!wire().spins_for_replies() || wire().way_ns() > longest_ns) return pages_.end_exchange();
  const std::uint64_t began = clock_.ns();
  struct patience {
    const rank_pages& pages;
    const tick_clock& clock;
    const std::uint64_t until;
  } p{pages_, clock_, began + longest_ns};
  take_replies_until(
      [](void* of) {
        const auto* q = static_cast<const patience*>(of);
        return q->pages.is_at_ease() || q->clock.ns() >= q->until || has_lost_rank();
      },
      &p);
  pages_.end_exchange();
  counts.shared.page_idle_ns += clock_.since(began);
}

allocator::block rank_memory::allocate(std::size_t bytes, std::size_t align, protocol_kind how) {
  const allocator::block b = blocks_.allocate(bytes, align, how);
  if (report_ != nullptr) {
    const piece* here = running_piece();
    blocks_.note(b.at, bytes, here != nullptr ? calling_code(here->hi) : 0);
  }
  return b;
}

void rank_memory::name(std::uint64_t at, const char* text) {
  if (report_ != nullptr) blocks_.name(at, text);
}

report_part rank_memory::part_of_report() const {
  report_part part;
  part.ranks.push_back(counts.shared);
  part.blocks = blocks_.told();
  part.pages.insert(report_->pages().begin(), report_->pages().end());
  for (const auto& [site, times] : report_->sites())
    part.sites.push_back({site.first, times, source_place(site.second)});
  part.races = report_->races();
  return part;
}

void rank_memory::free_here(std::uint64_t at) {
  if (!pages_.forget_events(at, at + blocks_of(at).bytes_of(at)))
    die("sojourn::shared::free() of 0x%llx, where a flag, a condition variable or a counted "
        "barrier "
        "lies for which fibers wait: let them end first",
        static_cast<unsigned long long>(at));
  if (!blocks_of(at).free(at))
    die("sojourn::shared::free() of 0x%llx, where no block of shared memory begins",
        static_cast<unsigned long long>(at));
}

bool rank_memory::is_allocated(std::uint64_t address) {
  return owner(address) != job.me || !blocks_of(address).is_untouched(address);
}

void rank_memory::begin_threads(int count) {
  if (!members_.empty() || !main_takes_part_)
    throw error(
        "shared::run_threads() while other fibers than the main fibers of all ranks take part in "
        "shared::barrier(): let them end first");
  of_rank_ = count;
  pages_.set_members(0);
  pages_.fiber_went();
  for (int k = 0; k < count; ++k) pages_.fiber_came();
  pages_.set_members(static_cast<std::uint32_t>(count * job.count));
}

void rank_memory::end_threads() {
  pages_.set_members(0);
  for (int k = 0; k < of_rank_; ++k) pages_.fiber_went();
  pages_.fiber_came();
  of_rank_ = 0;
  numbers_.clear();
  pages_.set_members(static_cast<std::uint32_t>(job.count));
}

bool rank_memory::tell(int to, message_class c) {
  const bool is_request = c == message_class::request;
  const auto with = is_request ? ordered_with::requests : ordered_with::replies;
  unsent_news& unsent = unsent_news_[static_cast<std::size_t>(to)];
  if (is_request && !send_rest(to, unsent)) return false;
  const auto news = pages_.news_for(to, with);
  if (news.empty()) return true;
  if (!is_request) {
    send(to, news, {});
  } else if (length_of_part(news.size()) == news.size()) {
    std::byte* room = wire().reserve(to, c, news.size());
    if (room == nullptr) return false;
    std::memcpy(room, news.data(), news.size());
    commit_message(to, c, runtime_message::shared_memory, 0, 0);
  } else {
    // All other requests to that rank wait until all parts have been sent.
    unsent.bytes.assign(news.begin(), news.end());
    pages_.news_sent(to, with);
    return send_rest(to, unsent);
  }
  pages_.news_sent(to, with);
  return true;
}

void rank_memory::receive(arrival& a) {
  arriving_ = &a;
  arrived_ns_ = clock_.ns();
  if (!instruction_waits_) note_ran();
  const auto kind = static_cast<std::size_t>(a.kind);
  std::pmr::vector<std::byte>& parts = parts_[2 * static_cast<std::size_t>(a.source) + kind];
  if (parts.empty() && (a.flags & goes_on) == 0) [[likely]] {
    pages_.receive(a.source, {a.payload, a.bytes});
  } else {
    if (parts.size() + a.bytes > longest_message) refuse_arrival(a, "has too many parts");
    parts.insert(parts.end(), a.payload, a.payload + a.bytes);
    if ((a.flags & goes_on) == 0) {
      const std::pmr::vector<std::byte> whole = std::move(parts);
      parts.clear();
      pages_.receive(a.source, whole);
    }
  }
  const std::uint64_t spent = clock_.since(arrived_ns_);
  counts.shared.serving_ns += spent;
  waits_.pause(spent);
  arrived_ns_ = 0;
  arriving_ = nullptr;
  wire().consume(a);
  refresh_pinned();
}

// --- Losses

void rank_memory::fail_waits() {
  if (!page_waits_.empty()) {
    const std::uint64_t first = page_waits_.begin()->first;
    end_for_want_of(static_cast<page_number>(first / 2),
                    first % 2 != 0 ? access::store : access::load);
  }
  fail_sync_waits();
}

void rank_memory::require_all_ranks(const char* to_do) const {
  if (const int rank = first_lost_rank(); rank != no_rank) [[unlikely]]
    throw_rank_lost(rank, to_do);
}

namespace {

/// All that have, also those of which nothing is handled yet: one may have ended because another
/// had, and that one is to be named, too.
std::string who_has_ended() {
  std::string all;
  int count = 0;
  for (int rank = 0; rank < job.count; ++rank) {
    if (!near_ranks().lost(rank)) continue;
    all += format(count++ == 0 ? "%d" : ", %d", rank);
  }
  return (count == 1 ? "rank " : "ranks ") + all + (count == 1 ? " has ended" : " have ended");
}

}  // namespace

/// Nothing can be thrown at an instruction.
void rank_memory::end_for_want_of(page_number page, access needed) {
  const int keeper = pages_.keeper(page);
  const std::string where =
      keeper == job.me  ? std::string("others have stored to it, and their stores are not here")
      : is_lost(keeper) ? format("rank %d had it last, as far as this rank knows", keeper)
                        : format(
                              "rank %d has it, as far as this rank knows, but after a loss no "
                              "page is fetched from any rank",
                              keeper);
  std::fprintf(stderr,
               "sojourn: rank %d ends: %s in the middle of the job, and a %s waits for the page of "
               "shared memory at 0x%llx: %s\n",
               job.me, who_has_ended().c_str(), needed == access::store ? "store" : "load",
               static_cast<unsigned long long>(addresses.shared + page * page_bytes),
               where.c_str());
  try {
    throw_rank_lost(first_lost_rank(), "shared memory");
  } catch (...) {
    std::terminate();  // without a further word: the launcher tells of that rank
  }
}

void rank_memory::answer_bell(const void* context) {
  // Notices might come, and pinned pages must be up to date before the program goes on.
  if (pages_.any_pinned() || !interrupts_user_code(context)) {
    missed_bell_ = true;
    return;
  }
  const bool is_there_again =
      went_on_.fiber == running_piece() && went_on_.registers == interrupted_registers(context);
  // A loop that waits for another value may be the instruction alone, and then looks like this each
  // time. After the first signal it has run.
  instruction_waits_ = is_there_again && !went_on_.rang;
  went_on_.rang = is_there_again;
  // A page that another rank wants may have been kept until then.
  if (!instruction_waits_) note_ran();
  take_replies_about_shared_memory(is_in_program_without_malloc(context) ? interrupted::program
                                                                         : interrupted::library);
  instruction_waits_ = false;
}

/// Zeros are what the entries begin with: none is touched before its page is.
std::span<page_entry> rank_memory::entries(std::uint64_t count) {
  static_assert(std::is_trivially_copyable_v<page_entry>);
  return {static_cast<page_entry*>(runtime_memory(count * sizeof(page_entry))), count};
}

allocator& rank_memory::blocks_of(std::uint64_t address) {
  return blocks_.of(pages_.layout.protocol_of(page_of(address)));
}

/// This rank is not where a fault has ended last: so the instruction there has run.
void rank_memory::note_ran() {
  if (went_on_.fiber == nullptr) return;
  pages_.ran(went_on_.fiber);
  went_on_ = {};
}

wait_counts::kind rank_memory::kind_of(const waiters& queue) const {
  switch (queue.kind) {
    case waits_at::shared_page:
      return wait_counts::kind::page;
    case waits_at::shared_mutex:
      return wait_counts::kind::lock;
    case waits_at::shared_barrier:
    case waits_at::shared_local_barrier:
      return wait_counts::kind::barrier;
    default:
      return wait_counts::kind::event;
  }
}

/// Suspends in the queue. `what`: a page, or the address of an object.
void rank_memory::wait_for(waiters& queue, std::uint64_t what, bool rings) {
  const wait_counts::kind kind = kind_of(queue);
  waits_.begin(kind, what, anything_ready(), clock_.ns());
  leave_to_wait_in(queue, rings);
  waits_.over(kind, what);
}

void rank_memory::leave_to_wait_in(waiters& queue, bool rings) {
  if (rings) ringer_.begin_wait();
  (void)wait_in(queue);
  if (rings) ringer_.end_wait();
}

void rank_memory::wake_all(waiters& queue) {
  if (&queue == &at_barrier_) ++barriers_left_;
  if (!queue.empty()) waits_.end(kind_of(queue), arrived_ns_ != 0 ? arrived_ns_ : clock_.ns());
  while (!queue.empty()) make_ready(take_waiter(queue), resumed::here);
}

rank_memory::leaving_task::leaving_task(rank_memory& m)
    : task{[](task* self) {
             auto* t = static_cast<leaving_task*>(self);
             t->is_posted = false;
             t->of.note_ran();
           },
           nullptr},
      of(m) {}

}  // namespace pages

namespace {

void on_page_fault(std::uint64_t address, bool store, std::uint64_t registers, std::uint64_t code) {
  pages::memory().reach(address, store, registers, code);
}

bool is_allocated(std::uint64_t address) {
  return pages::memory_of_rank == nullptr || pages::memory_of_rank->is_allocated(address);
}

}  // namespace

bool report_shared_memory() {
  using namespace pages;
  if (!settings().wants_report()) return true;
  report_part part;
  part.ranks.push_back(counts.shared);
  if (memory_of_rank != nullptr) part = memory_of_rank->part_of_report();
  const std::vector<std::string> parts = gather(written(part));
  if (job.me != 0) return true;
  const shared_report all(parts, addresses.shared);
  if (settings().report_text) {
    std::fflush(stdout);
    std::fputs(all.text().c_str(), stderr);
  }
  if (settings().report_json == nullptr) return true;
  std::ofstream file(settings().report_json);
  file << all.json();
  if (file.flush()) return true;
  std::fprintf(stderr, "sojourn: the report of shared memory cannot be written to %s\n",
               printable(settings().report_json).c_str());
  return false;
}

void attach_shared_memory() {
  pages::read_settings();
  on_migrate.frames_leave = [] { pages::memory().frames_leave(); };
  on_dispatch.tell = [](int to, message_class way) { return pages::memory().tell(to, way); };
  on_message(
      runtime_message::shared_memory, [](arrival& a) { pages::memory().receive(a); },
      sizeof(pages::message_head));
  on_dispatch.interrupted = [](const void* context) {
    if (pages::memory_of_rank != nullptr) pages::memory_of_rank->answer_bell(context);
  };
  try {
    pages::attach_page_faults({on_page_fault, is_allocated});
  } catch (const error& e) {
    pages::why_not = new std::string(e.what());  // told if the program uses shared memory
  }
}

bool takes_part_in_shared_barrier(const piece* p) {
  if (pages::memory_of_rank != nullptr) return pages::memory_of_rank->takes_part(p);
  return slots.is_main(p->slot) && p->hi == slots.high(p->slot);
}

pages::barrier_attendance attendance_at_shared_barrier() {
  if (pages::memory_of_rank == nullptr) return {};
  return pages::memory_of_rank->attendance();
}

void fail_shared_memory() {
  if (pages::memory_of_rank != nullptr) pages::memory_of_rank->fail_waits();
}

}  // namespace sojourn::detail
