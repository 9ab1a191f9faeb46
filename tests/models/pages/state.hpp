// SPDX-License-Identifier: Apache-2.0
// All that there is between two steps of a program: the threads, what each rank has, and the
// messages on their way.
#pragma once

#include <algorithm>
#include <type_traits>

#include "program.hpp"
#include "small.hpp"

namespace page_model {

constexpr int intervals_max = 24;  // of a rank
constexpr int messages_max = 8;    // on their way from one rank to another

using page_words = table<small, words>;
using page_versions = table<small, pages>;

/// The index of an interval of each rank; 0 stands for none.
using rank_vector = table<small, ranks_max>;

/// Makes each element at least that of `least`.
inline void raise(rank_vector& vector, const rank_vector& least) {
  for (int q = 0; q < ranks_max; ++q) vector[q] = std::max(vector[q], least[q]);
}
inline bool is_at_most(const rank_vector& vector, const rank_vector& other) {
  for (int q = 0; q < ranks_max; ++q)
    if (vector[q] > other[q]) return false;
  return true;
}
inline int sum_of(const rank_vector& vector) {
  int sum = 0;
  for (small index : vector) sum += index;
  return sum;
}

// --- messages ------------------------------------------------------------------------------------

enum class message_kind : small {
  none,
  // All protocols.
  lock_request,
  lock_forward,
  lock_grant,
  arrival,
  departure,
  arrive_with_all,
  thread_move,
  // `lmw`
  collection_done,
  collection_go,
  page_request,
  page_reply,
  diff_request,
  diff_reply,
  // `lsw`
  token_request,
  token_forward,
  token_grant,
  read_request,
  read_forward,
  read_reply,
  // `seq`
  ask,
  forward_read,
  forward_write,
  invalidate,
  acknowledge,
  data,
  allow,
  confirm,
};
const char* name_of(message_kind kind);

struct message {
  message_kind what;
  small epoch;         ///< The epoch of the sender.
  small about;         ///< The page, lock or thread that the message is about.
  small asker;         ///< The rank that the answer goes to.
  small count;         ///< Of threads (`arrival`) or of acknowledgements to wait for (`allow`).
  small after, last;   ///< Stand for the diffs of the intervals after `after` up to `last`.
  small version;       ///< The version of the page in the message (`lsw`).
  bool stores;         ///< The asker wants to store.
  bool has_data;       ///< The asker has the page, as the asker says (`ask`) or home (`allow`).
  bool is_first;       ///< The first arrival of this rank at this barrier.
  bool bears_all;      ///< An arrival with the records of all ranks, which the manager asked for.
  bool collects;       ///< Diffs are collected at this barrier.
  bool as_own;         ///< The page is given away, as it is before anybody has touched it.
  rank_vector vector;  ///< The known vector of the sender, or the has vector of the page.
  rank_vector base;    ///< The message bears only records beyond this.
  page_versions versions;  ///< The latest versions that the sender knows of (`lsw`).
  page_words data;
};

// --- pages ---------------------------------------------------------------------------------------

/// What a rank's threads may do with a page without a fault.
enum class access : small { none, load, store };

enum class fetching : small { nothing, page, diffs };

struct lmw_page {
  rank_vector has;  ///< The intervals of each rank whose modifications are in the copy.
  page_words twin;
  bool has_twin;
  small twin_of;     ///< The closed interval whose modifications the twin tells, or 0.
  bool open;         ///< It may be stored to; the twin tells the modifications so far.
  bool exclusive;    ///< No other rank has a copy; there is no twin, and there are no diffs or
                     ///< notices.
  bool untouched;    ///< No thread of any rank has accessed the page, which is at home.
  small keeper;      ///< The rank to ask for the whole page.
  small writer;      ///< Who stored to it last in the last epoch in which anybody did.
  small thrown;      ///< Own diffs up to this interval are gone.
  bool was_written;  ///< It was stored to in an earlier interval; next time it may stick.
  bool sticks;       ///< It is compared at each close, and not protected.
  bool was_read;     ///< Another rank has asked for it since it was listed last.
  bool must_fetch;   ///< It must be fetched before the next arrival (X3).
  fetching fetch;    ///< What is being fetched.
  bool drops_reply;  ///< What is being fetched is thrown away when it comes (X2).
  small replies_missing;
  /// The intervals of each rank whose diffs have come in this fetch, as in a message.
  rank_vector got_after, got_last;
};

struct lsw_page {
  bool owns;    ///< The token is here.
  bool dirty;   ///< It was stored to in the open interval.
  bool used;    ///< A thread has used it since it came.
  small asked;  ///< Requests on their way, of which there is at most one unless a rule is broken.
  small version;
  small needed;        ///< The latest version that this rank knows of.
  small lost_version;  ///< The version with which the page left within the open interval, or 0.
  optional_small next_owner;  ///< The rank to which the token goes next.
  small_set readers;          ///< The ranks that want a copy.
  small last_asker;           ///< Home knows which rank asked for the token last.
};

struct home_request {
  small asker;
  bool stores;
  bool has_data;  ///< Home believes this only if a rule is broken.
};
struct seq_page {
  access wanted;  ///< What this rank has asked for.
  bool is_allowed, has_data;
  small acknowledgements, acknowledgements_wanted;
  bool unconfirmed;    ///< Home waits to hear that the page was used.
  small_set held_by;   ///< The threads that hold it.
  bool has_postponed;  ///< A message came while the page was held, and waits.
  small postponed_from;
  message postponed;
  // What home knows of the page, and its requests.
  small owner;
  small_set copies;
  bool busy;
  small_queue<home_request, ranks_max> waiting;
};

struct page_state {
  page_words data;
  bool has_copy;
  access may;
  lmw_page lmw;
  lsw_page lsw;
  seq_page seq;
};

// --- ranks, threads ------------------------------------------------------------------------------

struct lock_state {
  bool has_token;
  bool has_asked;
  optional_small holder;                    ///< The thread that has the lock.
  small_queue<small, threads_max> waiting;  ///< This rank's threads that want it.
  optional_small next_rank;                 ///< The rank to which the token goes next.
  rank_vector next_known;                   ///< What that rank knew when it asked.
  small last_asker;                         ///< The manager knows which rank asked last.
};

enum class collection : small { none, validating, done };

struct rank_state {
  rank_vector known;  ///< The intervals that this rank knows of; of its own, those it has closed.
  page_versions versions;  ///< `lsw`: the latest that this rank knows of.
  small epoch;
  small barriers;  ///< How many barriers this rank has left.
  small threads_arrived;
  bool has_arrived;                    ///< The manager has heard of this rank at this barrier.
  small threads_told;                  ///< The number of threads that the manager has heard of.
  rank_vector told_known;              ///< What this rank knew when it arrived last.
  rank_vector barrier_known;           ///< What all ranks knew at the last barrier.
  rank_vector previous_barrier_known;  ///< What all ranks knew at the barrier before that.
  collection collecting;
  rank_vector collected;  ///< Diffs up to here are gone.
  table<page_state, pages> page;
  table<lock_state, locks> lock;
  // What the manager of barriers counts.
  small all_threads_arrived, all_ranks_arrived, ranks_done;
  page_versions arrived_versions;
  table<rank_vector, ranks_max> knows;  ///< What each rank knew when it arrived last.
  rank_vector mentioned;                ///< What any of them knows that has arrived.
  rank_vector covered;                  ///< Of that, what has come with arrivals.
  small_set asked_for_all;
};

enum class waiting_for : small { nothing, page, lock, barrier, arrival };

struct thread_state {
  small rank;
  small position;  ///< The index of its next instruction.
  bool half_done;  ///< It has waited in that instruction, and now ends it.
  waiting_for waits;
  small page;   ///< The page that it waits for, or has waited for last.
  bool stores;  ///< It waits to store to that page, or did.
};

// --- all of it -----------------------------------------------------------------------------------

/// The record of a closed interval. A rank that knows of the interval has its record.
struct interval {
  rank_vector known;  ///< The known vector of its rank when it was closed.
  small_set pages;    ///< The pages that were stored to.
  small_set read;     ///< Of those, the ones that stay shared, for they have readers.
};
struct diff {
  bool exists;
  small_set changed;
  page_words data;
};

struct state {
  table<thread_state, threads_max> thread;
  table<rank_state, ranks_max> rank;
  /// The messages on their way: way[from][to].
  table<table<small_queue<message, messages_max>, ranks_max>, ranks_max> way;
  table<table<interval, intervals_max>, ranks_max> intervals;
  /// The diffs of each interval of each rank: diffs[rank][interval][page].
  table<table<table<diff, pages>, intervals_max>, ranks_max> diffs;
  /// What a sequentially consistent memory would hold.
  table<small, variables> expected;
};
static_assert(std::is_trivially_copyable_v<state>);
static_assert(std::has_unique_object_representations_v<state>);

}  // namespace page_model
