// SPDX-License-Identifier: Apache-2.0
// A job whose answer does not depend on when it was ended and restored: checkpoint.sh ends it, and
// compares. checkpoint PATH SCENARIO, where a restored job is given the same words.
#include <sys/resource.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

const char* path;

rank_t last() { return rank_count() - 1; }
rank_t next() { return (rank_me() + 1) % rank_count(); }

/// What threads leave behind; order does not matter.
struct board {
  long notes = 0;
  long sum = 0;
  long waiting = 0;
  void note(long value) {
    ++notes;
    sum += value;
  }
  void wait_begins() { ++waiting; }
  long waiters() const { return waiting; }
  long total() const { return sum; }
};

/// Threads of any rank wait here until main lets them.
struct gate {
  semaphore open{0};
  mutex one_at_a_time;
  long passed = 0;

  void pass() { open.acquire(); }
  void pass_holding() {
    std::lock_guard lock(one_at_a_time);
    open.acquire();
    ++passed;
  }
  void let(std::ptrdiff_t n) { open.release(n); }
};

struct link {
  long value;
  global_ptr<link> rest;
  long get() const { return value; }
  global_ptr<link> tail() const { return rest; }
};

constexpr int threads_max = 64;
/// What each rank's main finds its threads and objects by.
struct tally {
  long n = 0;
  long add(long more) { return n += more; }
};

struct roots {
  global_ptr<board> results;
  std::array<global_ptr<gate>, 8> gates;
  global_ptr<link> list;
  global_ptr<tally> fetched;
  replicated<link> plain_versions;
  replicated<std::map<int, std::string>> versions;
  std::array<thread, threads_max> threads = {};
  int thread_count = 0;
};
void add(roots& r, thread t) { r.threads.at(static_cast<std::size_t>(r.thread_count++)) = t; }

void wait_at(const roots& r, rank_t where) {
  r.results.call<&board::wait_begins>();
  r.gates[static_cast<std::size_t>(where)].call<&gate::pass>();
}

/// Locals of every kind, under a recursion, around a wait.
long deep(const roots& r, int depth, double scale) {
  std::array<long, 40> numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<long>(i) * depth;
  // The compiler could fill it after the wait. Until then it would hold whatever lay there before,
  // perhaps an address of the runtime's, of which the program would be warned.
  asm volatile("" : : "r"(numbers.data()) : "memory");
  double before = scale * 1.5;
  long below = 0;
  if (depth > 0) {
    below = deep(r, depth - 1, scale + 1);
  } else {
    wait_at(r, rank_me());
  }
  long sum = below + static_cast<long>(before);
  for (long n : numbers) sum += n;
  return sum;
}

void has_locals(roots r, int depth) { r.results.call<&board::note>(deep(r, depth, depth)); }

