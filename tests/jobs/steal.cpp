// SPDX-License-Identifier: Apache-2.0
// Ranks without work take over what forks of others leave to do: the oldest stretch of a stack that
// may leave, and no other.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

bool steals_are_off() {
  const char* text = std::getenv("SOJOURN_STEAL");
  return rank_count() == 1 || (text != nullptr && std::strcmp(text, "off") == 0) ||
         (text == nullptr && (sanitized || detail::checked()));
}

bool hosts_give_to_each_other() {
  const char* text = std::getenv("SOJOURN_STEAL");
  return text != nullptr && std::strcmp(text, "hosts") == 0;
}

long fibonacci(long n) {
  if (n < 2) return n;
  auto older = fork(fibonacci, n - 1);
  const long younger = fibonacci(n - 2);
  return older.get() + younger;
}
long serial_fibonacci(long n) {
  return n < 2 ? n : serial_fibonacci(n - 1) + serial_fibonacci(n - 2);
}

/// Of all ranks, while rank 0 alone does `work` and the others wait.
template <class Work>
counters counted_while_one_works(Work work) {
  barrier();
  const counters before = counters_now();
  barrier();
  if (rank_me() == 0) work();
  barrier();
  const counters mine = counters_now() - before;
  counters all = mine;
  all.forks = reduce(mine.forks, std::plus<>{});
  all.steals = reduce(mine.steals, std::plus<>{});
  all.steals_refused = reduce(mine.steals_refused, std::plus<>{});
  all.migrations = reduce(mine.migrations, std::plus<>{});
  return all;
}

/// So many that other ranks get a core meanwhile, even on a busy machine: an attempt takes some
/// tens of microseconds.
constexpr int attempts_max = 1000;

void a_tree_started_on_one_rank_uses_the_others() {
  counters made;
  // By chance the other ranks' processes do not run meanwhile, on crowded cores.
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const std::uint64_t forks_here = counters_now().forks;
    made = counted_while_one_works([] { CHECK_EQUAL(fibonacci(25), serial_fibonacci(25)); });
    // Each fork once, wherever.
    CHECK_EQUAL(made.forks, 121392u);
    const bool helped = rank_me() != 0 && counters_now().forks != forks_here;
    if (steals_are_off()) {
      CHECK_EQUAL(made.steals, 0u);
      return;
    }
    if (reduce(helped ? 1 : 0, std::plus<>{}) > 0) break;
  }
  CHECK(made.steals > 0);
  CHECK_EQUAL(made.migrations, made.steals);
}

int changed_rank;  // of each rank: frames that did, of those that say so

/// Forks on rank 0 until another rank has asked for a part and was refused; no frame changes its
/// rank. A child may begin on another one: it has no address of its rank yet.
template <class Work>
void others_are_refused(Work work) {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    changed_rank = 0;
    const counters made = counted_while_one_works(work);
    CHECK_EQUAL(changed_rank, 0);
    if (steals_are_off() || made.steals_refused > 0) return;
  }
  CHECK(!"no rank asked for a part");
}

int runs_that_stay;  // of what may not leave rank 0, on this rank

/// Forks on rank 0, with children beside them that may leave, until another rank has taken of
/// those; it gets no others.
template <class Work>
void others_take_none(Work work) {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    runs_that_stay = 0;
    const counters made = counted_while_one_works([&] {
      work();
      CHECK(runs_that_stay > 0);
      CHECK_EQUAL(fibonacci(20), serial_fibonacci(20));
    });
    if (rank_me() != 0) CHECK_EQUAL(runs_that_stay, 0);
    if (steals_are_off() || made.steals > 0) return;
  }
  CHECK(!"no rank took a part");
}

/// Its frame has the address of private memory while it forks.
long with_private_memory(long n) {
  const rank_t began_on = rank_me();
  std::vector<long> results(2);
  if (n < 2) return n;
  auto older = fork(with_private_memory, n - 1);
  results[0] = with_private_memory(n - 2);
  results[1] = older.get();
  changed_rank += rank_me() != began_on;
  return results[0] + results[1];
}
void frames_with_addresses_of_this_rank_stay() {
  others_are_refused([] { CHECK_EQUAL(with_private_memory(20), serial_fibonacci(20)); });
}

