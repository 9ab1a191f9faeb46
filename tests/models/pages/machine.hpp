// SPDX-License-Identifier: Apache-2.0
// A state and the steps that lead from it to others: what the protocols share. A step is an
// instruction of a thread, or the delivery of a message; both happen at once. Any thread may run
// next, and a message may come between any two instructions, which is more than a rank with one
// processor can do. Messages from one rank to another keep their order, and there is no other.
//
// The parts that stand in files of their own: locks.cpp, barriers.cpp, and what each protocol does,
// in lmw.hpp, lsw.hpp and seq.hpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program.hpp"
#include "state.hpp"

namespace page_model {

/// Something that must not be was seen: a wrong value, a deadlock, a message that does not fit …
struct failure {
  std::string what;
};
[[noreturn]] void fail(const char* what);
inline void check(bool is_right, const char* what) {
  if (!is_right) fail(what);
}

struct action {
  enum class kind { run, run_unlock_for_rank, deliver };
  kind what;
  int thread;    ///< That runs. `run_unlock_for_rank`: it hands a lock to another rank first.
  int from, to;  ///< Whose message is delivered.
};

class machine {
 public:
  struct counts {
    unsigned long messages = 0, faults = 0, diffs_made = 0, diffs_applied = 0;
  };

  virtual ~machine() = default;
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  /// What happens without any step: ranks without threads arrive at barriers.
  void start();
  /// What may happen next, in an order that depends on the state alone.
  void list_actions(std::vector<action>& actions) const;
  /// Throws failure.
  void act(const action& a);
  /// That nothing is left to do, called when there is no action. Throws failure.
  void check_end() const;

  const counts& counted() const { return counted_; }

  /// Walks save it and put it back.
  state s{};
  /// Where steps are told, unless null.
  std::string* log = nullptr;

 protected:
  machine(const program& p, std::optional<rule> broken);

  // What a protocol does.

  /// A thread of rank r has faulted on the page, and waits.
  virtual void fault(int r, int page, bool stores) = 0;
  virtual void receive_own(int r, int from, const message& m) = 0;
  /// A thread has loaded from the page or stored to it.
  virtual void used(int, int) {}
  /// An instruction on two pages has the one and faults on the other …
  virtual void hold(int r, int page, int) { used(r, page); }
  /// … and is done.
  virtual void end_hold(int, int, int) {}
  virtual void close_interval(int) {}
  /// Takes in the notices of a message.
  virtual void take_in(int, const message&) {}
  virtual bool may_arrive(int) const { return true; }
  /// Whether the threads may leave the barrier at once. If not, leave_barrier() is called later.
  virtual bool depart(int, const message&) { return true; }

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
  /// A message that tells another rank what rank r knows.
  message make_notices(message_kind what, int r, int about = 0) const;
  /// What a rank sends to itself is received at once.
  void send(int from, int to, message m);
  /// The same, for rank r's request that the page's home serves or forwards.
  void send_home(int r, int page, const message& m) { send(r, home_of(page), m); }

  bool anyone_waits(int r, int page) const;
  bool anyone_waits_to_store(int r, int page) const;
  void wake(int r, int page, bool also_stores);

  /// Tells the manager that threads of rank r have arrived at the barrier, if it is time to.
  void maybe_arrive(int r);
  void leave_barrier(int r);

  /// Appends a line to the log.
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

  // Instructions; those that return a bool say whether the thread is done with it.
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
  void count_arrival(const message& m);
  void receive_departure(int r, const message& m);

  void append(int number) { *log += std::to_string(number); }
  void append(std::string_view text) { *log += text; }

  std::optional<rule> broken_;
  bool has_barriers_;
  int meeting_;
};

/// A machine with the program's protocol, of which one rule may be broken. Keeps a reference to
/// `p`.
std::unique_ptr<machine> make_machine(const program& p, std::optional<rule> broken);

}  // namespace page_model