/// Its containers are on the heap that goes with it, in extents of several ranks.
void has_heap(roots r, rank_t to) {
  std::pmr::map<int, std::pmr::string> words(thread_heap());
  for (int i = 0; i < 300; ++i) {
    if (i == 150) migrate(self(), to);
    // No temporary in the private heap: checked mode may find its address when the frame moves.
    words[i].assign(static_cast<std::size_t>(i), 'x').append(std::to_string(i));
  }
  std::pmr::vector<long> large(100'000, 7L, thread_heap());
  large[99'999] = 8;
  wait_at(r, rank_me());
  long sum = 0;
  for (const auto& [key, word] : words) sum += key + static_cast<long>(word.size());
  for (long n : large) sum += n;
  words[1000] = "and more";
  r.results.call<&board::note>(sum + static_cast<long>(words.size()));
}

void sleeps(roots r, long value) {
  r.results.call<&board::wait_begins>();
  sleep_for(300ms);
  r.results.call<&board::note>(value);
}

void joins(roots r, thread other) {
  r.results.call<&board::wait_begins>();
  long caught = 0;
  try {
    other.join();
  } catch (const std::out_of_range&) {
    caught = 1;
  }
  r.results.call<&board::note>(1000 + caught);
}

void throws_after(roots r) {
  wait_at(r, last());
  throw std::out_of_range("it is what it is for");
}

/// Waits for a future that it took along to another rank.
void takes_a_future_along(roots r, rank_t to) {
  future<long> answer = rpc(
      last(),
      [](roots all) {
        wait_at(all, last());
        return 77L;
      },
      r);
  migrate(self(), to);
  r.results.call<&board::wait_begins>();
  r.results.call<&board::note>(answer.get());
}

future<long> answer_of(rank_t rank, roots r, long answer) {
  return rpc(
      rank,
      [](roots all, long given) {
        wait_at(all, rank_me());
        return given;
      },
      r, answer);
}

void waits_for_the_first(roots r) {
  future<long> a = answer_of(last(), r, 30);
  future<long> b = answer_of(0, r, 31);
  r.results.call<&board::wait_begins>();
  (void)touch_any(a, b);
  r.results.call<&board::note>(a.get() + b.get());
}
void waits_for_both(roots r) {
  future<long> a = answer_of(last(), r, 32);
  future<long> b = answer_of(0, r, 33);
  r.results.call<&board::wait_begins>();
  touch(a, b);
  r.results.call<&board::note>(a.get() + b.get());
}
void waits_with_a_limit(roots r) {
  future<long> a = answer_of(last(), r, 34);
  r.results.call<&board::wait_begins>();
  r.results.call<&board::note>(a.wait_for(1000h) ? a.get() : -1000000);
}

long away(roots r) {
  migrate_to(last());
  long here = rank_me();
  wait_at(r, rank_me());
  return here + 5;
}

/// Its base waits here for an activation that is elsewhere.
void has_an_activation_elsewhere(roots r) {
  long got = activate(away, r);
  r.results.call<&board::note>(got);
}

void rounds_up(roots r) {
  std::fesetround(FE_UPWARD);
  wait_at(r, rank_me());
  r.results.call<&board::note>(std::fegetround() == FE_UPWARD ? 3 : -1000000);
}

void waits_for_a_mutex(roots r, rank_t where) {
  r.results.call<&board::wait_begins>();
  r.gates[static_cast<std::size_t>(where)].call<&gate::pass_holding>();
  r.results.call<&board::note>(11);
}

void waits_in_own_frames(roots r) {
  mutex mine;
  condition_variable never;
  std::unique_lock lock(mine);
  r.results.call<&board::wait_begins>();
  if (never.wait_for(lock, 300ms) == std::cv_status::timeout) r.results.call<&board::note>(13);
}

void waits_to_stop(roots r, stop_token token) {
  r.results.call<&board::wait_begins>();
  while (!token.stop_requested()) yield();
  r.results.call<&board::note>(17);
}
void stops_it(roots r, thread::id_type) {
  stop_source source;
  thread other = spawn_on(next(), waits_to_stop, r, source.token());
  wait_at(r, rank_me());
  source.request_stop();
  other.join();
}

void walks(roots r) {
  wait_at(r, rank_me());
  long sum = 0;
  for (auto at = r.list; at; at = at.call<&link::tail>()) sum += at.call<&link::get>();
  r.results.call<&board::note>(sum);
}

/// Forks that have blocked, and frames that refer to older ones.
void has_forks(roots r) {
  auto here = r.gates[static_cast<std::size_t>(rank_me())];
  future<void> one = here.async<&gate::pass>();
  future<void> two = here.async<&gate::pass>();
  long sum = 20;
  activate([&] {
    future<void> three = here.async<&gate::pass>();
    wait_at(r, rank_me());
    three.get();
    sum += 3;
  });
  one.get();
  two.get();
  r.results.call<&board::note>(sum);
}

struct unregistered {};
/// Futures that have what their children threw: objects of the process that made the checkpoint.
void has_exceptions(roots r) {
  auto brief = fork([]() -> int { throw std::out_of_range("x"); });
  auto wordy = fork([]() -> int { throw std::out_of_range(std::string(200, 'x')); });
  auto unknown = fork([]() -> int { throw unregistered(); });
  wait_at(r, rank_me());
  long sum = 0;
  for (future<int>* child : {&brief, &wordy, &unknown}) {
    try {
      sum += child->get();
    } catch (const std::out_of_range& e) {
      sum += static_cast<long>(std::strlen(e.what()));
    } catch (...) {  // of a type that a restored job cannot know
      sum += 1000;
    }
  }
  r.results.call<&board::note>(sum);
}

/// Main makes the object again before this goes on.
void finds_the_object_of_main(roots r, dist_id<long> of_main) {
  const team all = team::world();
  const team again = all;
  wait_at(r, rank_me());
  r.results.call<&board::note>(of_main.here() + (again == team::world() ? 1 : -1000000));
}

/// Its own rank's version is dropped, and the writer's comes back.
void reads_what_is_replicated(roots r) {
  const auto length = [](const std::map<int, std::string>& m) {
    long sum = 0;
    for (const auto& [key, text] : m) sum += key + static_cast<long>(text.size());
    return sum;
  };
  const long before = r.versions.read(length) + r.plain_versions.read<&link::get>();
  wait_at(r, rank_me());
  const long after = r.versions.read(length) + r.plain_versions.read<&link::get>();
  r.versions.update([](std::map<int, std::string>& m) { m[1000].append(7, 'y'); });
  r.results.call<&board::note>(before == after && r.versions.read(length) > after ? after
                                                                                  : -1000000);
}

/// It goes home, and is fetched again.
void uses_a_fetched_object(roots r) {
  const long before = r.fetched.call<&tally::add>(via::fetch, 7);
  wait_at(r, rank_me());
  const long after = r.fetched.call<&tally::add>(via::fetch, 1);
  r.results.call<&board::note>(before == 7 && after == 8 ? after : -1000000);
}

roots begin(dist_id<long> of_main) {
  roots r;
  r.fetched = make<tally>(0);
  r.plain_versions = rpc(last(), [] { return make_replicated<link>(link{5, {}}); }).get();
  for (int i = 0; i < 3; ++i) r.plain_versions.update([](link& l) { l.value *= 2; });
  make_replicated<long>(1L).destroy();
  r.versions = make_replicated<std::map<int, std::string>>();
  for (int i = 0; i < 30; ++i)
    r.versions.update([](std::map<int, std::string>& m, int key) { m[key] = "text"; }, i);
  r.results = make<board>(0);
  for (rank_t rank = 0; rank < rank_count(); ++rank) {
    r.gates[static_cast<std::size_t>(rank)] = make<gate>(rank);
  }
  for (int i = 0; i < 50; ++i) r.list = make<link>(i % rank_count(), link{i, r.list});
  // What was freed leaves holes.
  std::vector<global_ptr<link>> holes;
  for (int i = 0; i < 2000; ++i) holes.push_back(make<link>(0, link{i, {}}));
  for (std::size_t i = 0; i < holes.size(); i += 2) destroy(holes[i]);

  for (rank_t rank = 0; rank < rank_count(); ++rank) {
    add(r, spawn_on(rank, has_locals, r, 3 + rank));
    add(r, spawn_on(rank, has_heap, r, (rank + 1) % rank_count()));
    add(r, spawn_on(rank, thread_options{.name = "sleeper"}, sleeps, r, 100L + rank));
    add(r, spawn_on(rank, waits_for_a_mutex, r, last()));
  }
  for (int i = 0; i < 8; ++i) {
    add(r, spawn_on(i % rank_count(), thread_options{.shared_stack = true}, has_locals, r, i));
  }
  thread thrower = spawn_on(0, throws_after, r);
  add(r, spawn_on(last(), joins, r, thrower));
  add(r, spawn_on(last(), takes_a_future_along, r, 0));
  add(r, spawn_on(0, has_an_activation_elsewhere, r));
  add(r, spawn_on(last(), rounds_up, r));
  add(r, spawn_on(0, waits_in_own_frames, r));
  add(r, spawn_on(0, stops_it, r, thread::id_type{0}));
  add(r, spawn_on(last(), walks, r));
  add(r, spawn_on(last(), has_forks, r));
  add(r, spawn_on(last(), has_exceptions, r));
  add(r, spawn_on(0, waits_for_the_first, r));
  add(r, spawn_on(last(), waits_for_both, r));
  add(r, spawn_on(0, waits_with_a_limit, r));
  add(r, spawn_on(0, thread_options{.pinned = true}, finds_the_object_of_main, r, of_main));
  add(r, spawn_on(last(), thread_options{.pinned = true}, reads_what_is_replicated, r));
  add(r, spawn_on(last(), thread_options{.pinned = true}, uses_a_fetched_object, r));
  const int waiters = 4 * rank_count() + 8 + 13 + 8 + 2;
  while (r.results.call<&board::waiters>() < waiters) yield();
  return r;
}

void end(const roots& r) {
  for (rank_t rank = 0; rank < rank_count(); ++rank) {
    r.gates[static_cast<std::size_t>(rank)].call<&gate::let>(200);
  }
  for (int i = 0; i < r.thread_count; ++i) {
    thread t = r.threads[static_cast<std::size_t>(i)];
    t.join();
  }
  // The heap goes on working where it left off.
  for (int i = 0; i < 3000; ++i) (void)make<link>(i % rank_count(), link{i, {}});
  std::printf("answer %ld\n", r.results.call<&board::total>());
}

/// Asked for a root of type T, this rank says that there is none, and why.
template <class T>
bool is_no_root(std::string_view why) {
  try {
    (void)restored_root<T>();
    return false;
  } catch (const error& e) {
    return e.what() == why;
  }
}

/// Every state that a fiber can be saved in, once.
int states() {
  roots r{};
  const dist_object<long> of_main(dist_name{"of main"}, 40L);
  if (restored()) {
    r = restored_root<roots>();
    if (!is_no_root<long>(
            "the root of the checkpoint has a different type than the one asked for")) {
      return 1;
    }
  } else if (rank_me() == 0) {
    r = begin(of_main.id());
  }
  barrier();
  if (!restored()) checkpoint(path, r);
  if (rank_me() == 0) end(r);
  return 0;
}

/// Threads that hop and compute, and a checkpoint every few milliseconds.
void computes(global_ptr<board> results, long seed, int rounds) {
  std::pmr::vector<long> seen(thread_heap());
  auto x = static_cast<unsigned long>(seed);
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < 2000; ++k) x = x * 6364136223846793005u + 1442695040888963407u;
    seen.push_back(static_cast<long>(x >> 40));
    if (i % 3 == 0) migrate(self(), static_cast<rank_t>(x >> 33) % rank_count());
    if (i % 5 == 0) sleep_for(1ms);
    if (i % 7 == 0) results.call<&board::note>(static_cast<long>(x >> 50));
  }
  long sum = 0;
  for (long n : seen) sum += n;
  results.call<&board::note>(sum);
}