// ---- What looks like an address and is none, and the other way round ----------------------------

/// Forks on rank 0 until another rank took a part: by chance those do not run meanwhile.
template <class Work>
void others_help(Work work) {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const counters made = counted_while_one_works(work);
    if (steals_are_off() || made.steals > 0) return;
  }
  CHECK(!"no rank took a part");
}

/// Elements in memory that the C library got since the scan first looked where its heap ends.
long with_new_memory(int depth) {
  const rank_t began_on = rank_me();
  std::vector<long> mine(1000, depth);
  if (depth == 0) return mine[7] + 1;
  auto a = fork(with_new_memory, depth - 1);
  auto b = fork(with_new_memory, depth - 1);
  const long sum = a.get() + b.get();
  for (long x : mine) CHECK_EQUAL(x, depth);
  changed_rank += rank_me() != began_on;
  return sum;
}
void frames_with_addresses_of_new_memory_stay() {
  others_are_refused([] {
    for (int i = 0; i < 10; ++i) CHECK_EQUAL(with_new_memory(10), 1 << 10);
  });
}

extern "C" char end;

/// A count that lies where the kernel leaves nothing, between the end of the program and its heap.
long with_a_number(long n, std::uint64_t number) {
  volatile std::uint64_t mine = number;
  if (n < 2) return n;
  auto older = fork(with_a_number, n - 1, number);
  const long younger = with_a_number(n - 2, number);
  CHECK(mine == number);
  return older.get() + younger;
}
void numbers_do_not_keep_a_frame() {
  // By chance there is no gap, or not much of one; then the number is of what follows the heap.
  const auto program_end = reinterpret_cast<std::uint64_t>(&end);
  std::uint64_t heap = reinterpret_cast<std::uint64_t>(sbrk(0));
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  CHECK(maps != nullptr);
  char row[512];
  while (std::fgets(row, sizeof row, maps) != nullptr) {
    if (std::strstr(row, "[heap]") != nullptr) heap = std::strtoull(row, nullptr, 16);
  }
  std::fclose(maps);
  const std::uint64_t gap = heap > program_end ? heap - program_end : 0;
  const std::uint64_t number = gap > (1 << 20)
                                   ? program_end + gap / 2
                                   : reinterpret_cast<std::uint64_t>(sbrk(0)) + (1 << 30);
  for (std::uint64_t n : {number / 8 * 8, number / 8 * 8 + 1}) {
    others_help([&] { CHECK_EQUAL(with_a_number(20, n), serial_fibonacci(20)); });
  }
}

/// Leaves addresses of private memory all over the stack.
[[gnu::noinline]] void an_earlier_call() {
  std::vector<char> own(1000);
  char* volatile pointers[4000];
  for (auto& p : pointers) p = own.data();
}
/// Has room that it does not write all over.
long with_many_futures(int depth) {
  if (depth == 0) return fibonacci(10);
  std::array<future<long>, 40> children;
  for (std::size_t i = 0; i < 3; ++i) children[i] = fork(with_many_futures, depth - 1);
  long sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += children[i].get();
  return sum;
}
void what_earlier_calls_left_does_not_keep_a_frame() {
  others_help([] {
    an_earlier_call();
    CHECK_EQUAL(fork(fibonacci, 20).get(), serial_fibonacci(20));
  });
  others_help([] {
    an_earlier_call();
    CHECK_EQUAL(fork(with_many_futures, 5).get(), 243 * serial_fibonacci(10));
  });
}

// ---- Views, and pointers that travel ------------------------------------------------------------

