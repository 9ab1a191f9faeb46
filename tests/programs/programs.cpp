// SPDX-License-Identifier: Apache-2.0
// Random programs over the public API: trees whose nodes are values, and whose edges are ways to
// have a value computed, mixed at random. A plain recursion says what each must be.
//
//   programs [--seed S] [--programs N] [--limit SECONDS] [--without WAY…]
//
// Runs N programs, of the seeds S, S + 1, … The first that has a wrong value, throws or takes
// longer than the limit is named with the options that run it alone; run.sh beside this adds the
// settings.
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "seeded.hpp"

using namespace sojourn;

namespace {

using seeded::mix;
using seeded::u64;

// ---- What a program is: a function of its seed --------------------------------------------------

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
  many,        ///< Small one-way calls beside it, in a finish.
  any_of_two,  ///< The first of two results, and then the other.
  timed,       ///< Waited for a little, again and again.
  atomic,      ///< Through a word that is changed by operations which return futures.
  stored,      ///< Through an array, by copies that return futures.
  everywhere,  ///< By an object that each rank has.
  everywhere_by_id,
  copied,     ///< Stored in an object anywhere, of which copies are read here until the value is
              ///< there, or which is fetched.
  published,  ///< By an update of a replicated object, whose version here is read until it is
              ///< there.
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
    "bundled",       "many",
    "any_of_two",    "timed",
    "atomic",        "stored",
    "everywhere",    "everywhere_by_id",
    "copied",        "published"};

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

[[noreturn]] void fail(const char* what) { throw std::logic_error(what); }

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

/// Of each rank one, which the others find.
struct office {
  rank_t of = rank_me();
  u64 run(u64 h, int depth) {
    if (of != rank_of(h) || of != rank_me()) fail("the dist_object of another rank was found");
    return node(h, depth);
  }
};
const dist_object<office>* offices = nullptr;
/// How many operations on words are under way: of each rank, counted by all.
using word = global_atomic<u64>;
std::vector<global_ptr<word>> words;