int computation() {
  roots r{};
  if (restored()) {
    r = restored_root<roots>();
  } else if (rank_me() == 0) {
    r.results = make<board>(0);
    for (int i = 0; i < 12; ++i) {
      add(r, spawn_on(i % rank_count(), computes, r.results, static_cast<long>(i), 800));
    }
  }
  for (;;) {
    int running = 0;
    for (int i = 0; i < r.thread_count; ++i) {
      running += !r.threads[static_cast<std::size_t>(i)].finished();
    }
    if (reduce(running, std::plus<>()) == 0) break;
    sleep_for(10ms);
    checkpoint(path, r);
  }
  if (rank_me() == 0) {
    for (int i = 0; i < r.thread_count; ++i) r.threads[static_cast<std::size_t>(i)].join();
    std::printf("answer %ld\n", r.results.call<&board::total>());
  }
  return 0;
}

struct bell {
  bool rung = false;
  void ring() { rung = true; }
};
/// One thread after the other, without a wait.
void starts_the_next(global_ptr<bell> until, global_ptr<board> results) {
  if (until.local()->rung) return results.local()->note(1);
  spawn(starts_the_next, until, results).detach();
}

/// Threads that are on their way to their start stand still too: else no end would be in sight.
int never_ending() {
  struct chain {
    global_ptr<bell> until;
    global_ptr<board> results;
  };
  chain c;
  if (restored()) {
    c = restored_root<chain>();
  } else {
    c = {make<bell>(rank_me()), make<board>(rank_me())};
    spawn(starts_the_next, c.until, c.results).detach();
  }
  barrier();
  if (!restored()) checkpoint(path, c);
  c.until.call<&bell::ring>();
  while (c.results.call<&board::total>() == 0) yield();
  long ended = reduce(c.results.call<&board::total>(), std::plus<>());
  if (rank_me() == 0) std::printf("answer %ld\n", ended);
  return 0;
}

