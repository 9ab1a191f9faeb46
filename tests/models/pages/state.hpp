// SPDX-License-Identifier: Apache-2.0
// What there is between two steps of a program: its threads, what each rank has, and the messages
// that are on their way.
#pragma once

#include <type_traits>

#include "program.hpp"
#include "small.hpp"

namespace page_model {

constexpr int intervals_max = 24;  // of a rank
constexpr int messages_max = 8;    // on their way from one rank to another

using page_words = table<small, words>;
using page_versions = table<small, pages>;

/// The index of an interval of each rank.
using rank_vector = table<small, ranks_max>;

/// Makes each element at least that of `least`.
inline void raise(rank_vector& vector, const rank_vector& least) {
  for (int q = 0; q < ranks_max; ++q) vector[q] = std::max(vector[q], least[q]);
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
  thread_move,
  // `lmw`
  collection_done,
  collection_go,
  page_request,
  page_reply,
  diff_request,
  diff_reply,
  // `lsw`
  own_request,
  own_forward,
  own_grant,
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
  small epoch;         ///< The sender's.
  small about;         ///< The page, the lock, or, of `thread_move`, the thread.
  small asker;         ///< The rank that the answer goes to.
  small count;         ///< `arrival`: new threads. `allow`: acknowledgements to wait for.
  small after, last;   ///< Diffs of the intervals behind `after` and up to `last`.
  small version;       ///< `lsw`: of the page in the message.
  bool stores;         ///< The asker wants to store.
  bool has_data;       ///< The asker has the page's data, as it says (`ask`) or as home does.
  bool is_first;       ///< `arrival`: the rank's first at this barrier.
  bool collects;       ///< `departure`: a collection begins.
  bool as_own;         ///< `page_reply`: the page is the receiver's from now on.
  rank_vector vector;  ///< What the sender knows; of a page, what the copy has.
  rank_vector base;    ///< Records up to here are not in the message: the receiver must know them.
  page_versions versions;  ///< `lsw`: the versions that the sender knows of.
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
  bool open;         ///< Stored to in the open interval, whose modifications the twin tells.
  bool exclusive;    ///< No other rank has a copy; there are no twins, diffs and notices.
  bool untouched;    ///< At home: no thread of any rank has accessed it.
  small keeper;      ///< The rank to ask for the whole page.
  small thrown;      ///< The rank's own diffs up to this interval are gone.
  bool was_written;  ///< Stored to in an earlier interval, so that it may stick.
  bool sticks;       ///< It is not protected at closes but compared.
  bool must_fetch;   ///< Before the next arrival (X3).
  fetching fetch;    ///< What is on its way.
  bool drops_reply;  ///< What is on its way is not used when it comes (X2).
  small replies_missing;
  rank_vector got_after, got_last;  ///< The intervals whose diffs came in this fetch.
};

struct lsw_page {
  bool owns;    ///< This rank has the token.
  bool dirty;   ///< Stored to in the open interval.
  bool used;    ///< Since it came.
  small asked;  ///< How many requests of this rank are on their way: one, if the rules are kept.
  small version;
  small needed;        ///< The latest version that this rank knows of.
  small lost_version;  ///< The version with which the page left within the open interval, or 0.
  optional_small next_owner;  ///< The rank to which the token goes next.
  small_set readers;          ///< The ranks that want a copy.
  small last_asker;           ///< At home: the rank that asked for the token last.
};

struct home_request {
  small asker;
  bool stores;
  bool has_data;  ///< As the asker said; the rules are not to believe it.
};
struct seq_page {
  access wanted;  ///< What this rank has asked for.
  bool is_allowed, has_data;
  small acknowledgements, acknowledgements_wanted;
  bool unconfirmed;   ///< Home waits to hear that the page was used.
  small_set held_by;  ///< The threads that hold it.
  bool has_postponed;
  small postponed_from;
  message postponed;  ///< What came while the page was held.
  // At home.
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
  optional_small next_rank;                 ///< The rank to which the token goes next …
  rank_vector next_known;                   ///< … and what that knew when it asked.
  small last_asker;                         ///< At the manager: the rank that asked last.
};

enum class collection : small { none, validating, done };

struct rank_state {
  rank_vector known;  ///< The intervals that this rank knows of; of its own, those it has closed.
  page_versions versions;  ///< `lsw`: the latest that this rank knows of.
  small epoch;
  small barriers;  ///< That this rank has left.
  small threads_arrived;
  bool has_arrived;                    ///< The manager has heard of this rank at this barrier …
  small threads_told;                  ///< … with so many threads.
  rank_vector barrier_known;           ///< What all knew at the last barrier …
  rank_vector previous_barrier_known;  ///< … and at the one before.
  collection collecting;
  rank_vector collected;  ///< Diffs up to here are gone.
  table<page_state, pages> page;
  table<lock_state, locks> lock;
  // At the manager of barriers.
  small all_threads_arrived, all_ranks_arrived, ranks_done;
  rank_vector arrived_known;
  page_versions arrived_versions;
};

enum class waiting_for : small { nothing, page, lock, barrier, arrival };

struct thread_state {
  small rank;
  small position;  ///< In its program.
  bool half_done;  ///< It waited in this instruction, and goes on behind that.
  waiting_for waits;
  small page;   ///< That it waits for, or waited for last …
  bool stores;  ///< … to store to it.
};

// --- all of it -----------------------------------------------------------------------------------

/// The record of a closed interval. Whoever knows of the interval has it.
struct interval {
  rank_vector known;  ///< What its rank knew when it closed it.
  small_set pages;    ///< That were stored to.
};
struct diff {
  bool exists;
  small_set changed;
  page_words data;
};

struct state {
  table<thread_state, threads_max> thread;
  table<rank_state, ranks_max> rank;
  /// way[from][to]: messages arrive in the order in which they were sent.
  table<table<small_queue<message, messages_max>, ranks_max>, ranks_max> way;
  table<table<interval, intervals_max>, ranks_max> intervals;
  /// Those that each rank has made of its own intervals.
  table<table<table<diff, pages>, intervals_max>, ranks_max> diffs;
  /// What a sequentially consistent memory would hold.
  table<small, variables> expected;
};
static_assert(std::is_trivially_copyable_v<state>);
static_assert(std::has_unique_object_representations_v<state>);

}  // namespace page_model