template <class View>
long sum_of(View v) {
  ++runs_that_stay;
  if (v.size() <= 3) return std::accumulate(v.begin(), v.end(), 0L);
  auto older = fork(sum_of<View>, View(v.begin(), v.begin() + v.size() / 2));
  const long younger = sum_of(View(v.begin() + v.size() / 2, v.end()));
  return older.get() + younger;
}
struct wrapped {
  const long* first;
  std::size_t count;
};
long sum_of_wrapped(wrapped w) {
  ++runs_that_stay;
  if (w.count <= 3) return std::accumulate(w.first, w.first + w.count, 0L);
  const std::size_t half = w.count / 2;
  auto older = fork(sum_of_wrapped, wrapped{w.first, half});
  const long younger = sum_of_wrapped({w.first + half, w.count - half});
  return older.get() + younger;
}
/// By its type a value.
class opaque {
 public:
  opaque(const long* first, std::size_t count) : first_(first), count_(count) {}
  std::size_t size() const { return count_; }
  const long* begin() const { return first_; }
  const long* end() const { return first_ + count_; }

 private:
  const long* first_;
  std::size_t count_;
};
long sum_of_opaque(opaque v) {
  if (v.size() <= 3) return std::accumulate(v.begin(), v.end(), 0L);
  const std::size_t half = v.size() / 2;
  auto older = fork(sum_of_opaque, opaque(v.begin(), half));
  const long younger = sum_of_opaque(opaque(v.begin() + half, v.size() - half));
  return older.get() + younger;
}

void children_with_views_stay() {
  static_assert(!detail::leaves<std::span<long>> && !detail::leaves<std::string_view>);
  static_assert(!detail::leaves<wrapped> && !detail::leaves<std::pair<int, std::span<int>>>);
  static_assert(detail::leaves<opaque> && detail::leaves<std::pair<int, local_ptr<int>>>);
  others_take_none([] {
    std::array<long, 2048> here;
    here.fill(1);
    const std::vector<long> there(2048, 1);
    const std::string text(2048, 1);
    for (int i = 0; i < 20; ++i) {
      CHECK_EQUAL(fork(sum_of<std::span<const long>>, std::span<const long>(here)).get(), 2048);
      CHECK_EQUAL(fork(sum_of<std::span<const long>>, std::span<const long>(there)).get(), 2048);
      CHECK_EQUAL(fork(sum_of<std::string_view>, std::string_view(text)).get(), 2048);
      CHECK_EQUAL(fork(sum_of_wrapped, wrapped{here.data(), here.size()}).get(), 2048);
    }
  });
}
void hidden_addresses_of_older_frames_stay() {
  (void)counted_while_one_works([] {
    std::array<long, 2048> here;
    here.fill(1);
    for (int i = 0; i < 100; ++i) {
      CHECK_EQUAL(fork(sum_of_opaque, opaque(here.data(), here.size())).get(), 2048);
    }
  });
}

long sum_in_place(local_ptr<const long> first, std::size_t count) {
  ++runs_that_stay;
  if (count <= 3) return std::accumulate(first.get(), first.get() + count, 0L);
  const std::size_t half = count / 2;
  auto older = fork(sum_in_place, first, half);
  const long younger = sum_in_place(first + static_cast<std::ptrdiff_t>(half), count - half);
  return older.get() + younger;
}
void local_pointers_travel_where_heaps_are_shared() {
  static constexpr std::size_t count = 20000;
  const auto work = [] {
    const auto array = make_array<long>(rank_me(), count);
    std::fill_n(array.local(), count, 1L);
    const local_ptr<const long> first{local_ptr<long>(array)};
    CHECK_EQUAL(fork(sum_in_place, first, count).get(), static_cast<long>(count));
    destroy_array(array, count);
  };
  if (detail::job.heap_shared) {
    others_help(work);
  } else {
    others_take_none(work);
  }
  // What is not in the global heap is refused at once, with a sentence.
  long on_the_stack = 1;
  bool refused = false;
  try {
    (void)local_ptr<long>(&on_the_stack);
  } catch (const error& e) {
    refused = std::string_view(e.what()).find("not in the global heap") != std::string_view::npos;
  }
  CHECK(refused);
  CHECK(!local_ptr<long>() && local_ptr<long>().get() == nullptr);
}