/// A call that is still in a bundle when the checkpoint is written (SOJOURN_AGGREGATE=on).
int bundled() {
  struct work {
    global_ptr<board> results;
    global_ptr<gate> open;
    thread caller;
  };
  work w;
  if (restored()) {
    w = restored_root<work>();
  } else {
    w.results = make<board>(rank_me());
    w.open = make<gate>(rank_me());
    w.caller = spawn(
        [](global_ptr<board> results, global_ptr<gate> open) {
          rpc_ff(rank_me(), [](global_ptr<board> to) { to.local()->note(7); }, results);
          open.call<&gate::pass>();
        },
        w.results, w.open);
    yield();  // it calls, and waits
  }
  barrier();
  if (!restored()) checkpoint(path, w);
  w.open.call<&gate::let>(1);
  w.caller.join();
  flush();
  rpc(rank_me(), [] {}).get();  // behind the call
  std::printf("answer %ld\n", w.results.call<&board::total>());
  return 0;
}

// What refuses a checkpoint, each in a job of its own.

checkpoint_refusal why_not() {
  try {
    checkpoint(path);
  } catch (const checkpoint_error& e) {
    if (rank_me() == 0) std::printf("%s\n", e.what());
    return e.why();
  }
  return checkpoint_refusal::none;
}

