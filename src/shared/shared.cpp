// SPDX-License-Identifier: Apache-2.0
// What programs call of shared memory.
#include "sojourn/shared.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn::shared {

using sojourn::detail::pages::memory;

exhausted::exhausted(const char* what) noexcept { std::snprintf(what_, sizeof what_, "%s", what); }

std::size_t capacity() { return memory().capacity(); }

void* allocate(std::size_t bytes, std::size_t align, protocol how) {
  sojourn::detail::check_thread();
  using sojourn::detail::pages::protocol_kind;
  auto& all = memory();  // first: it refuses where there is no job, and there are no settings
  const auto kind = how == protocol::usual ? sojourn::detail::pages::settings().usual
                    : how == protocol::lmw ? protocol_kind::lmw
                    : how == protocol::lsw ? protocol_kind::lsw
                                           : protocol_kind::seq;
  const auto block = all.allocate(std::max<std::size_t>(bytes, 1), align, kind);
  void* p = reinterpret_cast<void*>(block.at);
  if (block.used_before) std::memset(p, 0, bytes);
  return p;
}

void free(void* p) {
  if (p == nullptr) return;
  sojourn::detail::check_thread();
  const auto at = reinterpret_cast<std::uint64_t>(p);
  if (!sojourn::detail::addresses.in_shared(at))
    throw error(
        sojourn::detail::format("sojourn::shared::free() of 0x%llx, which is no shared memory",
                                static_cast<unsigned long long>(at)));
  const int owner = memory().owner(at);
  if (owner == rank_me()) return memory().free_here(at);
  rpc_ff(owner, [](std::uint64_t there) { memory().free_here(there); }, at);
}

namespace {

class shared_resource final : public std::pmr::memory_resource {
 public:
  explicit shared_resource(protocol how) : how_(how) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t align) override {
    return shared::allocate(bytes, align, how_);
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override { shared::free(p); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    // All shared_resources are equal, because free() finds out which protocol a block belongs to.
    return dynamic_cast<const shared_resource*>(&other) != nullptr;
  }

  const protocol how_;
};

}  // namespace

std::pmr::memory_resource* resource(protocol how) {
  static auto* const all =
      new shared_resource[4]{shared_resource(protocol::usual), shared_resource(protocol::lmw),
                             shared_resource(protocol::lsw), shared_resource(protocol::seq)};
  return &all[static_cast<std::size_t>(how)];
}

void name(const void* p, const char* text) {
  if (p == nullptr) return;
  auto& all = memory();
  if (sojourn::detail::pages::settings().wants_report())
    all.name(reinterpret_cast<std::uint64_t>(p), text);
}

int threads() {
  const int of_rank = memory().threads_of_rank();
  return of_rank == 0 ? rank_count() : of_rank * rank_count();
}
int thread() {
  const std::uint64_t id = self().id();
  if (id == 0 || memory().threads_of_rank() == 0) return rank_me();
  const auto number_here = [](std::uint64_t of) {
    const auto& numbers = memory().numbers();
    const auto at = numbers.find(of);
    return at == numbers.end() ? -1 : at->second;
  };
  int number = number_here(id);
  const rank_t home = sojourn::detail::home_of(id);
  if (number < 0 && home != rank_me()) {
    number = rpc(home, number_here, id).get();
    memory().numbers()[id] = number;
  }
  return number < 0 ? rank_me() : number;
}

namespace detail {

void check_is_shared(const volatile void* p) {
  const auto at = reinterpret_cast<std::uint64_t>(p);
  if (at == 0 || sojourn::detail::addresses.in_shared(at)) return;
  throw error(
      sojourn::detail::format("0x%llx is no shared memory: a shared::pointer to it would "
                              "mean nothing on other ranks",
                              static_cast<unsigned long long>(at)));
}

namespace {

/// What two ranks pass to run_threads(): the least number and the greatest.
struct passed_numbers {
  int least, most;
  rank_t rank_of_least, rank_of_most;
};

passed_numbers both(const passed_numbers& a, const passed_numbers& b) {
  const passed_numbers& low = b.least < a.least ? b : a;
  const passed_numbers& high = b.most > a.most ? b : a;
  return {low.least, high.most, low.rank_of_least, high.rank_of_most};
}

}  // namespace

void begin_threads(int of_this_rank) {
  memory().require_all_ranks("sojourn::shared::run_threads()");
  if (memory().threads_of_rank() != 0)
    throw error("shared::run_threads() inside of shared::run_threads(): end the first one before");
  shared::barrier();
  memory().begin_threads(std::max(of_this_rank, 0));
  // No thread may arrive at a barrier before all ranks know how many threads take part in it.
  const passed_numbers all =
      reduce(passed_numbers{of_this_rank, of_this_rank, rank_me(), rank_me()},
             [](const passed_numbers& a, const passed_numbers& b) { return both(a, b); });
  if (all.least == all.most && all.least > 0) [[likely]]
    return;
  end_threads();
  if (all.least == all.most)
    throw error(sojourn::detail::format("shared::run_threads() of %d threads: start at least one",
                                        of_this_rank));
  throw error(sojourn::detail::format(
      "shared::run_threads() with different numbers of threads: rank %d passes %d and rank %d "
      "passes %d; pass the same number on all ranks",
      all.rank_of_least, all.least, all.rank_of_most, all.most));
}

void end_threads() {
  sojourn::barrier();
  memory().end_threads();
  sojourn::barrier();
}

void thread_begins(int number) { memory().numbers()[self().id()] = number; }
void join_threads(std::span<const sojourn::thread> threads) {
  std::exception_ptr failure;
  for (sojourn::thread t : threads) {
    try {
      t.join();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace detail
}  // namespace sojourn::shared