long by_reference(long n) {
  ++runs_that_stay;
  if (n < 2) return n;
  auto older = fork([&] { return by_reference(n - 1); });
  const long younger = by_reference(n - 2);
  return older.get() + younger;
}
void children_that_refer_to_their_callers_stay() {
  others_take_none([] { CHECK_EQUAL(by_reference(22), serial_fibonacci(22)); });
}

int run_here;  // of each rank

void loops_stay_unless_they_say_so() {
  run_here = 0;
  others_take_none([] {
    run_here = 0;
    par_for(0, 300, [](int i) {
      ++run_here;
      ++runs_that_stay;
      CHECK_EQUAL(serial_fibonacci(12), 144);
      (void)i;
    });
    CHECK_EQUAL(run_here, 300);
  });
  const long wanted = 400 * serial_fibonacci(12);
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const counters spread = counted_while_one_works([&] {
      const long sum = par_reduce(
          anywhere, 0, 400, 0L, [](int) { return serial_fibonacci(12); }, std::plus<>{}, 4);
      CHECK_EQUAL(sum, wanted);
    });
    if (steals_are_off() || spread.steals > 0) return;
  }
  // What waits in a ring may come when the loop is over.
  if (!check::messages_are_delayed()) CHECK(!"no rank took a part of the loop");
}

void bodies_anywhere_run_once_each() {
  run_here = 0;
  (void)counted_while_one_works([] { par_for(anywhere, 0, 5000, [](int) { ++run_here; }); });
  CHECK_EQUAL(reduce(run_here, std::plus<>{}), 5000);
}

struct held {
  static long call(long n) {
    const rank_t began_on = rank_me();
    const stay here;
    if (n < 2) return n;
    auto older = fork(call, n - 1);
    const long younger = call(n - 2);
    const long sum = older.get() + younger;
    changed_rank += rank_me() != began_on;
    return sum;
  }
};
void frames_that_stay_are_not_given() {
  changed_rank = 0;
  others_help([] { CHECK_EQUAL(held::call(20), serial_fibonacci(20)); });
  CHECK_EQUAL(changed_rank, 0);
}

/// Locks the mutex of its caller for a while, and forks meanwhile. It neither waits nor holds what
/// would keep its caller's frames here: the address is hidden, and its own children stay.
void lock_in_callers_frame(std::uint64_t hidden, rank_t home) {
  if (rank_me() != home) return;  // it has left itself, before it began
  const std::lock_guard turn(*reinterpret_cast<sojourn::mutex*>(~hidden));
  long forked = 0;
  const std::uint64_t until = now_ns() + 1'000'000;
  while (now_ns() < until) fork([&] { ++forked; }).get();
  CHECK(forked > 0);
}
long with_a_mutex(long n) {
  const rank_t began_on = rank_me();
  sojourn::mutex mine;
  fork(lock_in_callers_frame, ~reinterpret_cast<std::uint64_t>(&mine), began_on).get();
  ++runs_that_stay;
  CHECK_EQUAL(rank_me(), began_on);
  return n;
}
void frames_with_a_mutex_that_others_have_locked_stay() {
  others_take_none([] {
    for (long i = 0; i < 10; ++i) CHECK_EQUAL(activate(with_a_mutex, i), i);
  });
}

// ---- Children that do not fork ------------------------------------------------------------------