/// Its vector's elements are in no file.
[[gnu::noinline]] void keeps_private_memory(global_ptr<gate> g) {
  std::vector<long> mine(100, 3);
  g.call<&gate::pass>();
  if (mine[99] != 3) std::printf("lost\n");
}
int warnings() {
  auto g = make<gate>(rank_me());
  thread t = spawn(keeps_private_memory, g);
  yield();
  for (int i = 0; i < 2; ++i) checkpoint(path);
  g.call<&gate::let>(1);
  t.join();
  return 0;
}

/// Waits for a thread that stands still until it has met a barrier.
int waits_too_early() {
  // It has not ended when the checkpoint is written, however long the ranks take to meet.
  thread t =
      restored() ? restored_root<thread>() : spawn([] { sleep_for(std::chrono::seconds(1)); });
  if (!restored()) checkpoint(path, t);
  t.join();
  return 0;
}

mutex of_the_program;

/// Each of them blocks until it is told, so that a checkpoint is asked for meanwhile.
void holds_a_static_mutex(global_ptr<gate> g) {
  std::lock_guard lock(of_the_program);
  g.call<&gate::pass>();
}
void waits_for_a_static_mutex() { std::lock_guard lock(of_the_program); }
void catches(global_ptr<gate> g) {
  try {
    throw 1;
  } catch (int) {
    g.call<&gate::pass>();
  }
}
void has_a_stay(global_ptr<gate> g) {
  stay here;
  g.call<&gate::pass>();
}
void initialises(global_ptr<gate> g) {
  name_this_thread("starter");
  static const bool passed = (g.call<&gate::pass>(), true);
  (void)passed;
}
void has_a_dist_object(global_ptr<gate> g) {
  const dist_object<long> mine(dist_name{"of a thread"}, 1L);
  g.call<&gate::pass>();
}
void has_a_long_result(global_ptr<gate> g) {
  auto unread = rpc(rank_me(), [] { return std::vector<char>(1u << 20); });
  unread.wait();
  g.call<&gate::pass>();
}
team of_all_mains;
bool begun = false;
void is_in_a_barrier() {
  begun = true;
  barrier(of_all_mains);
}
void reads_a_version(global_ptr<gate> g) {
  const auto versions = make_replicated<long>(5L);
  const long read = versions.read([g](const long& value) {
    g.call<&gate::pass>();
    return value;
  });
  if (read != 5) std::printf("another version\n");
  versions.destroy();
}
void is_refused_itself() {
  try {
    checkpoint(path);
  } catch (const checkpoint_error& e) {
    if (e.why() == checkpoint_refusal::not_main) return;
  }
  std::printf("a thread wrote a checkpoint\n");
}

/// What was started runs until it waits.
void let_start() {
  for (int i = 0; i < 20; ++i) yield();
}

