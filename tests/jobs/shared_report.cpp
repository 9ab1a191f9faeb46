// SPDX-License-Identifier: Apache-2.0
// Programs for the report of shared memory, which tests/launcher/shared_report.sh reads; and what
// is counted in programs whose every message can be foretold.
//   shared_report              the counts
//   shared_report apart        ranks store to different bytes of a page at the same time
//   shared_report race         to the same bytes
//   shared_report ordered      to the same bytes, one after the other
#include <cstdint>
#include <sojourn/sojourn.hpp>
#include <string>

#include "check.hpp"

namespace {

using namespace sojourn;

template <class T>
T* from_rank_0(T* p) {
  return reinterpret_cast<T*>(broadcast(reinterpret_cast<std::uintptr_t>(p), 0));
}

int* grid() {
  int* all = rank_me() == 0 ? shared::alloc<int>(1024, shared::protocol::lmw) : nullptr;
  if (rank_me() == 0) shared::name(all, "grid");
  all = from_rank_0(all);
  shared::barrier();
  return all;
}

struct guarded {
  shared::mutex m;
  int value;
};

void apart() {
  int* all = grid();
  for (int round = 1; round <= 10; ++round) {
    all[rank_me()] = round;
    shared::barrier();
    CHECK_EQUAL(all[(rank_me() + 1) % rank_count()], round);
    shared::barrier();
  }
}

void race() {
  int* all = grid();
  for (int round = 1; round <= 10; ++round) {
    all[7] = round * 100 + rank_me() + 1;
    shared::barrier();
  }
}

void ordered() {
  auto* one = reinterpret_cast<guarded*>(grid());
  for (int round = 0; round < 10; ++round) {
    one->m.lock();
    ++one->value;
    one->m.unlock();
    if (round % 3 == 0) shared::barrier();
  }
  shared::barrier();
  CHECK_EQUAL(one->value, 10 * rank_count());
  shared::barrier();
  if (rank_me() == 0) one->value = 1;
  shared::barrier();
  if (rank_me() == 1) one->value = 2;
  shared::barrier();
  CHECK_EQUAL(one->value, 2);
}

// --- counts

shared::counters since(const shared::counters& before) {
  auto now = shared::counters_now().values();
  const auto then = before.values();
  for (std::size_t i = 0; i < now.size(); ++i) now[i] -= then[i];
  return __builtin_bit_cast(shared::counters, now);
}

void a_page_that_another_rank_stored_to_is_one_remote_fault_and_one_request() {
  int* all = grid();
  if (rank_me() == 0) all[3] = 5;
  shared::barrier();
  const shared::counters before = shared::counters_now();
  if (rank_me() == 1) {
    CHECK_EQUAL(all[3], 5);
    CHECK_EQUAL(all[4], 0);
    const shared::counters c = since(before);
    CHECK_EQUAL(c.faults_remote, 1);
    CHECK_EQUAL(c.faults_local + c.faults_joined + c.faults_store, 0);
    CHECK_EQUAL(c.page_messages, 1);
    CHECK_EQUAL(c.pages_fetched, 1);
    CHECK_EQUAL(c.page_waits, 1);
  }
  shared::barrier();
}

void a_barrier_is_a_message_to_rank_0_and_one_back() {
  shared::barrier();
  const shared::counters before = shared::counters_now();
  for (int i = 0; i < 5; ++i) shared::barrier();
  const shared::counters c = since(before);
  CHECK_EQUAL(c.barriers, 5);
  CHECK_EQUAL(c.barrier_messages, rank_me() == 0 ? 5 * (rank_count() - 1) : 5);
  CHECK_EQUAL(c.faults_remote + c.page_messages + c.lock_messages, 0);
  CHECK_EQUAL(c.barrier_waits, 5);
  shared::barrier();
}

void a_mutex_that_stays_on_its_rank_is_taken_without_a_message() {
  auto* one = reinterpret_cast<guarded*>(grid());
  if (rank_me() == 1) {
    one->m.lock();
    one->m.unlock();
    const shared::counters before = shared::counters_now();
    for (int i = 0; i < 5; ++i) {
      one->m.lock();
      one->m.unlock();
    }
    const shared::counters c = since(before);
    CHECK_EQUAL(c.locks_local, 5);
    CHECK_EQUAL(c.locks_remote + c.locks_joined + c.lock_messages, 0);
  }
  shared::barrier();
  const shared::counters before = shared::counters_now();
  if (rank_me() == 0) {
    one->m.lock();
    one->m.unlock();
    const shared::counters c = since(before);
    CHECK_EQUAL(c.locks_remote, 1);
    CHECK_EQUAL(c.locks_local + c.locks_joined, 0);
    CHECK_EQUAL(c.lock_waits, 1);
  }
  shared::barrier();
}

void two_threads_that_need_a_page_ask_once() {
  int* all = grid();
  if (rank_me() == 0) all[3] = 5;
  shared::barrier();
  const shared::counters before = shared::counters_now();
  shared::run_threads(2, [&](int) { CHECK_EQUAL(all[3], 5); });
  if (rank_me() == 1) {
    const shared::counters c = since(before);
    CHECK_EQUAL(c.faults_remote, 1);
    CHECK_EQUAL(c.faults_joined, 1);
  }
  shared::barrier();
}

void diffs_are_made_and_used_once_by_each_rank() {
  int* all = grid();
  // At first the page is one rank's, and goes as a whole.
  all[rank_me()] = 2;
  shared::barrier();
  CHECK_EQUAL(all[0], 2);
  shared::barrier();
  // Perhaps as soon as the barrier is left, as the page was wanted before.
  const shared::counters before = shared::counters_now();
  all[rank_me()] = 1;
  shared::barrier();
  int sum = 0;
  for (int r = 0; r < rank_count(); ++r) sum += all[r];
  CHECK_EQUAL(sum, rank_count());
  shared::barrier();
  const shared::counters c = since(before);
  CHECK_EQUAL(c.diffs_applied, rank_count() - 1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  return run(argc, argv, [&] {
    if (what == "apart") {
      check::claim("ranks store to different bytes of a page", apart);
    } else if (what == "race") {
      check::claim("ranks store to the same bytes", race);
    } else if (what == "ordered") {
      check::claim("ranks store to the same bytes one after the other", ordered);
    } else {
      check::claim("a page that another rank stored to is one remote fault and one request",
                   a_page_that_another_rank_stored_to_is_one_remote_fault_and_one_request);
      check::claim("a barrier is a message to rank 0 and one back",
                   a_barrier_is_a_message_to_rank_0_and_one_back);
      check::claim("a mutex that stays on its rank is taken without a message",
                   a_mutex_that_stays_on_its_rank_is_taken_without_a_message);
      check::claim("two threads that need a page ask once", two_threads_that_need_a_page_ask_once);
      check::claim("diffs are made and used once by each rank",
                   diffs_are_made_and_used_once_by_each_rank);
    }
    return check::verdict();
  });
}