rank_t leaf(int) {
  ++run_here;
  return rank_me();
}
/// In a loop, of one caller that may not leave: its frame has an address of its rank.
int loop_of_leaves(int n, int at_least) {
  std::vector<future<rank_t>> children;
  int elsewhere = 0;
  for (int i = 0; i < n && elsewhere < at_least; ++i) {
    const std::uint64_t steals = counters_now().steals;
    children.push_back(fork(leaf, i));
    elsewhere += counters_now().steals != steals;
    // Ranks that share this core come to show that they have nothing to do.
    if (i % 16 == 0) std::this_thread::yield();
  }
  int counted = 0;
  for (auto& child : children) counted += child.get() != rank_me();
  CHECK_EQUAL(counted, elsewhere);
  return counted;
}
void children_that_do_not_fork_leave_themselves() {
  run_here = 0;
  int given = 0;
  const counters made = counted_while_one_works([&] {
    const stay here;
    given = loop_of_leaves(steals_are_off() ? 1000 : 1'000'000, 20);
    CHECK_EQUAL(given, steals_are_off() ? 0 : 20);
  });
  const int ran_elsewhere = reduce(rank_me() == 0 ? 0 : run_here, std::plus<>{});
  CHECK_EQUAL(ran_elsewhere, broadcast(given, 0));
  CHECK_EQUAL(made.steals, static_cast<std::uint64_t>(ran_elsewhere));
  CHECK_EQUAL(made.migrations, made.steals);
}

bool released;          // of each rank
std::set<rank_t> busy;  // of rank 0: ranks that have got a child

/// Keeps any other rank than 0 busy until it is released.
void leaf_until_released(int) {
  if (rank_me() == 0) return;
  const stay here;
  rpc_ff(0, [](rank_t r) { busy.insert(r); }, rank_me());
  while (!released) yield();
}
/// Also those that were without work at once, before the first child went.
void all_ranks_without_work_get_children() {
  if (steals_are_off()) return;
  released = false;
  busy.clear();
  barrier();
  if (rank_me() == 0) {
    const stay here;
    fork(leaf, 0).get();  // now the others know that this rank forks
    sleep_for(std::chrono::milliseconds(2));
    std::size_t others = 0;
    for (rank_t r = 1; r < rank_count(); ++r) others += is_near(r) || hosts_give_to_each_other();
    const std::uint64_t until = now_ns() + 10'000'000'000;
    std::vector<future<void>> children;
    while (busy.size() < others && now_ns() < until) {
      children.push_back(fork(leaf_until_released, 0));
      // A rank that looks again for ranks of other hosts does so after it has had nothing to do.
      if (hosts_give_to_each_other()) {
        sleep_for(std::chrono::milliseconds(1));
      } else {
        yield();
      }
    }
    for (rank_t r = 1; r < rank_count(); ++r) rpc(r, [] { released = true; }).get();
    for (auto& child : children) child.get();
    CHECK_EQUAL(busy.size(), others);
  }
  barrier();
}

/// A rank that is told that another has nothing to do is woken by that, and has nothing to do
/// itself.
void ranks_without_work_leave_each_other_alone() {
  // All have something to do, and fork, and then nothing.
  CHECK_EQUAL(fibonacci(20), serial_fibonacci(20));
  barrier();
  const std::uint64_t before = counters_now().upkeep_messages;
  sleep_for(std::chrono::milliseconds(200));
  CHECK(counters_now().upkeep_messages - before < 20);
  barrier();
}