int refusals() {
  auto g = make<gate>(rank_me());
  auto expect = [](checkpoint_refusal got, checkpoint_refusal wanted, const char* what) {
    if (got != wanted) std::printf("rank %d: %s: %d\n", rank_me(), what, static_cast<int>(got));
  };
  auto tried = [&](thread t, checkpoint_refusal wanted, const char* what) {
    let_start();
    barrier();
    expect(why_not(), wanted, what);
    g.call<&gate::let>(1);
    if (t) t.join();
    expect(why_not(), checkpoint_refusal::none, "afterwards");
  };
  bool mine = rank_me() == last();
  auto only = [&](auto fn) { return mine ? spawn(fn, g) : thread(); };

  spawn(is_refused_itself).join();
  tried(only(holds_a_static_mutex), checkpoint_refusal::waits_outside, "a static mutex is held");
  g.call<&gate::let>(0);
  tried(only(catches), checkpoint_refusal::handles_exception, "a thread in a catch block");
  tried(only(has_a_stay), checkpoint_refusal::stays, "a thread with a stay");
  tried(only(reads_a_version), checkpoint_refusal::stays, "a thread reads a version");
  tried(only(initialises), checkpoint_refusal::initialises, "a static is being initialised");
  tried(only(has_a_dist_object), checkpoint_refusal::waits_outside, "a thread's dist_object");
  tried(only(has_a_long_result), checkpoint_refusal::waits_outside, "a long result is not read");
  if (rank_count() > 1) {
    of_all_mains = team::world().split(0);
    thread first = mine ? spawn(is_in_a_barrier) : thread();
    // It begins while its main is in the checkpoint already.
    while (!mine && !rpc(last(), [] { return begun; }).get()) yield();
    expect(why_not(), checkpoint_refusal::in_collective, "a thread is in a barrier");
    if (mine) {
      first.join();
    } else {
      barrier(of_all_mains);
    }
    of_all_mains = {};

    std::optional<dist_object<long>> object;
    if (mine) object.emplace(dist_name{"late"}, 1L);
    future<long> late = mine ? object->fetch(0) : future<long>();
    barrier();
    expect(why_not(), checkpoint_refusal::waits_outside, "a dist_object is waited for");
    if (!mine) object.emplace(dist_name{"late"}, 2L);
    if (mine && late.get() != 2) std::printf("rank %d: not the late object\n", rank_me());
    barrier();
  }
  of_the_program.lock();
  thread waiter = spawn(waits_for_a_static_mutex);
  let_start();
  barrier();
  expect(why_not(), checkpoint_refusal::waits_outside, "a static mutex is waited for");
  of_the_program.unlock();
  waiter.join();
  if (mine) g.local()->one_at_a_time.lock();
  expect(why_not(), checkpoint_refusal::part_of_main, "main holds a mutex");
  if (mine) g.local()->one_at_a_time.unlock();
  {
    future<void> forked = mine ? g.async<&gate::pass>() : future<void>();
    expect(why_not(), checkpoint_refusal::part_of_main, "a fork of main");
    g.call<&gate::let>(1);
    if (mine) forked.get();
  }
  static shared::mutex of_all_ranks;
  if (mine) of_all_ranks.lock();
  expect(why_not(), checkpoint_refusal::shared_memory, "a shared mutex is held");
  if (mine) of_all_ranks.unlock();
  expect(why_not(), checkpoint_refusal::none, "it is unlocked");
  try {
    finish([&] { expect(why_not(), checkpoint_refusal::not_main, "inside of a finish"); });
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
  }
  expect(why_not(), checkpoint_refusal::none, "at last");
  // A file that cannot grow: the older checkpoint stays, and the job goes on.
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{8192, before.rlim_max};
  if (mine) setrlimit(RLIMIT_FSIZE, &small);
  expect(why_not(), checkpoint_refusal::not_written, "no room");
  setrlimit(RLIMIT_FSIZE, &before);
  path = "/proc/no-such-folder/state";
  expect(why_not(), checkpoint_refusal::not_written, "no folder");
  if (rank_me() == 0) std::printf("done\n");
  return 0;
}

/// Its checkpoint is its own as long as it lives.
int stays_with_its_checkpoint() {
  barrier();
  if (restored()) {
    if (!is_no_root<roots>("the checkpoint was written without a root")) return 1;
    if (rank_me() == 0) std::printf("answer 7\n");
    return 0;
  }
  checkpoint(path);
  if (rank_me() == 0) std::printf("written\n");
  std::fflush(stdout);
  for (;;) {
    sleep_for(std::chrono::milliseconds(50));
    checkpoint(path);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  path = argv[1];
  std::string_view scenario = argv[2];
  return run(argc, argv, [&] {
    if (scenario == "states") return states();
    if (scenario == "computation") return computation();
    if (scenario == "never_ending") return never_ending();
    if (scenario == "bundled") return bundled();
    if (scenario == "stays") return stays_with_its_checkpoint();
    if (scenario == "warnings") return warnings();
    if (scenario == "waits_too_early") return waits_too_early();
    return refusals();
  });
}
