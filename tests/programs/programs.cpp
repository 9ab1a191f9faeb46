// SPDX-License-Identifier: Apache-2.0
// Random programs over the public API: trees whose nodes are values, and whose edges are ways to
// have a value computed, mixed at random. A plain recursion says what each must be.
//
//   programs [--seed S] [--programs N] [--limit SECONDS] [--without WAY…]
//
// Runs N programs, of the seeds S, S + 1, … The first that has a wrong value, throws or takes
// longer than the limit is named with the options that run it alone; run.sh beside this adds the
// settings.
#include <signal.h>
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

namespace {

using u64 = std::uint64_t;

// ---- What a program is: a function of its seed --------------------------------------------------

u64 mix(u64 a, u64 b) {
  u64 z = (a ^ b * 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/// The salts of what is chosen at a node.
enum salt : u64 { of_children = 1000, of_way, of_rank, of_detail, of_order, of_leaf };
u64 pick(u64 h, salt s, u64 choices) { return mix(h, s) % choices; }

constexpr u64 children_max = 3;
u64 children(u64 h, int depth) {
  constexpr std::array<u64, 8> choices{0, 1, 1, 2, 2, 2, children_max, children_max};
  return depth == 0 ? 0 : choices[static_cast<std::size_t>(pick(h, of_children, choices.size()))];
}
u64 child_of(u64 h, u64 i) { return mix(h, i); }
u64 join(u64 sum, u64 value) { return sum * 31 + value; }

u64 serial(u64 h, int depth) {
  u64 sum = h & 0xff;
  for (u64 i = 0; i < children(h, depth); ++i) sum = join(sum, serial(child_of(h, i), depth - 1));
  return sum;
}

// ---- Ways to have a child computed --------------------------------------------------------------

enum class way : unsigned {
  call,
  remote_call,
  one_way,        ///< In a finish.
  one_way_alone,  ///< The caller looks until the value is there.
  forked,
  captured,
  together,  ///< par_invoke, of it and another.
  activated,
  activated_all,
  roaming,
  thread,
  roaming_thread,
  pushed_thread,  ///< Another moves it.
  pmr_thread,     ///< With a heap of its own.
  detached,       ///< A thread that nobody joins, which stores its value.
  continued,
  relayed,
  strings,
  vectors,
  method,
  async_method,
  exclusive_method,
  then,
  thrown,
  thrown_far,
  locked,
  slept,
  pinned,
  bundled,
  many,  ///< Small one-way calls beside it, in a finish.
  count_
};
constexpr std::array<const char*, static_cast<std::size_t>(way::count_)> names{
    "call",          "remote_call",
    "one_way",       "one_way_alone",
    "forked",        "captured",
    "together",      "activated",
    "activated_all", "roaming",
    "thread",        "roaming_thread",
    "pushed_thread", "pmr_thread",
    "detached",      "continued",
    "relayed",       "strings",
    "vectors",       "method",
    "async_method",  "exclusive_method",
    "then",          "thrown",
    "thrown_far",    "locked",
    "slept",         "pinned",
    "bundled",       "many"};

// Of this rank, which all have alike.
std::array<bool, names.size()> left_out{};

way way_of(u64 h) {
  const auto w = static_cast<std::size_t>(pick(h, of_way, names.size()));
  return left_out[w] ? way::call : static_cast<way>(w);
}
rank_t rank_of(u64 h, salt s = of_rank) {
  return static_cast<rank_t>(pick(h, s, static_cast<u64>(rank_count())));
}

u64 node(u64 h, int depth);

// Objects of each rank.
struct cell {
  long touched = 0;
  u64 touch() { return static_cast<u64>(++touched != 0); }
  u64 run(u64 h, int depth) { return node(h, depth); }
};
struct turns : monitor {
  long inside = 0;
  /// Waits inside, and so must be alone there.
  u64 enter(u64 h) {
    if (inside++ != 0) return 0;
    if (h % 2 == 0) yield();
    return static_cast<u64>(--inside == 0);
  }
};
std::vector<global_ptr<cell>> cells;
std::vector<global_ptr<turns>> monitors;
global_ptr<cell> cell_of(u64 h) { return cells[static_cast<std::size_t>(rank_of(h))]; }

sojourn::mutex lock_of_rank;
long inside_lock = 0;
long small_calls = 0;

[[noreturn]] void fail(const char* what) { throw std::logic_error(what); }

/// Where a value is stored by whoever computes it; lies on this rank.
class place {
 public:
  place() : at_(make<slot>(rank_me())) {}
  place(const place&) = delete;
  place& operator=(const place&) = delete;
  ~place() { destroy(at_); }
  struct slot {
    u64 value = 0;
    u64 is_there = 0;
    void set(u64 v) {
      value = v;
      is_there += 1;
    }
    u64 times() const { return is_there; }
    u64 get() const { return value; }
  };
  global_ptr<slot> where() const { return at_; }
  bool is_filled() const { return at_.call<&slot::times>() != 0; }
  u64 take() const {
    if (at_.call<&slot::times>() != 1) fail("a value was stored another number of times than once");
    return at_.call<&slot::get>();
  }

 private:
  global_ptr<slot> at_;
  stay stays_;
};

void store_node(global_ptr<place::slot> to, u64 h, int depth) {
  const u64 value = node(h, depth);
  to.call<&place::slot::set>(value);
}

[[gnu::noinline]] u64 by_one_way(u64 h, int depth) {
  const place to;
  finish([&] { rpc_ff(rank_of(h), store_node, to.where(), h, depth); });
  return to.take();
}
[[gnu::noinline]] u64 by_one_way_alone(u64 h, int depth) {
  const place to;
  rpc_ff(rank_of(h), store_node, to.where(), h, depth);
  while (!to.is_filled()) yield();
  return to.take();
}
[[gnu::noinline]] u64 by_bundle(u64 h, int depth) {
  const aggregated here({.bytes = 256u << pick(h, of_detail, 6)});
  const place to;
  finish([&] { rpc_ff(rank_of(h), store_node, to.where(), h, depth); });
  return to.take();
}
[[gnu::noinline]] u64 among_many(u64 h, int depth) {
  const place to;
  const place others;
  const u64 calls = pick(h, of_detail, 40);
  finish([&] {
    for (u64 i = 0; i < calls; ++i) rpc_ff(rank_of(mix(h, i)), [] { ++small_calls; });
    rpc_ff(rank_of(h), store_node, to.where(), h, depth);
    for (u64 i = 0; i < calls; ++i) rpc_ff(rank_of(mix(h, i)), nonblocking([] { --small_calls; }));
  });
  return to.take();
}

[[gnu::noinline]] u64 by_capture(u64 h, int depth) {
  u64 value = 0;
  auto child = fork([&] { value = node(h, depth); });
  if (pick(h, of_detail, 2) == 0) yield();
  child.get();
  return value;
}
[[gnu::noinline]] u64 with_another(u64 h, int depth) {
  u64 value = 0;
  u64 touched = 0;
  par_invoke([&] { value = node(h, depth); },
             [&] { touched = cell_of(h).call<&cell::touch>(via::migrate); });
  return touched == 1 ? value : 0;
}

u64 touch_and_compute(u64 h, int depth) {
  return cell_of(h).call<&cell::touch>(via::migrate) * node(h, depth);
}
u64 touch_all_and_compute(u64 h, int depth) {
  const u64 touched = pick(h, of_detail, 2) == 0
                          ? cell_of(h).call<&cell::touch>(via::migrate.all())
                          : cell_of(h).call<&cell::touch>(via::migrate.activations(2));
  return touched * node(h, depth);
}
u64 roam_and_compute(u64 h, int depth) {
  for (u64 i = 0; i < 1 + pick(h, of_detail, 3); ++i) {
    migrate_to(rank_of(mix(h, i)));
    if (pick(mix(h, i), of_leaf, 3) == 0) yield();
  }
  const u64 value = node(h, depth);
  migrate_to(rank_of(h));
  return value;
}

void roaming_store(global_ptr<place::slot> to, u64 h, int depth) {
  for (u64 i = 0; i < 1 + pick(h, of_detail, 3); ++i) migrate(self(), rank_of(mix(h, i)));
  const u64 value = node(h, depth);
  migrate(self(), rank_of(h));
  to.call<&place::slot::set>(value);
}
void store_from_own_heap(global_ptr<place::slot> to, u64 h, int depth) {
  std::pmr::vector<u64> values(thread_heap());
  for (u64 i = 0; i < 1 + pick(h, of_detail, 600); ++i) values.push_back(mix(h, i));
  migrate(self(), rank_of(h));
  const u64 value = node(h, depth);
  migrate(self(), rank_of(h, of_detail));
  for (u64 i = 0; i < values.size(); ++i) {
    if (values[static_cast<std::size_t>(i)] != mix(h, i)) fail("a thread's heap has other values");
  }
  to.call<&place::slot::set>(value);
}
[[gnu::noinline]] u64 by_thread(u64 h, int depth, way how) {
  const place to;
  const thread_options options{.shared_stack = pick(h, of_leaf, 4) == 0};
  const auto body = how == way::roaming_thread ? roaming_store
                    : how == way::pmr_thread   ? store_from_own_heap
                                               : store_node;
  thread t = pick(h, of_order, 2) == 0 ? spawn(options, body, to.where(), h, depth)
                                       : spawn_on(rank_of(h), options, body, to.where(), h, depth);
  if (how == way::detached) {
    t.detach();
    while (!to.is_filled()) yield();
    return to.take();
  }
  if (how == way::pushed_thread) {
    for (u64 i = 0; i < 2; ++i) {
      try {
        migrate(t, rank_of(mix(h, i)));
      } catch (const thread_error&) {
        // It has ended, or is where it must stay.
      }
    }
  }
  t.join();
  return to.take();
}

void answer(continuation<u64> to, u64 h, int depth, int hops) {
  if (hops > 0) {
    return rpc_ff(rank_of(mix(h, static_cast<u64>(hops))), answer, std::move(to), h, depth,
                  hops - 1);
  }
  const u64 value = node(h, depth);
  to(value);
}
[[gnu::noinline]] u64 by_continuation(u64 h, int depth) {
  const auto hops = static_cast<int>(pick(h, of_detail, 4));
  return call_cc(answer, h, depth, hops);
}

/// Short, or with memory of its own.
std::string text_of(u64 h) {
  return std::string(static_cast<std::size_t>(pick(h, of_leaf, 70)),
                     'a' + static_cast<char>(h % 26));
}
std::string compute_text(const std::string& text, u64 h, int depth) {
  if (text != text_of(h)) fail("a string has come with other letters");
  const stay here;
  return std::to_string(node(h, depth));
}
u64 number_in(const std::string& text) {
  u64 value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc{}) fail("what is no number has come");
  return value;
}
[[gnu::noinline]] u64 by_string(u64 h, int depth) {
  const stay here;
  return number_in(rpc(rank_of(h), compute_text, text_of(h), h, depth).get());
}
std::vector<u64> compute_vector(std::vector<u64> values, u64 h, int depth) {
  const stay here;
  for (u64 i = 0; i < values.size(); ++i) {
    if (values[static_cast<std::size_t>(i)] != mix(h, i)) fail("a vector has come with others");
  }
  values.assign(values.size() + 1, node(h, depth));
  return values;
}
[[gnu::noinline]] u64 by_vector(u64 h, int depth) {
  const stay here;
  // Some are longer than what goes whole.
  const u64 detail = pick(h, of_detail, 400);
  const u64 length = detail == 0 ? 150'000 : detail;
  std::vector<u64> values;
  for (u64 i = 0; i < length; ++i) values.push_back(mix(h, i));
  const auto result = rpc(rank_of(h), compute_vector, std::move(values), h, depth).get();
  return result.size() == length + 1 ? result.back() : 0;
}

u64 compute_and_throw(u64 h, int depth) {
  const u64 value = node(h, depth);
  throw std::runtime_error(std::to_string(value));
}
[[gnu::noinline]] u64 by_exception(u64 h, int depth) {
  try {
    switch (pick(h, of_detail, 4)) {
      case 0:
        compute_and_throw(h, depth);
        break;
      case 1:
        activate(compute_and_throw, h, depth);
        break;
      case 2:
        fork(compute_and_throw, h, depth).get();
        break;
      default:
        fork([&] { return compute_and_throw(h, depth); }).get();
    }
  } catch (const std::runtime_error& e) {
    if (pick(h, of_leaf, 2) == 0) yield();
    return number_in(e.what());
  }
  return 0;
}
[[gnu::noinline]] u64 by_exception_from_far(u64 h, int depth) {
  try {
    switch (pick(h, of_detail, 3)) {
      case 0:
        rpc(rank_of(h), compute_and_throw, h, depth).get();
        break;
      case 1:
        finish([&] { rpc_ff(rank_of(h), compute_and_throw, h, depth); });
        break;
      default: {
        thread t = spawn_on(rank_of(h), compute_and_throw, h, depth);
        t.join();
      }
    }
  } catch (const std::runtime_error& e) {
    return number_in(e.what());
  }
  return 0;
}

/// Nobody else is inside meanwhile; then the child, outside.
[[gnu::noinline]] u64 after_lock(u64 h, int depth) {
  {
    const stay here;
    const std::lock_guard turn(lock_of_rank);
    if (inside_lock++ != 0) fail("two fibers hold a mutex");
    if (pick(h, of_detail, 2) == 0) yield();
    if (pick(h, of_leaf, 8) == 0) sleep_for(std::chrono::microseconds(50));
    --inside_lock;
  }
  return node(h, depth);
}
[[gnu::noinline]] u64 pinned_here(u64 h, int depth) {
  const stay here;
  const rank_t before = rank_me();
  const u64 value = node(h, depth);
  return rank_me() == before ? value : 0;
}

u64 sequential(u64 h, int depth) {
  const way how = way_of(h);
  switch (how) {
    case way::call:
      return node(h, depth);
    case way::remote_call:
      return rpc(rank_of(h), node, h, depth).get();
    case way::one_way:
      return by_one_way(h, depth);
    case way::one_way_alone:
      return by_one_way_alone(h, depth);
    case way::forked:
      return fork(node, h, depth).get();
    case way::captured:
      return by_capture(h, depth);
    case way::together:
      return with_another(h, depth);
    case way::activated:
      return activate(touch_and_compute, h, depth);
    case way::activated_all:
      return activate(touch_all_and_compute, h, depth);
    case way::roaming:
      return activate(roam_and_compute, h, depth);
    case way::thread:
    case way::roaming_thread:
    case way::pushed_thread:
    case way::pmr_thread:
    case way::detached:
      return by_thread(h, depth, how);
    case way::continued:
      return by_continuation(h, depth);
    case way::relayed:
      return rpc_cc(rank_of(h), answer, h, depth, 2).get();
    case way::strings:
      return by_string(h, depth);
    case way::vectors:
      return by_vector(h, depth);
    case way::method:
      return cell_of(h).call<&cell::run>(h, depth);
    case way::async_method:
      return cell_of(h).async<&cell::run>(h, depth).get();
    case way::exclusive_method:
      return monitors[static_cast<std::size_t>(rank_of(h))].call<&turns::enter>(h) * node(h, depth);
    case way::then:
      return rpc(rank_of(h), node, h, depth).then([](u64 v) { return v + 1; }).get() - 1;
    case way::thrown:
      return by_exception(h, depth);
    case way::thrown_far:
      return by_exception_from_far(h, depth);
    case way::locked:
      return after_lock(h, depth);
    case way::slept:
      sleep_for(std::chrono::microseconds(20));
      return node(h, depth);
    case way::pinned:
      return pinned_here(h, depth);
    case way::bundled:
      return by_bundle(h, depth);
    case way::many:
      return among_many(h, depth);
    case way::count_:
      break;
  }
  return 0;
}

/// Begins a child; its future goes with the frames that hold it.
future<u64> concurrent(u64 h, int depth) {
  switch (way_of(h)) {
    case way::remote_call:
      return rpc(rank_of(h), node, h, depth);
    case way::relayed:
      return rpc_cc(rank_of(h), answer, h, depth, 2);
    case way::async_method:
      return cell_of(h).async<&cell::run>(h, depth);
    case way::then:
      return rpc(rank_of(h), node, h, depth).then([](u64 v) { return v + 1; }).then([](u64 v) {
        return v - 1;
      });
    case way::forked:
      return fork(node, h, depth);
    default:
      return fork(sequential, h, depth);
  }
}

u64 node(u64 h, int depth) {
  const u64 all = children(h, depth);
  u64 sum = h & 0xff;
  if (pick(h, of_order, 3) != 0) {
    for (u64 i = 0; i < all; ++i) sum = join(sum, sequential(child_of(h, i), depth - 1));
    return sum;
  }
  std::array<future<u64>, children_max> begun;
  std::array<u64, children_max> values{};
  for (u64 i = 0; i < all; ++i) begun[i] = concurrent(child_of(h, i), depth - 1);
  // Taken in any order.
  const bool backwards = pick(h, of_detail, 2) == 0;
  for (u64 k = 0; k < all; ++k) {
    const u64 i = backwards ? all - 1 - k : k;
    values[i] = begun[i].get();
  }
  for (u64 i = 0; i < all; ++i) sum = join(sum, values[i]);
  return sum;
}

// ---- A program ----------------------------------------------------------------------------------

u64 seed_now = 0;
unsigned limit_seconds = 60;

void say_hung(int) {
  std::array<char, 128> text{};
  const int n = std::snprintf(text.data(), text.size(),
                              "programs: rank %d: the program of seed %llu does not end\n",
                              rank_me(), static_cast<unsigned long long>(seed_now));
  if (n > 0) (void)!write(2, text.data(), static_cast<std::size_t>(n));
  _exit(3);
}

// Every second rank.
team half;

/// Collective operations that are under way while trees are computed.
class under_way {
 public:
  explicit under_way(u64 seed) : seed_(seed) {
    if (pick(seed, of_leaf, 2) == 0) return;
    begun_ = true;
    texts_ = all_gather_async(text_of(value(rank_me())), half);
    before_ = exclusive_scan_async(value(rank_me()), u64{1}, std::plus<>{});
    meets_ = barrier_async(half);
  }
  /// True when they returned what they should. All ranks must call it.
  bool end() {
    if (!begun_) return true;
    u64 expected = 1;
    for (rank_t r = 0; r < rank_me(); ++r) expected += value(r);
    bool right = before_.get() == expected;
    const auto texts = texts_.get();
    for (rank_t m = 0; m < half.rank_count(); ++m) {
      right = right && texts[static_cast<std::size_t>(m)] == text_of(value(half[m]));
    }
    meets_.get();
    return right;
  }

 private:
  u64 value(rank_t rank) const { return mix(seed_, 1'000 + static_cast<u64>(rank)); }

  u64 seed_;
  bool begun_ = false;
  future<std::vector<std::string>> texts_;
  future<u64> before_;
  future<void> meets_;
};

/// Each rank has some trees computed, at once or one after the other; then all compare sums.
bool run_program(u64 seed) {
  seed_now = seed;
  alarm(limit_seconds);
  const u64 mine = mix(mix(seed, 77), static_cast<u64>(rank_me()));
  const int depth = 2 + static_cast<int>(pick(seed, of_detail, 5));
  const u64 trees = 1 + pick(seed, of_children, 6);
  const bool at_once = pick(seed, of_order, 2) == 0;
  u64 wrong = 0;
  u64 sum = 0;
  u64 expected = 0;
  auto check = [&](u64 i, u64 value) {
    const u64 right = serial(mix(mine, i), depth);
    expected += right;
    sum += value;
    if (value == right) return;
    ++wrong;
    std::fprintf(stderr, "programs: rank %d: tree %llu of seed %llu has the value %llx, not %llx\n",
                 rank_me(), static_cast<unsigned long long>(i),
                 static_cast<unsigned long long>(seed), static_cast<unsigned long long>(value),
                 static_cast<unsigned long long>(right));
  };
  try {
    under_way others(seed);
    if (at_once) {
      std::vector<future<u64>> all;
      for (u64 i = 0; i < trees; ++i) all.push_back(concurrent(mix(mine, i), depth));
      for (u64 i = 0; i < trees; ++i) check(i, all[static_cast<std::size_t>(i)].get());
    } else {
      for (u64 i = 0; i < trees; ++i) {
        check(i, sequential(mix(mine, i), depth));
        if (pick(mix(seed, i), of_leaf, 3) == 0) barrier();
      }
    }
    if (!others.end()) ++wrong;
    // What others stored and counted is there once all have come.
    if (reduce(sum, std::plus<>{}) != reduce(expected, std::plus<>{})) ++wrong;
    const rank_t root = rank_of(seed);
    if (broadcast(rank_me() == root ? mix(seed, 5) : 0, root) != mix(seed, 5)) ++wrong;
    if (small_calls != 0) fail("a finish has returned before all calls made in it have run");
    if (inside_lock != 0) fail("a fiber has ended with a mutex");
  } catch (const std::exception& e) {
    ++wrong;
    std::fprintf(stderr, "programs: rank %d: an exception left the program of seed %llu: %s\n",
                 rank_me(), static_cast<unsigned long long>(seed), e.what());
    // The others would wait.
    std::_Exit(4);
  }
  const bool right = reduce(wrong, std::plus<>{}) == 0;
  alarm(0);
  return right;
}

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: programs [--seed S] [--programs N] [--limit SECONDS] [--without WAY]...\n"
               "ways:");
  for (const char* name : names) std::fprintf(stderr, " %s", name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

u64 number(const char* text) {
  u64 value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failure] = std::from_chars(text, end, value);
  if (failure != std::errc{} || at != end) usage();
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=]() -> int {
    u64 seed = 1;
    u64 programs = 1;
    for (int i = 1; i < argc; i += 2) {
      const std::string_view option = argv[i];
      if (i + 1 == argc) usage();
      const char* value = argv[i + 1];
      if (option == "--seed") {
        seed = number(value);
      } else if (option == "--programs") {
        programs = number(value);
      } else if (option == "--limit") {
        limit_seconds = static_cast<unsigned>(number(value));
      } else if (option == "--without") {
        bool found = false;
        for (std::size_t w = 0; w < names.size(); ++w) {
          if (std::string_view(names[w]) == value) found = left_out[w] = true;
        }
        if (!found) usage();
      } else {
        usage();
      }
    }
    struct sigaction action{};
    action.sa_handler = say_hung;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, nullptr);
    cells = all_gather(make<cell>(rank_me()));
    monitors = all_gather(make<turns>(rank_me()));
    half = team::world().split(rank_me() % 2);
    barrier();
    for (u64 i = 0; i < programs; ++i) {
      if (run_program(seed + i)) continue;
      if (rank_me() == 0) {
        std::fprintf(stderr, "programs: the program of seed %llu is wrong\n",
                     static_cast<unsigned long long>(seed + i));
      }
      return 1;
    }
    return 0;
  });
}
