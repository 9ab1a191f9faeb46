// SPDX-License-Identifier: Apache-2.0
// What programs call of sojourn/shared/sync.hpp, shared/atomic.hpp and shared/reduce.hpp.
#include <exception>
#include <memory>
#include <vector>

#include "base/check.hpp"
#include "memory/stack_slots.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/detail/shared_members.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/shared.hpp"

namespace sojourn::shared {

using sojourn::detail::waits_at;
using sojourn::detail::pages::event_question;
using sojourn::detail::pages::memory;
using sojourn::detail::pages::question;

namespace {

std::uint64_t address_of(const void* object) { return reinterpret_cast<std::uint64_t>(object); }

/// An address within the instruction that has called the function into which this is inlined.
[[gnu::always_inline]] inline std::uint64_t called_at() {
  return address_of(__builtin_return_address(0)) - 1;
}

}  // namespace

void mutex::lock() { memory().lock(address_of(this), called_at()); }
bool mutex::try_lock() { return memory().try_lock(address_of(this), called_at()); }
void mutex::unlock() { memory().unlock(address_of(this), false); }
void fair_mutex::unlock() { memory().unlock(address_of(this), true); }

void condition_variable::wait(mutex& m) {
  memory().wait_for_condition(address_of(this), address_of(&m));
}
void condition_variable::notify_one() {
  memory().ask({.what = question::notify_one, .object = address_of(this)},
               waits_at::shared_condition);
}
void condition_variable::notify_all() {
  memory().ask({.what = question::notify_all, .object = address_of(this)},
               waits_at::shared_condition);
}

void flag::set() {
  memory().ask({.what = question::store, .object = address_of(this), .first = 1},
               waits_at::shared_flag);
}
void flag::clear() {
  memory().ask({.what = question::store, .object = address_of(this)}, waits_at::shared_flag);
}
void flag::wait() {
  memory().ask({.what = question::await, .object = address_of(this)}, waits_at::shared_flag);
}
bool flag::is_set() {
  return memory().ask({.what = question::load, .object = address_of(this)},
                      waits_at::shared_flag) != 0;
}

void counted_barrier::arrive_and_wait(std::uint32_t fibers) { detail::meet(this, fibers, 0); }

void barrier() { memory().barrier(); }

void local_barrier() {
  const detail::thread_place here = detail::place_of_thread();
  if (here.of <= 1) return;
  if (here.rank == rank_me()) return memory().local_barrier();
  rpc(here.rank, [] { memory().local_barrier(); }).get();
}

namespace detail {

std::uint64_t change_word(const void* object, std::size_t bytes, word_change what,
                          std::uint64_t first, std::uint64_t second) {
  static constexpr question questions[] = {question::load,    question::store,  question::exchange,
                                           question::compare, question::add,    question::bit_and,
                                           question::bit_or,  question::bit_xor};
  return memory().ask({.what = questions[static_cast<std::size_t>(what)],
                       .object = address_of(object),
                       .first = first,
                       .second = second,
                       .bytes = static_cast<std::uint32_t>(bytes)},
                      waits_at::shared_atomic);
}

// --- Threads of this rank together

thread_place place_of_thread() {
  const int of = memory().threads_of_rank();
  memory().require_part("a local barrier or reduction of shared memory");
  if (of == 0) return {rank_me(), 0, 0};
  const int mine = thread();
  return {mine / of, static_cast<std::size_t>(mine % of), static_cast<std::size_t>(of)};
}

std::shared_ptr<reduction>& open_reduction() {
  static auto* const of_rank = new std::shared_ptr<reduction>;
  return *of_rank;
}

void refuse_types_in_reduction() {
  throw error("shared::reduce_all() of values of different types in the threads of one rank");
}

void failed_elsewhere() {
  throw error("shared::reduce_all(): the operation has thrown on another rank");
}

// --- Who takes part in barriers

void barrier_join(std::uint32_t fibers) { memory().member_joins(fibers); }
void barrier_here() { memory().member_is_here(); }
void barrier_gone() { memory().member_is_gone(); }
bool barrier_of_members() { return memory().barrier(); }
bool barrier_has_waiting() { return memory().members_wait(); }
void barrier_break() {
  const std::uint64_t number = memory().begin_break();
  std::vector<future<void>> ranks;
  for (rank_t r = 0; r < rank_count(); ++r)
    ranks.push_back(rpc(r, [](std::uint64_t n) { memory().arrive_for_absent(n); }, number));
  for (future<void>& f : ranks) f.get();
}

// --- Counted barriers

std::uint64_t meet(void* place, std::uint32_t fibers, std::uint64_t word) {
  if (fibers == 0)
    throw error(
        "arrive_and_wait(0) at a sojourn::shared::counted_barrier: name the number of "
        "fibers that meet there, this one included");
  return memory().ask(
      {.what = question::arrive, .object = address_of(place), .first = fibers, .second = word},
      waits_at::shared_counted_barrier);
}

}  // namespace detail
}  // namespace sojourn::shared
