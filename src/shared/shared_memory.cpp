// SPDX-License-Identifier: Apache-2.0
#include "shared/shared_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/waiters.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/outbound.hpp"
#include "shared/allocator.hpp"
#include "shared/mapping.hpp"
#include "shared/page_fault.hpp"
#include "shared/protection.hpp"
#include "shared/rank_pages.hpp"
#include "shared/streams.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/shared.hpp"

namespace sojourn::detail {

namespace {

using namespace pages;  // NOLINT: this file joins them to the runtime.
using pages::access;    // And not that of <unistd.h>.

/// A fiber that waits for a mutex. Not on its stack, which may be out of place meanwhile.
struct mutex_wait {
  waiters queue{waits_at::shared_mutex};
  bool has_it = false;
};
/// Stands for a fiber that got a mutex without waiting.
char holds_without_wait;

std::uint64_t setting(const char* name, std::uint64_t otherwise, std::uint64_t least,
                      std::uint64_t most) {
  const char* set = std::getenv(name);
  if (set == nullptr || *set == 0) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(set, &end, 10);
  if (*end != 0 || *set == '-' || value < least || value > most)
    throw error(format("%s=%s is no number from %llu to %llu", name, set,
                       static_cast<unsigned long long>(least),
                       static_cast<unsigned long long>(most)));
  return value;
}

protocol_kind protocol_from_environment() {
  const char* set = std::getenv("SOJOURN_SHARED");
  const std::string_view wanted = set != nullptr && *set != 0 ? set : "lmw";
  if (wanted == "lmw") return protocol_kind::lmw;
  if (wanted == "lsw") return protocol_kind::lsw;
  if (wanted == "seq") return protocol_kind::seq;
  throw error(format("SOJOURN_SHARED=%s is none of the protocols lmw, lsw and seq", set));
}

/// What the user has set. Read when the rank starts, so that a wrong value is told at once.
struct shared_settings {
  protocol_kind usual = protocol_from_environment();
  std::uint32_t pages_a_fault =
      static_cast<std::uint32_t>(setting("SOJOURN_SHARED_FETCH", 8, 1, 64));
  std::size_t collect_bytes = setting("SOJOURN_SHARED_DIFFS", 64 << 10, 64, 1 << 30) << 10;
};
const shared_settings* chosen = nullptr;

class shared_memory final : public services {
 public:
  shared_memory()
      : protection_(choose_protection()),
        mapping_(*protection_),
        page_count_(mapping::capacity() / page_bytes),
        pages_of_part_(page_count_ / (static_cast<std::uint64_t>(job.count) * protocol_kinds)),
        streams_(chosen->pages_a_fault),
        blocks_{part(protocol_kind::lmw), part(protocol_kind::lsw), part(protocol_kind::seq)},
        page_waits_(runtime_resource()),
        numbers_(runtime_resource()),
        pages_(*this, job.me, job.count, entries(page_count_), settings()) {
    mapping_.grow(mapping::capacity());
    pages_.fiber_came();
    pages_.set_members(static_cast<std::uint32_t>(job.count));
  }

  // --- what the protocols ask for ---

  std::byte* bytes(page_number page) override { return runtime_page(page); }
  void protect(page_range range, access from, access to) override {
    protection_->protect(range, from, to);
  }
  void send(int to, std::span<const std::byte> front, std::span<const std::byte> back) override {
    const std::size_t size = front.size() + back.size();
    if (size > wire().payload_max())
      die("a message of %zu bytes about shared memory is longer than messages may be: fewer pages "
          "must change between two barriers or releases",
          size);
    std::byte* room = reserve_reply(to, runtime_message::shared_memory, size);
    std::memcpy(room, front.data(), front.size());
    if (!back.empty()) std::memcpy(room + front.size(), back.data(), back.size());
    commit_reply(to, runtime_message::shared_memory, 0, 0);
  }
  void wake_page(page_number page, access allowed) override {
    if (faulting_.page == page && faulting_.needed <= allowed) faulting_.woken = true;
    for (const access needed : {access::load, access::store}) {
      const auto at = page_waits_.find(wait_of(page, needed));
      if (at == page_waits_.end() || needed > allowed) continue;
      wake_all(at->second);
      page_waits_.erase(at);
    }
  }
  void wake_locker(waiter fiber) override {
    auto* wait = static_cast<mutex_wait*>(fiber);
    wait->has_it = true;  // perhaps before the fiber waits
    wake_all(wait->queue);
  }
  void wake_barrier() override { wake_all(at_barrier_); }
  // A page's number says all of its allocation that other ranks have to know: each rank has a part
  // of the region, and each protocol a part of that.
  protocol_kind protocol_of(page_number page) override {
    return static_cast<protocol_kind>(page / pages_of_part_ % protocol_kinds);
  }
  int home(page_number page) override {
    const std::uint64_t rank = page / pages_of_part_ / protocol_kinds;
    return static_cast<int>(std::min(rank, static_cast<std::uint64_t>(job.count - 1)));
  }
  std::uint32_t fetched_together(page_number page) override {
    const std::uint64_t left = pages_of_part_ - page % pages_of_part_;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(streams_.pages_at(page), left));
  }
  std::pmr::memory_resource* memory() override { return runtime_resource(); }
  void refuse(int, const char* why) override { refuse_arrival(*arriving_, why); }