sojourn::mutex lock_of_rank;
long inside_lock = 0;
long small_calls = 0;

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
  to.call<&place::slot::set>(h % 3 == 0   ? via::fetch
                             : h % 3 == 1 ? via::automatic
                                          : via::rpc,
                             value);
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
[[gnu::noinline]] u64 through_copies(u64 h, int depth) {
  const auto there = make<place::slot>(rank_of(h, of_detail));
  rpc_ff(rank_of(h), store_node, there, h, depth);
  const via how = h % 5 < 2 ? via::fetch : h % 5 == 2 ? via::automatic : via::cache;
  while (there.call<&place::slot::times>(how) == 0) yield();
  if (there.call<&place::slot::times>(how) != 1) fail("a value was stored more than once");
  const u64 value = there.call<&place::slot::get>(via::cache);
  destroy(there);
  return value;
}
void publish_node(replicated<place::slot> to, u64 h, int depth) {
  to.update<&place::slot::set>(node(h, depth));
}
[[gnu::noinline]] u64 by_version(u64 h, int depth) {
  const rank_t writer = rank_of(h, of_detail);
  const auto there = rpc(writer, [] { return make_replicated<place::slot>(); }).get();
  rpc_ff(rank_of(h), publish_node, there, h, depth);
  while (there.read<&place::slot::times>() == 0) yield();
  if (there.read<&place::slot::times>() != 1) fail("a value was published more than once");
  const u64 value = there.read<&place::slot::get>();
  there.destroy();
  return value;
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
  return cell_of(h).call<&cell::touch>(h % 2 == 0 ? via::migrate : via::automatic) * node(h, depth);
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

/// Begins the child in one of three ways.
future<u64> begin(u64 h, int depth) {
  switch (pick(h, of_leaf, 3)) {
    case 0:
      return fork(node, h, depth);
    case 1:
      return cell_of(h).async<&cell::run>(h, depth);
    default:
      return rpc(rank_of(h), node, h, depth);
  }
}
/// Either may be ready at once, or come from another rank.
[[gnu::noinline]] u64 first_of_two(u64 h, int depth) {
  auto child = begin(h, depth);
  auto touched = cell_of(mix(h, of_order)).async<&cell::touch>();
  if (pick(h, of_detail, 2) == 0) {
    const std::size_t first = touch_any(child, touched);
    if (first == 0 ? !child.ready() : child.ready() || !touched.ready()) {
      fail("touch_any told of another future than the first that is ready");
    }
  } else {
    auto any = when_any(std::move(child), std::move(touched)).get();
    std::tie(child, touched) = std::move(any.futures);
    if (any.index == 0 ? !child.ready() : child.ready() || !touched.ready()) {
      fail("when_any told of another future than the first that is ready");
    }
  }
  return touched.get() * child.get();
}
[[gnu::noinline]] u64 after_short_waits(u64 h, int depth) {
  constexpr std::array<long, 4> spans_us{0, 1, 50, 1000};
  const auto span = std::chrono::microseconds(spans_us[pick(h, of_detail, spans_us.size())]);
  auto child = begin(h, depth);
  while (!child.wait_for(span)) {
    if (!child.valid()) fail("a wait that was too short has taken the result");
  }
  if (!child.ready()) fail("a wait has ended well before the result was there");
  return child.get();
}

/// The operations on one word are done in the order in which they are begun here.
[[gnu::noinline]] u64 through_a_word(u64 h, int depth) {
  const u64 value = node(h, depth);
  const stay here;
  const rank_t where = rank_of(h);
  const auto use = words[static_cast<std::size_t>(where)];
  auto in_use = atomic_fetch_add_async(use, 1);
  const auto at = make<word>(where, h);
  auto at_first = atomic_load_async(at);
  auto stored = atomic_store_async(at, h + 1);
  auto exchanged = atomic_exchange_async(at, value);
  auto compared = atomic_compare_exchange_async(at, value + 1, h);  // it is not that
  auto added = atomic_fetch_add_async(at, 5);
  auto subtracted = atomic_fetch_sub_async(at, 2);
  auto crossed = atomic_fetch_xor_async(at, ~u64{0});
  auto now = atomic_load_async(at);
  const u64 found = ~now.get() - 3;
  stored.get();
  if (at_first.get() != h || exchanged.get() != h + 1 || compared.get() != value ||
      added.get() != value || subtracted.get() != value + 5 || crossed.get() != value + 3) {
    fail("an operation on a word returned another value than was there before");
  }
  (void)in_use.get();
  destroy(at);
  if (atomic_fetch_sub_async(use, 1).get() == 0) fail("nobody used a word that is in use");
  return found;
}
[[gnu::noinline]] u64 through_an_array(u64 h, int depth) {
  const u64 value = node(h, depth);
  const stay here;
  const std::size_t length = 1 + static_cast<std::size_t>(pick(h, of_detail, 400));
  std::vector<u64> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = mix(h, i);
  const auto at = make_array<u64>(rank_of(h), length);
  put_async(std::span<const u64>(values), at).get();
  const auto last = at + static_cast<std::ptrdiff_t>(length - 1);
  auto before = load_async(last);
  if (before.get() != values.back()) fail("a load is of another value than was put there");
  store_async(last, value).get();
  std::vector<u64> found(length);
  get_async(at, std::span<u64>(found)).get();
  destroy_array(at, length);
  values.back() = value;
  if (found != values) fail("a get is of other values than were put and stored there");
  return found.back();
}

u64 run_in_office(dist_id<office> id, u64 h, int depth) {
  const stay here;
  return id.here().run(h, depth);
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
    case way::any_of_two:
      return first_of_two(h, depth);
    case way::timed:
      return after_short_waits(h, depth);
    case way::atomic:
      return through_a_word(h, depth);
    case way::stored:
      return through_an_array(h, depth);
    case way::copied:
      return through_copies(h, depth);
    case way::published:
      return by_version(h, depth);
    case way::everywhere:
      return offices->on(rank_of(h)).call<&office::run>(h, depth);
    case way::everywhere_by_id:
      return rpc(rank_of(h), run_in_office, offices->id(), h, depth).get();
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

/// Collective operations among a random team, which are under way while trees are computed.
class under_way {
 public:
  explicit under_way(u64 seed) : seed_(seed) {
    if (pick(seed, of_leaf, 2) == 0) return;
    among_ = team::world().split(colour(rank_me()), key(rank_me()));
    for (rank_t r = 0; r < rank_count(); ++r) {
      if (colour(r) == colour(rank_me())) members_.push_back(r);
    }
    std::sort(members_.begin(), members_.end(),
              [this](rank_t a, rank_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
    root_ = static_cast<rank_t>(pick(seed, of_rank, members_.size()));
    const u64 mine = value(rank_me());
    std::vector<std::string> for_each;
    for (const rank_t to : members_) for_each.push_back(text_of(mix(mine, static_cast<u64>(to))));

    texts_ = all_gather_async(text_of(mine), among_);
    before_ = exclusive_scan_async(mine, u64{1}, std::plus<>{}, among_);
    up_to_ = inclusive_scan_async(text_of(mine), std::plus<>{}, among_);
    exchanged_ = all_to_all_async(std::move(for_each), among_);
    at_root_ = reduce_async(mine, std::plus<>{}, root_, among_);
    gathered_ = gather_async(mine, root_, among_);
    told_ =
        broadcast_async(among_.rank_me() == root_ ? text_of(mine) : std::string(), root_, among_);
    meets_ = barrier_async(among_);
  }
  /// True when they returned what they should.
  bool end() {
    if (members_.empty()) return true;
    const auto me = static_cast<std::size_t>(
        std::find(members_.begin(), members_.end(), rank_me()) - members_.begin());
    const bool is_root = me == static_cast<std::size_t>(root_);
    std::vector<u64> values;
    std::vector<std::string> texts;
    std::vector<std::string> for_me;
    for (const rank_t r : members_) {
      values.push_back(value(r));
      texts.push_back(text_of(value(r)));
      for_me.push_back(text_of(mix(value(r), static_cast<u64>(rank_me()))));
    }
    const auto sum_of_first = [](const auto& all, std::size_t count, auto sum) {
      for (std::size_t i = 0; i < count; ++i) sum = sum + all[i];
      return sum;
    };
    const u64 sum = sum_of_first(values, values.size(), u64{0});

    // All are waited for, also after one that is wrong.
    bool right = is_the_team();
    right &= texts_.get() == texts;
    right &= before_.get() == sum_of_first(values, me, u64{1});
    right &= up_to_.get() == sum_of_first(texts, me + 1, std::string());
    right &= exchanged_.get() == for_me;
    right &= at_root_.get() == (is_root ? std::optional(sum) : std::nullopt);
    right &= gathered_.get() == (is_root ? values : std::vector<u64>());
    right &= told_.get() == texts[static_cast<std::size_t>(root_)];
    meets_.get();
    return right;
  }

 private:
  u64 value(rank_t rank) const { return mix(seed_, 1'000 + static_cast<u64>(rank)); }
  int colour(rank_t rank) const { return static_cast<int>(pick(value(rank), of_way, 2)); }
  int key(rank_t rank) const { return static_cast<int>(pick(value(rank), of_order, 3)); }

  bool is_the_team() const {
    bool right = among_.rank_count() == static_cast<rank_t>(members_.size());
    for (rank_t m = 0; right && m < among_.rank_count(); ++m) {
      const rank_t rank = members_[static_cast<std::size_t>(m)];
      right = among_[m] == rank && among_.from_world(rank) == m;
    }
    return right;
  }

  u64 seed_;
  team among_;
  std::vector<rank_t> members_;  ///< Of this rank's team, in order; empty: there is none.
  rank_t root_ = 0;
  future<std::vector<std::string>> texts_;
  future<u64> before_;
  future<std::string> up_to_;
  future<std::vector<std::string>> exchanged_;
  future<std::optional<u64>> at_root_;
  future<std::vector<u64>> gathered_;
  future<std::string> told_;
  future<void> meets_;
};

/// Each rank has some trees computed, at once or one after the other; then all compare sums.
bool run_program(u64 seed) {
  seeded::begin(seed);
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
    if (words[static_cast<std::size_t>(rank_me())].local()->load() != 0) {
      fail("additions to a word and subtractions from it have been lost");
    }
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
  const std::optional<u64> value = seeded::number_in(text);
  if (!value) usage();
  return *value;
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
        seeded::limit_seconds = static_cast<unsigned>(number(value));
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
    seeded::watch("programs");
    cells = all_gather(make<cell>(rank_me()));
    monitors = all_gather(make<turns>(rank_me()));
    words = all_gather(make<word>(rank_me(), u64{0}));
    // The programs end with a reduction: then nobody asks for an office any more.
    dist_object<office> mine;
    offices = &mine;
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