/// Children that refer to their caller's frame do not, however long nobody else has anything to do.
void children_with_captures_do_not() {
  const counters made = counted_while_one_works([] {
    int sum = 0;
    for (int i = 0; i < 20'000; ++i) fork([&] { ++sum; }).get();
    CHECK_EQUAL(sum, 20'000);
  });
  CHECK_EQUAL(made.steals, 0u);
}

int nothing(int x) { return x; }
/// However many small children came before: what counts is time.
void small_children_do_not_keep_large_ones_here() {
  if (steals_are_off()) return;
  for (int round = 0; round < 3; ++round) {
    (void)counted_while_one_works([] {
      const stay here;
      for (int i = 0; i < 20'000; ++i) CHECK_EQUAL(fork(nothing, i).get(), i);
      // One that waits for another to have begun elsewhere would wait for ever if none left; the
      // first one may meet a pause, which is short beside it.
      int elsewhere = 0;
      for (int i = 0; i < 40 && elsewhere == 0; ++i) {
        const auto child_on = fork(
                                  [](int) {
                                    const std::uint64_t until = now_ns() + 3'000'000;
                                    while (now_ns() < until) std::this_thread::yield();
                                    return rank_me();
                                  },
                                  i)
                                  .get();
        elsewhere += child_on != rank_me();
      }
      CHECK(elsewhere > 0);
    });
  }
}

bool polls, may_rest, has_moved;  // of each rank

/// Gives its turn on rank 0 until it, or the other one, is somewhere else.
int leaf_that_yields(int) {
  const std::uint64_t until = now_ns() + 10'000'000'000;
  while (rank_me() == 0 && !has_moved && now_ns() < until) yield();
  if (rank_me() == 0) return 0;
  rpc(0, [] { has_moved = true; }).get();
  return 1;
}
/// Nothing of earlier calls is left where frames of children will lie: what they do not write would
/// keep them here.
[[gnu::noinline]] void clear_room() {
  std::array<char, 16384> room;
  room.fill(0);
  asm volatile("" : : "r"(room.data()) : "memory");
}
/// They began when all ranks had something to do; the ones that wait for their turn go when one has
/// not any more.
void leaves_that_yield_may_leave() {
  if (steals_are_off()) return;
  polls = may_rest = has_moved = false;
  barrier();
  if (rank_me() != 0) {
    polls = true;
    while (!may_rest) yield();
  } else {
    for (rank_t r = 1; r < rank_count(); ++r) {
      while (!rpc(r, [] { return polls; }).get()) yield();
    }
    const counters before = counters_now();
    clear_room();
    auto first = fork(leaf_that_yields, 1);
    clear_room();
    auto second = fork(leaf_that_yields, 2);
    // A rank of another host that has had nothing to do before is remembered.
    if (!hosts_give_to_each_other()) CHECK_EQUAL((counters_now() - before).steals, 0u);
    for (rank_t r = 1; r < rank_count(); ++r) rpc(r, [] { may_rest = true; }).get();
    const int moved = first.get() + second.get();
    CHECK(moved > 0);
    CHECK_EQUAL((counters_now() - before).steals, static_cast<std::uint64_t>(moved));
  }
  barrier();
}

// ---- Random trees of children that may leave, against their serial evaluation -------------------

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}
std::uint64_t child_of(std::uint64_t seed, unsigned i) { return mixed(seed + 0x1234567 * (i + 1)); }
unsigned children_of(std::uint64_t seed, int depth) {
  return depth == 0 ? 0u : static_cast<unsigned>(seed >> 8) % 4;
}
bool throws(std::uint64_t seed) { return seed % 61 == 0; }

std::uint64_t serial(std::uint64_t seed, int depth) {
  std::uint64_t sum = seed;
  for (unsigned i = 0; i < children_of(seed, depth); ++i) {
    try {
      sum = mixed(sum + serial(child_of(seed, i), depth - 1));
    } catch (const std::range_error&) {
      sum = mixed(sum + 1);
    }
  }
  if (throws(seed)) throw std::range_error("as it goes");
  return sum;
}

rank_t rank_of(std::uint64_t seed) {
  return static_cast<rank_t>(seed % static_cast<unsigned>(rank_count()));
}

void block_somehow(std::uint64_t seed) {
  switch (seed % 13) {
    case 0:
      yield();
      break;
    case 1:
      (void)rpc(rank_of(seed / 13), [](int x) { return x; }, 1).get();
      break;
    case 2:
      rpc(rank_of(seed / 13), [] { yield(); }).get();
      break;
    case 3:
      migrate_to(rank_of(seed / 13));
      break;
    default:
      break;
  }
}

std::uint64_t parallel(std::uint64_t seed, int depth);

std::uint64_t inside_a_handler(std::uint64_t seed, int depth) {
  try {
    throw 1;
  } catch (int) {
    // Its frames hold an exception while the child runs.
    auto child = fork(parallel, seed, depth);
    return child.get();
  }
}

std::uint64_t parallel(std::uint64_t seed, int depth) {
  std::array<future<std::uint64_t>, 4> all;
  const unsigned n = children_of(seed, depth);
  block_somehow(mixed(seed + 1));
  for (unsigned i = 0; i < n; ++i) {
    const std::uint64_t c = child_of(seed, i);
    switch (c % 11) {
      case 0:
        all[i] = rpc(rank_of(c / 11), parallel, c, depth - 1);
        break;
      case 1:
        all[i] =
            fork([](std::uint64_t s, int d) { return activate(parallel, s, d); }, c, depth - 1);
        break;
      case 2:
        all[i] = fork([c, depth] { return parallel(c, depth - 1); });
        break;
      case 3:
        all[i] = fork(inside_a_handler, c, depth - 1);
        break;
      default:
        all[i] = fork(parallel, c, depth - 1);
    }
  }
  block_somehow(mixed(seed + 2));
  std::uint64_t sum = seed;
  for (unsigned i = 0; i < n; ++i) {
    try {
      sum = mixed(sum + all[i].get());
    } catch (const std::range_error&) {
      sum = mixed(sum + 1);
    }
    block_somehow(mixed(sum));
  }
  if (throws(seed)) throw std::range_error("as it goes");
  return sum;
}

template <class Evaluate>
std::uint64_t value_of(Evaluate evaluate, std::uint64_t seed, int depth) {
  try {
    return evaluate(seed, depth);
  } catch (const std::range_error&) {
    return 1;
  }
}

void random_trees(bool one_rank_starts) {
  const int trees = sanitized ? 20 : 80;
  for (int i = 0; i < trees; ++i) {
    if (one_rank_starts) barrier();
    if (one_rank_starts && rank_me() != 0) continue;
    const std::uint64_t seed = mixed(static_cast<std::uint64_t>(i * 64 + rank_me()));
    CHECK_EQUAL(value_of(parallel, seed, 9), value_of(serial, seed, 9));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a tree started on one rank uses the others",
                 a_tree_started_on_one_rank_uses_the_others);
    check::claim("frames with addresses of this rank stay",
                 frames_with_addresses_of_this_rank_stay);
    check::claim("frames with addresses of new memory stay",
                 frames_with_addresses_of_new_memory_stay);
    check::claim("numbers do not keep a frame", numbers_do_not_keep_a_frame);
    check::claim("what earlier calls left does not keep a frame",
                 what_earlier_calls_left_does_not_keep_a_frame);
    check::claim("children with views stay", children_with_views_stay);
    check::claim("hidden addresses of older frames stay", hidden_addresses_of_older_frames_stay);
    check::claim("local pointers travel where heaps are shared",
                 local_pointers_travel_where_heaps_are_shared);
    check::claim("children that refer to their callers stay",
                 children_that_refer_to_their_callers_stay);
    check::claim("loops stay unless they say so", loops_stay_unless_they_say_so);
    check::claim("bodies anywhere run once each", bodies_anywhere_run_once_each);
    check::claim("frames that stay are not given", frames_that_stay_are_not_given);
    check::claim("frames with a mutex that others have locked stay",
                 frames_with_a_mutex_that_others_have_locked_stay);
    check::claim("children that do not fork leave themselves",
                 children_that_do_not_fork_leave_themselves);
    check::claim("children with captures do not", children_with_captures_do_not);
    check::claim("all ranks without work get children", all_ranks_without_work_get_children);
    check::claim("ranks without work leave each other alone",
                 ranks_without_work_leave_each_other_alone);
    check::claim("leaves that yield may leave", leaves_that_yield_may_leave);
    check::claim("small children do not keep large ones here",
                 small_children_do_not_keep_large_ones_here);
    check::claim("random trees of one rank give what serial ones do", [] { random_trees(true); });
    check::claim("random trees of all ranks give what serial ones do", [] { random_trees(false); });
    return check::verdict();
  });
}
