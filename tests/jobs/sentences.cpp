// SPDX-License-Identifier: Apache-2.0
// What is said to programs that misuse the runtime, sentence by sentence. Without an argument each
// mistake throws, and is caught; with one it is made alone: before run(), or in a job that it ends.
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory_resource>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "check.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

int last() { return rank_count() - 1; }

/// `mistake` throws an E that says `sentence`.
template <class E, class F>
void says(const std::string& sentence, F mistake) {
  try {
    mistake();
    check::fail(sentence.c_str(), 0, "is said", "nothing was thrown");
  } catch (const E& e) {
    if (std::string(e.what()).find(sentence) == std::string::npos) {
      check::fail(sentence.c_str(), 0, "is said", e.what());
    }
  }
}

// ---- Mistakes that throw --------------------------------------------------------------------

struct cell {
  int value = 0;
  int add(int more) { return value += more; }
};
void nothing() {}
int twice(int n) { return 2 * n; }

void ranks_that_are_not_there() {
  const std::string ranks = ": this job has ranks 0 to " + std::to_string(last());
  says<error>("there is no rank 2000" + ranks, [] { (void)rpc(2000, nothing); });
  says<error>("there is no rank -1" + ranks, [] { rpc_ff(-1, nothing); });
  says<error>("there is no rank 2000 to migrate to" + ranks, [] { migrate_to(2000); });
  says<error>("there is no rank -1 to migrate to" + ranks, [] { migrate(thread(), -1); });
  says<error>("broadcast: there is no rank 2000", [] { broadcast(1, 2000); });
  says<error>("gather: there is no rank 2000", [] { gather(1, 2000); });
}

void results_that_are_gone() {
  const char* gone =
      "future: there is no result to wait for (it was moved from, or get() was called before)";
  auto once = rpc(last(), twice, 4);
  CHECK_EQUAL(once.get(), 8);
  says<error>(gone, [&] { once.get(); });
  says<error>(gone, [] { future<int>().wait(); });
}

void counts_that_are_none() {
  says<error>("a sojourn::semaphore cannot count -1: a count cannot be negative",
              [] { semaphore(-1); });
  says<error>("a sojourn::latch cannot count -3: a count cannot be negative", [] { latch(-3); });
  latch two(2);
  says<error>("a sojourn::latch cannot count down by 3: that is more than is left",
              [&] { two.count_down(3); });
  says<error>("the grain of a parallel loop is the length of its shortest runs, 1 or more",
              [] { par_for(0, 3, [](int) {}, 0); });
  says<error>("a bundle cannot have 1 bytes: give a size from ",
              [] { aggregated scope({.bytes = 1}); });
}

mutex guard;

void mutexes_of_others() {
  says<error>("that no fiber holds: only the fiber that locked it may unlock it",
              [] { guard.unlock(); });
  std::lock_guard holds(guard);
  says<error>("that it holds already, and would wait for itself: unlock it first",
              [] { guard.lock(); });
  says<error>("that another fiber holds: only the fiber that locked it may unlock it",
              [] { rpc(rank_me(), [] { guard.unlock(); }).get(); });
  condition_variable changed;
  std::unique_lock<mutex> lock;
  says<error>("waits in a sojourn::condition_variable with a lock that does not hold its mutex",
              [&] { changed.wait(lock); });
}

struct grows {
  std::string text;  // without it, it would travel as its bytes
  mutable int saved = 0;
  template <class Archive>
  void save(Archive& ar) const {
    ar(std::string(static_cast<std::size_t>(10 + saved), 'x'));
    ++saved;
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(text);
  }
};
struct shrinks {
  std::string text;
  mutable int saved = 0;
  template <class Archive>
  void save(Archive& ar) const {
    ar(std::string(static_cast<std::size_t>(40 - 20 * saved), 'x'));
    ++saved;
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(text);
  }
};
struct reads_less {
  std::string text;
  template <class Archive>
  void save(Archive& ar) const {
    ar(1, 2);
  }
  template <class Archive>
  void load(Archive& ar) {
    int first;
    ar(first);
  }
};
/// Throws when it is copied, and so leaves a variant without a value.
struct thorny {
  thorny() = default;
  thorny(const thorny&) { throw std::bad_alloc(); }
  thorny& operator=(const thorny&) { throw std::bad_alloc(); }
  template <class Archive>
  void serialize(Archive&) {}
};
using choice = std::variant<std::string, thorny>;