  // --- what fibers ask for ---

  /// `registers`: see page_fault_hooks.
  void reach(std::uint64_t address, bool store, std::uint64_t registers) {
    const page_number page = page_of(address);
    const access needed = store ? access::store : access::load;
    waiter self = running_piece();
    const bool again = went_on_.fiber == self && went_on_.registers == registers;
    if (!again) note_ran();
    went_on_ = {};
    faulting_ = {page, needed, false};
    pages_.fault(page, store, self, again);
    // Where it came and has gone again meanwhile, nobody wakes this fiber a second time.
    if (pages_.allowed(page) < needed && !faulting_.woken)
      (void)wait_in(
          page_waits_.try_emplace(wait_of(page, needed), waits_at::shared_page).first->second);
    note_ran();
    went_on_ = {self, registers};
    // When this fiber has left its stack, whatever for, the dispatcher lets these pages go.
    if (pages_.keeps_pages_for(self) && !leaves_.is_posted) {
      leaves_.is_posted = true;
      post_task(&leaves_);
    }
  }
  void lock(std::uint64_t l) {
    note_ran();
    auto* wait = ::new (runtime_resource()->allocate(sizeof(mutex_wait))) mutex_wait;
    if (!pages_.take_lock(l, wait) && !wait->has_it) (void)wait_in(wait->queue);
    runtime_resource()->deallocate(wait, sizeof(mutex_wait));
  }
  bool try_lock(std::uint64_t l) { return pages_.try_lock(l, &holds_without_wait); }
  void unlock(std::uint64_t l) {
    note_ran();
    if (pages_.lock_holder(l) == nullptr)
      throw error(
          format("a sojourn::shared::mutex (0x%llx) is unlocked on rank %d, where no fiber "
                 "holds it: unlock it on the rank where it was locked",
                 static_cast<unsigned long long>(l), job.me));
    pages_.release_lock(l, false);
  }
  void barrier() {
    note_ran();
    // The last one to arrive may let everybody go before this fiber waits.
    const std::uint64_t before = barriers_left_;
    pages_.arrive();
    if (barriers_left_ == before) (void)wait_in(at_barrier_);
  }

  allocator::block allocate(std::size_t bytes, std::size_t align, protocol_kind how) {
    const allocator::block b = blocks_[static_cast<std::size_t>(how)].allocate(bytes, align);
    if (b.at == 0) throw std::bad_alloc();
    return b;
  }
  protocol_kind usual_protocol() const { return chosen->usual; }
  void free_here(std::uint64_t at) {
    if (!blocks_of(at).free(at))
      die("sojourn::shared::free() of 0x%llx, where no block of shared memory begins",
          static_cast<unsigned long long>(at));
  }
  /// Never dealt out, as far as this rank can know.
  bool is_allocated(std::uint64_t address) {
    return owner(address) != job.me || !blocks_of(address).is_untouched(address);
  }
  int owner(std::uint64_t address) { return home(page_of(address)); }
  std::size_t capacity() const { return pages_of_part_ * page_bytes; }

  // --- threads ---

  void begin_threads(int count) {
    of_rank_ = count;
    pages_.set_members(0);
    pages_.fiber_went();
    for (int k = 0; k < count; ++k) pages_.fiber_came();
    pages_.set_members(static_cast<std::uint32_t>(count * job.count));
  }
  void end_threads() {
    pages_.set_members(0);
    for (int k = 0; k < of_rank_; ++k) pages_.fiber_went();
    pages_.fiber_came();
    of_rank_ = 0;
    pages_.set_members(static_cast<std::uint32_t>(job.count));
  }
  int threads_of_rank() const { return of_rank_; }
  std::pmr::unordered_map<std::uint64_t, int>& numbers() { return numbers_; }

  void receive(arrival& a) {
    arriving_ = &a;
    note_ran();
    pages_.receive(a.source, {a.payload, a.bytes});
    wire().consume(a);
  }

