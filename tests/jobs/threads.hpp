// SPDX-License-Identifier: Apache-2.0
// What the claims about threads share; threads.cpp makes them all.
#pragma once

#include <vector>

#include "check.hpp"

namespace threads {

using namespace sojourn;

inline rank_t last() { return rank_count() - 1; }
inline rank_t next() { return (rank_me() + 1) % rank_count(); }

/// What threads leave behind; on one rank, reached by rpc.
struct board {
  std::vector<long> notes;
  bool enough = false;
  void say_enough() { enough = true; }
  bool is_enough() const { return enough; }
  void note(long value) { notes.push_back(value); }
  rank_t runs_on() const { return rank_me(); }
  long count() const { return static_cast<long>(notes.size()); }
  long sum() const {
    long s = 0;
    for (long n : notes) s += n;
    return s;
  }
};

/// A gate that fibers of any rank wait at: its answers come when it opens.
struct gate {
  bool open = false;
  void pass() const {
    while (!open) yield();
  }
  void let() { open = true; }
};

inline thread_refusal why_not(thread t, rank_t to) {
  try {
    migrate(t, to);
  } catch (const thread_error& e) {
    return e.why();
  }
  return thread_refusal::none;
}

// thread_moves.cpp
void a_thread_visits_all_ranks_with_its_locals();
void both_approaches_go_on_with_the_next_statement();
void another_one_is_moved_while_it_waits();
void one_that_is_ready_is_moved();
void one_that_sleeps_is_moved();
void its_base_moves_while_an_activation_is_away();
void one_that_moved_by_an_access_is_found();
void one_that_never_stands_still_is_moved();
void one_whose_wait_has_timed_out_is_moved_later();
void refusals_say_why();
void random_moves_lose_nothing();
void those_that_share_a_stack_travel();

// thread_memory.cpp
void heaps_and_large_frames_travel();
void a_heap_may_come_where_another_was_read();
void bytes_are_copied_once_or_twice();
void stop_sources_leave_no_memory_behind();

}  // namespace threads