choice without_a_value() {
  choice c = std::string("x");
  try {
    const thorny t;
    c.emplace<thorny>(t);
  } catch (const std::bad_alloc&) {
  }
  return c;
}

void values_that_cannot_be_marshalled() {
  says<error>("a value cannot be marshalled: its `save` writes more the second time",
              [] { rpc(last(), [](const grows&) {}, grows()).get(); });
  says<error>("a value cannot be marshalled: its `save` writes less the second time",
              [] { rpc(last(), [](const shrinks&) {}, shrinks()).get(); });
  says<error>("a value cannot be marshalled: it contains a variant without a value",
              [] { rpc(last(), [](const choice&) {}, without_a_value()).get(); });
  // The message has room for this much.
  says<error>("cannot marshal a result: a value cannot b...",
              [] { (void)rpc(last(), [] { return grows(); }).get(); });
  says<malformed_message>("`load` of a user's type reads something else than its `save` wrote", [] {
    rpc(last(), [](const std::vector<reads_less>&) {}, std::vector<reads_less>(3)).get();
  });
}

void threads_that_are_none() {
  says<error>("only a thread can have a name, and the caller is not one: start it with spawn",
              [] { name_this_thread("x"); });
  says<error>("set_affinity: the caller is not a thread: start it with spawn",
              [] { set_affinity(affinity()); });
  says<error>("thread_heap: the caller is not a thread: start it with spawn",
              [] { thread_heap(); });
  says<thread_error>("this thread object names no thread", [] { thread().join(); });
  says<thread_error>("this thread object names no thread", [] { migrate(thread(), 0); });
  auto ended = spawn_on(last(), nothing);
  ended.join();
  const char* unknown = "there is no such thread: it was joined, has ended after detach";
  says<thread_error>(unknown, [&] { ended.join(); });
  says<thread_error>(unknown, [&] { migrate(ended, 0); });
  spawn([] {
    says<error>("a thread joins itself, and would wait for ever", [] { self().join(); });
    if (rank_count() == 1) return;
    activate([] {
      migrate_to(rank_me() == 0 ? 1 : 0);
      says<error>(
          "the thread's heap and affinity are on the rank of its oldest frames, and this activation"
          " of it runs on another rank",
          [] { set_affinity(affinity()); });
    });
  }).join();
}

void threads_that_stay() {
  if (rank_count() == 1) return;
  const rank_t there = rank_me() == 0 ? 1 : 0;
  const std::string stays = "the thread does not move to rank " + std::to_string(there) + ": ";
  static bool done;
  done = false;
  auto pinned = spawn(thread_options{.pinned = true}, [] {
    while (!done) yield();
  });
  says<thread_error>(stays + "it was started with thread_options::pinned",
                     [&] { migrate(pinned, there); });
  auto holds = spawn([] {
    std::lock_guard lock(guard);
    while (!done) yield();
  });
  yield();
  says<thread_error>(stays + "a mutex is held", [&] { migrate(holds, there); });
  auto catches = spawn([] {
    try {
      throw 1;
    } catch (int) {
      while (!done) yield();
    }
  });
  yield();
  says<thread_error>(stays + "an exception is in flight", [&] { migrate(catches, there); });
  auto keeps = spawn([] {
    stay here;
    while (!done) yield();
  });
  yield();
  says<thread_error>(stays + "a `stay` or an open finish holds a frame",
                     [&] { migrate(keeps, there); });
  done = true;
  for (thread t : {pinned, holds, catches, keeps}) t.join();
}

void a_second_joiner() {
  static bool done;
  done = false;
  auto waits = spawn([] {
    while (!done) yield();
  });
  auto joiner = fork([](thread t) { t.join(); }, waits);
  says<error>("the thread is already being joined by another fiber: only one fiber may join it",
              [&] { waits.join(); });
  done = true;
  joiner.get();
}

