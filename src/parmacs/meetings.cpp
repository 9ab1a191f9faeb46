// SPDX-License-Identifier: Apache-2.0
#include "parmacs/meetings.hpp"

#include <algorithm>
#include <vector>

#include "sojourn/detail/shared_members.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/shared.hpp"

namespace sojourn::detail {

namespace {

/// The object that an address names. It holds nothing, so it may lie anywhere in a larger one.
template <class Object>
Object& at(void* place, std::size_t word = 0) {
  static_assert(sizeof(Object) <= sizeof(long));
  return *reinterpret_cast<Object*>(static_cast<long*>(place) + word);
}

/// What this rank knows: so many processes met at a counted barrier, and those were all. From then
/// on that many meet at the barrier of shared memory. They learn it where they meet, so all of them
/// know it: main() arrives there with the number of the era, which no other process does. It alone
/// can know, for processes are counted on its rank.
std::uint32_t everyone_here = 0;
/// An era ends when a process is created: what is said in one is not believed in the next.
std::uint64_t era = 1;
/// On rank 0: main() has said in this era that all meet.
bool said_so = false;

/// Requires: called on rank 0. Calls it on all ranks at once; true when it returned true on any.
bool any_rank(bool (*ask)()) {
  std::vector<future<bool>> answers;
  for (rank_t rank = 0; rank < rank_count(); ++rank) answers.push_back(rpc(rank, ask));
  return std::count_if(answers.begin(), answers.end(), [](auto& a) { return a.get(); }) != 0;
}

bool begin_era() {
  ++era;
  everyone_here = 0;
  return shared::detail::barrier_has_waiting();
}

}  // namespace

void meet(void* barrier, std::uint32_t count, bool (*are_all)(std::uint32_t count)) {
  // Where not all have met there, some who meet here may be no members of that barrier.
  if (count == everyone_here && shared::detail::barrier_of_members()) return;
  const bool is_everyone = are_all(count);
  if (is_everyone) said_so = true;
  if (shared::detail::meet(barrier, count, is_everyone ? era : 0) == era) everyone_here = count;
}

void forget_everyone() {
  if (!said_so) return;
  said_so = false;
  if (any_rank(begin_era)) shared::detail::barrier_break();
}

long next_subscript(void* counter, long last, std::uint32_t processes) {
  auto& next = at<shared::atomic<long>>(counter);
  const long mine = next.fetch_add(1);
  if (mine <= last) return mine;
  if (processes != 0) {
    // The last one to ask in vain: all have asked, and nobody asks again before all have met.
    if (mine == last + static_cast<long>(processes)) next.store(0);
    at<shared::counted_barrier>(counter, 1).arrive_and_wait(processes);
  }
  return -1;
}

void set_semaphore(void* semaphore, long count) {
  at<shared::atomic<long>>(semaphore).store(count);
}

void take_semaphore(void* semaphore) {
  auto& count = at<shared::atomic<long>>(semaphore);
  auto& guard = at<shared::mutex>(semaphore, 1);
  guard.lock();
  at<shared::condition_variable>(semaphore, 2).wait(guard, [&] { return count.load() > 0; });
  count.fetch_sub(1);
  guard.unlock();
}

void give_semaphore(void* semaphore) {
  auto& guard = at<shared::mutex>(semaphore, 1);
  guard.lock();
  at<shared::atomic<long>>(semaphore).fetch_add(1);
  at<shared::condition_variable>(semaphore, 2).notify_one();
  guard.unlock();
}

}  // namespace sojourn::detail
