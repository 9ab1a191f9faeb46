// SPDX-License-Identifier: Apache-2.0
// Requests that a thread move, made by fibers other than the thread. A request goes from rank to
// rank until it finds the base (thread_location.hpp says how), or waits on a rank where the base is
// expected. The base is then made ready, and when its turn comes, it leaves instead of running.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fiber/piece.hpp"

namespace sojourn::detail {

class file_writer;
class file_reader;

/// One request.
struct thread_ask {
  ticket_id thread;
  ticket_id answer;  ///< Takes a stay_reason.
  int to;
  std::uint8_t by_hint;  ///< Sent to the rank where the asker found the thread before.
};

/// Requests for threads that have not started here yet, or are on their way.
class ask_list {
 public:
  void keep(const thread_ask& a) { asks_.emplace(a.thread, a); }
  bool empty() const { return asks_.empty(); }
  /// Removes the requests for `thread` from the list, and returns them.
  std::vector<thread_ask> take(ticket_id thread);
  void save(file_writer& to) const;
  void load(file_reader& from);

 private:
  std::unordered_multimap<ticket_id, thread_ask> asks_;
};
extern ask_list kept_asks;

/// Calls `then` with each request kept for `thread`, and keeps them no longer.
template <class Then>
void with_kept(ticket_id thread, Then then) {
  if (kept_asks.empty()) [[likely]]
    return;
  for (const thread_ask& a : kept_asks.take(thread)) then(a);
}

void attach_thread_asks();

/// Handles a request that has reached this rank, whether the base is here or not.
void handle(const thread_ask& a);
/// Handles the kept requests for a thread later, when the piece that runs now has left its stack.
void handle_kept_soon(ticket_id thread);
/// Passes the requests kept for a thread on to where it is now.
void ask_on(ticket_id thread);
/// Hands a request to the thread's home, which may be this rank.
void ask_home(const thread_ask& a);
/// Answers a request: the thread has moved as it asks.
void answer_moved(const thread_ask& a);

/// Makes the request that `thread` move to `to`, and waits for the answer. Suspends. Throws
/// thread_error.
void migrate_base(ticket_id thread, int to);

/// To be called on the scheduler's stack when the turn of a ready piece has come that was asked to
/// move. Returns false when the piece runs here after all.
bool base_departs_as_asked(piece* p);

}  // namespace sojourn::detail
