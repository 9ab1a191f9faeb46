// SPDX-License-Identifier: Apache-2.0
// A state, and the steps that lead from it to other states. A step is one instruction of a thread
// or the delivery of one message, and nothing else happens meanwhile. Any thread may run next, and
// a message may come between any two instructions, which is more than can happen on a rank with one
// processor. Messages from one rank to another arrive in the order in which they were sent;
// messages of different pairs of ranks arrive in any order.
//
// This class has what all protocols share, in machine.cpp, locks.cpp and barriers.cpp. What each
// protocol does is in lmw.hpp, lsw.hpp and seq.hpp. Throughout, r and q are ranks, t is a thread, g
// a page, w a word of it, and i an interval.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program.hpp"
#include "state.hpp"

namespace page_model {

/// Thrown when something was seen that must not be: a wrong value, a deadlock, a message that does
/// not fit the state of its receiver.
struct failure {
  std::string what;
};
[[noreturn]] void fail(const char* what);
inline void check(bool is_right, const char* what) {
  if (!is_right) fail(what);
}

struct action {
  enum class kind {
    run,
    /// The thread unlocks, and hands the lock to another rank although threads of its own wait.
    run_unlock_for_rank,
    deliver
  };
  kind what;
  int thread;    ///< The thread that runs.
  int from, to;  ///< The ranks whose next message is delivered.
};

class machine {
 public:
  struct counts {
    unsigned long messages = 0, faults = 0, diffs_made = 0, diffs_applied = 0;
  };

  virtual ~machine() = default;
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  /// Does what needs no step: ranks without threads arrive at the first barrier.
  void start();
  /// Replaces `actions` by the steps that may come next. Their order depends on the state alone.
  void list_actions(std::vector<action>& actions) const;
  /// Takes a step. Throws failure.
  void act(const action& a);
  /// Checks that all threads are done and no message is left. Requires that no step may come next.
  /// Throws failure.
  void check_end() const;

  const counts& counted() const { return counted_; }

  /// A search saves it and puts it back.
  state s{};
  /// Steps are told here unless it is null.
  std::string* log = nullptr;

 protected:
  machine(const program& p, std::optional<rule> broken);

  // What a protocol does. Where it does nothing, it does not override.

  /// Called when a thread of rank r waits because it may not access the page.
  virtual void fault(int r, int page, bool stores) = 0;
  /// Receives a message of a kind that the protocols do not share.
  virtual void receive_protocol_message(int r, int from, const message& m) = 0;
  /// Called when a thread of rank r has loaded from the page or stored to it.
  virtual void used(int /*r*/, int /*page*/) {}
  /// Called when thread t may access the page, but is about to fault on a second one, which its
  /// instruction needs, too.
  virtual void hold(int r, int page, int /*t*/) { used(r, page); }
  /// Called when that instruction is done.
  virtual void end_hold(int /*r*/, int /*page*/, int /*t*/) {}
  /// Called where rank r releases.
  virtual void close_interval(int /*r*/) {}
  /// Called where rank r acquires, with the message that bears the notices.
  virtual void take_in(int /*r*/, const message& /*m*/) {}
  /// Whether rank r may arrive at a barrier at which all of its threads are.
  virtual bool may_arrive(int /*r*/) const { return true; }
  /// Called when rank r hears that all have arrived. Returns whether its threads may go on at once;
  /// if not, the protocol calls leave_barrier() later.
  virtual bool depart(int /*r*/, const message& /*m*/) { return true; }

  // What they share.

  bool keeps(rule r) const { return broken_ != r; }
  page_state& page_at(int r, int page) { return s.rank[r].page[page]; }
  const page_state& page_at(int r, int page) const { return s.rank[r].page[page]; }
  int home_of(int page) const { return page % p_.ranks; }

  static message make(message_kind what, int about = 0) {
    message m{};
    m.what = what;
    m.about = to_small(about);
    return m;
  }
  /// A message with the notices of all that rank r knows.
  message make_notices(message_kind what, int r, int about = 0) const;
  /// A message that a rank sends to itself is received at once.
  void send(int from, int to, message m);
  /// Sends to the home of the page.
  void send_home(int r, int page, const message& m) { send(r, home_of(page), m); }

  bool anyone_waits(int r, int page) const;
  bool anyone_waits_to_store(int r, int page) const;
  /// Lets the threads of rank r go on that wait to load from the page, and if `also_stores` those
  /// that wait to store to it.
  void wake(int r, int page, bool also_stores);

  /// Tells the manager of barriers how many threads of rank r have arrived, if all that are there
  /// have and the manager does not know it yet.
  void maybe_arrive(int r);
  /// Lets the threads of rank r go on that have arrived.
  void leave_barrier(int r);

  /// Appends a line to the log, if there is one.
  template <class... Parts>
  void note(const Parts&... parts) {
    if (log == nullptr) return;
    (append(parts), ...);
    log->push_back('\n');
  }

  const program& p_;
  counts counted_;

 private:
  instruction next_of(int t) const;
  bool deliverable(int to, const message& m) const;
  void receive(int r, int from, const message& m);
  bool waits_for(const thread_state& t, int r, int page) const;

  // Instructions. Those that return a bool say whether they are done; if not, the thread waits.
  void run(int t, bool rank_first);
  bool has_access(int t, int page, access wanted);
  bool load(int t, int variable);
  bool store(int t, const instruction& i);
  bool increment_two(int t, int one, int other);
  bool move(int t, int to);
  void check_value(int r, int variable);
  void set(int r, int variable, int value);

  bool lock(int t, int number);
  bool unlock(int t, int number, bool rank_first);
  void take_lock(int t, int number);
  void ask_for_lock(int r, int number);
  void hand_on_lock(int r, int number);
  void grant_lock(int r, int number);
  void receive_lock_message(int r, const message& m);

  bool arrive(int t);
  int threads_here(int r) const;
  void arrive_with_all(int r);
  void receive_arrival(int from, const message& m);
  bool asks_for_more();
  void depart_when_all_are_here();
  void send_departures();
  int parent_of(int r) const { return p_.departs_in_chain && r != 0 ? r - 1 : 0; }
  void receive_departure(int r, const message& m);

  void append(int number) { *log += std::to_string(number); }
  void append(std::string_view text) { *log += text; }

  std::optional<rule> broken_;
  bool has_barriers_;
  int meeting_;
};

/// A machine with the protocol of the program, in which one rule may be broken. The program must
/// outlive it.
std::unique_ptr<machine> make_machine(const program& p, std::optional<rule> broken);

}  // namespace page_model