void replies_that_are_too_many() {
  says<continuation_error>("which has already replied or was moved from", [] {
    call_cc([](continuation<int> c) {
      c(1);
      c(2);
    });
  });
  says<continuation_error>(
      "was destroyed without a reply, so whoever waits for the answer would wait for ever",
      [] { rpc_cc(last(), [](continuation<int>) {}).get(); });
}

void checkpoints_that_are_none() {
  says<error>("this job was not restored: call restored() first to find out",
              [] { restored_root<int>(); });
  says<error>("no file can have a name of 0 characters", [] { checkpoint(""); });
  says<error>("no file can have a name of 5000 characters",
              [] { checkpoint(std::string(5000, 'x')); });
  says<checkpoint_error>(
      "checkpoint() must be called by main on every rank, not by a thread or a call",
      [] { spawn([] { checkpoint("x"); }).join(); });
}

/// Functions that other ranks cannot find.
void functions_that_are_none() {
  int (*null)(int) = nullptr;
  says<error>("is not part of this program, so other ranks cannot call it",
              [&] { (void)rpc(0, null, 1); });
}

int all_that_throw() {
  using check::claim;
  claim("ranks that are not there", ranks_that_are_not_there);
  claim("results that are gone", results_that_are_gone);
  claim("counts that are none", counts_that_are_none);
  claim("mutexes of others", mutexes_of_others);
  claim("values that cannot be marshalled", values_that_cannot_be_marshalled);
  claim("threads that are none", threads_that_are_none);
  claim("threads that stay", threads_that_stay);
  claim("a second joiner", a_second_joiner);
  claim("replies that are too many", replies_that_are_too_many);
  claim("functions that are none", functions_that_are_none);
  claim("checkpoints that are none", checkpoints_that_are_none);
  return check::verdict();
}

// ---- Mistakes that end the job --------------------------------------------------------------

const global_ptr<cell> none;

/// Also before run(), and after it.
const std::map<std::string, std::function<void()>> mistakes = {
    {"make", [] { (void)make<cell>(0); }},
    {"rpc", [] { rpc(0, nothing).get(); }},
    {"rpc_ff", [] { rpc_ff(0, nothing); }},
    {"spawn", [] { spawn(nothing).join(); }},
    {"access", [] { none.call<&cell::add>(1); }},
    {"barrier", [] { barrier(); }},
    {"reduce", [] { (void)reduce(1, [](int a, int b) { return a + b; }); }},
    {"broadcast", [] { (void)broadcast(1, 0); }},
    {"gather", [] { (void)gather(1, 0); }},
    {"yield", [] { yield(); }},
    {"sleep", [] { sleep_for(1ms); }},
    {"finish", [] { finish([] {}); }},
    {"wait", [] { latch(1).wait(); }},
};

int ends(const std::string& what) {
  if (what == "sizes") {
    if (rank_me() == 0) return broadcast(0, 0);
    return static_cast<int>(broadcast(0L, 0));
  }
  if (what == "at_once") {  // two fibers are in a collective operation
    auto child = fork([] { barrier(); });
    if (rank_me() == 0) barrier();
    child.get();
  }
  if (what == "order") {
    if (rank_me() == 0) barrier();
    return broadcast(0, 0);
  }
  if (what == "order_under_way") {
    if (rank_me() == 0) barrier_async().get();
    return reduce_async(0, [](int a, int b) { return a + b; }).get();
  }
  if (what == "detached") spawn([] { throw std::runtime_error("nobody hears it"); }).detach();
  if (what == "detached_other") spawn([] { throw 7; }).detach();
  if (what == "one_way_other") rpc_ff(rank_me(), [] { throw 7; });
  if (what == "two_readers") {
    auto result = make_continuation<int>();
    auto& f = result.second;
    auto reader = fork([&] { f.wait(); });
    f.wait();
  }
  sleep_for(1s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string when = argc > 2 ? argv[2] : "";
  auto make_it = [&] {
    try {
      mistakes.at(what)();
    } catch (const error& e) {
      std::printf("caught: %s\n", e.what());
    }
  };
  if (when == "before") make_it();
  int status = run(argc, argv, [&] {
    if (what.empty()) return all_that_throw();
    return when.empty() ? ends(what) : 0;
  });
  if (when == "after") make_it();
  return status;
}