 private:
  /// Zeros are what the entries begin with: none is touched before its page is.
  static std::span<page_entry> entries(std::uint64_t count) {
    static_assert(std::is_trivially_copyable_v<page_entry>);
    return {static_cast<page_entry*>(runtime_memory(count * sizeof(page_entry))), count};
  }
  static rank_pages_settings settings() {
    rank_pages_settings s;
    s.collect_bytes = chosen->collect_bytes;
    return s;
  }
  /// What this rank allocates from for a protocol.
  allocator part(protocol_kind how) const {
    const std::uint64_t number =
        static_cast<std::uint64_t>(job.me) * protocol_kinds + static_cast<std::uint64_t>(how);
    return {addresses.shared + number * pages_of_part_ * page_bytes, pages_of_part_ * page_bytes,
            runtime_resource()};
  }
  allocator& blocks_of(std::uint64_t address) {
    return blocks_[static_cast<std::size_t>(protocol_of(page_of(address)))];
  }
  /// Fibers that wait for a load and for a store are different queues.
  static std::uint64_t wait_of(page_number page, access needed) {
    return 2 * std::uint64_t{page} + (needed == access::store ? 1 : 0);
  }
  struct leaving_task : task {
    explicit leaving_task(shared_memory& m) : task{run_it, nullptr}, of(m) {}
    static void run_it(task* self) {
      auto* t = static_cast<leaving_task*>(self);
      t->is_posted = false;
      t->of.note_ran();
    }
    shared_memory& of;
    bool is_posted = false;
  };
  /// This rank is not where a fault has ended last: so the instruction there has run.
  void note_ran() {
    if (went_on_.fiber == nullptr) return;
    pages_.ran(went_on_.fiber);
    went_on_ = {};
  }
  void wake_all(waiters& queue) {
    if (&queue == &at_barrier_) ++barriers_left_;
    while (!queue.empty()) make_ready(take_waiter(queue), woken_here);
  }

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
  leaving_task leaves_{*this};
  waiters at_barrier_{waits_at::shared_barrier};
  std::uint64_t barriers_left_ = 0;
  int of_rank_ = 0;
  std::pmr::unordered_map<std::uint64_t, int> numbers_;  ///< Of threads of start().
  const arrival* arriving_ = nullptr;
  rank_pages pages_;  ///< Last: it uses the others.
};

shared_memory* memory_of_rank = nullptr;
/// Why there is no shared memory on this machine; or null.
const std::string* why_not = nullptr;

shared_memory& memory() {
  if (memory_of_rank == nullptr) [[unlikely]] {
    if (job.count == 0) refuse_before_run("shared memory");
    if (why_not != nullptr) throw error(*why_not);
    memory_of_rank = ::new (runtime_memory(sizeof(shared_memory))) shared_memory;
  }
  return *memory_of_rank;
}

void on_page_fault(std::uint64_t address, bool store, std::uint64_t registers) {
  memory().reach(address, store, registers);
}
bool is_allocated(std::uint64_t address) {
  return memory_of_rank == nullptr || memory_of_rank->is_allocated(address);
}

}  // namespace

void attach_shared_memory() {
  chosen = new shared_settings;
  on_message(
      runtime_message::shared_memory, [](arrival& a) { memory().receive(a); },
      sizeof(message_head));
  try {
    attach_page_faults({on_page_fault, is_allocated});
  } catch (const error& e) {
    why_not = new std::string(e.what());  // told if the program uses shared memory
  }
}

}  // namespace sojourn::detail

namespace sojourn::shared {

using sojourn::detail::memory;

std::size_t capacity() { return memory().capacity(); }

void* allocate(std::size_t bytes, std::size_t align, protocol how) {
  using sojourn::detail::pages::protocol_kind;
  const auto kind = how == protocol::usual ? memory().usual_protocol()
                    : how == protocol::lmw ? protocol_kind::lmw
                    : how == protocol::lsw ? protocol_kind::lsw
                                           : protocol_kind::seq;
  const auto block = memory().allocate(std::max<std::size_t>(bytes, 1), align, kind);
  void* p = reinterpret_cast<void*>(block.at);
  if (block.used_before) std::memset(p, 0, bytes);
  return p;
}

void free(void* p) {
  if (p == nullptr) return;
  const auto at = reinterpret_cast<std::uint64_t>(p);
  if (!sojourn::detail::addresses.in_shared(at))
    throw error(
        sojourn::detail::format("sojourn::shared::free() of 0x%llx, which is no shared memory",
                                static_cast<unsigned long long>(at)));
  const int owner = memory().owner(at);
  if (owner == rank_me()) return memory().free_here(at);
  rpc_ff(owner, [](std::uint64_t there) { memory().free_here(there); }, at);
}

void mutex::lock() { memory().lock(reinterpret_cast<std::uint64_t>(this)); }
bool mutex::try_lock() { return memory().try_lock(reinterpret_cast<std::uint64_t>(this)); }
void mutex::unlock() { memory().unlock(reinterpret_cast<std::uint64_t>(this)); }

void barrier() { memory().barrier(); }

int threads() {
  const int of_rank = memory().threads_of_rank();
  return of_rank == 0 ? rank_count() : of_rank * rank_count();
}
int thread() {
  const auto& numbers = memory().numbers();
  const auto at = numbers.find(self().id());
  return at == numbers.end() ? rank_me() : at->second;
}

namespace detail {

void begin_threads(int of_this_rank) {
  if (of_this_rank <= 0)
    throw error(
        sojourn::detail::format("shared::start() of %d threads: start at least one", of_this_rank));
  if (memory().threads_of_rank() != 0)
    throw error("shared::start() inside of shared::start(): end the first one before");
  shared::barrier();
  memory().begin_threads(of_this_rank);
  // Nobody's thread arrives at a barrier before all ranks know whom it waits for.
  sojourn::barrier();
}

void end_threads() {
  sojourn::barrier();
  memory().end_threads();
  sojourn::barrier();
}

void thread_begins(int number) { memory().numbers()[self().id()] = number; }
void thread_ends() { memory().numbers().erase(self().id()); }

}  // namespace detail
}  // namespace sojourn::shared
