// SPDX-License-Identifier: Apache-2.0
// Objects on any rank: making, calling, copying and destroying them.
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <compare>
#include <functional>
#include <new>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace sojourn::detail {
extern std::size_t heap_bytes_kept;  // src/memory/global_heap.hpp
}

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

void pause_us(int us) {
  std::uint64_t until = now_ns() + static_cast<std::uint64_t>(us) * 1000;
  while (now_ns() < until) yield();
}

int alive;  // counted things on this rank
struct counted {
  long value;
  rank_t born;
  explicit counted(long v = 1) : value(v), born(rank_me()) {
    if (v < 0) throw std::invalid_argument("less than nothing");
    ++alive;
  }
  ~counted() { --alive; }
  long get() const { return value; }
  void set(long v) { value = v; }
  long add(long v, const std::pair<int, int>& w) { return value += v + w.first * w.second; }
  rank_t where() const noexcept { return rank_me(); }
  long fail(bool how) const {
    if (how) throw std::domain_error("as asked");
    return value;
  }
  inline_string<32> name(const inline_string<32>& prefix) const {
    return inline_string<32>(prefix.str() + std::to_string(value));
  }
  long slow(int us) {
    long before = value;
    pause_us(us);
    return value - before;
  }
  long asks(global_ptr<counted> other, int us) {
    long theirs = other.call<&counted::slow>(via::rpc, us);
    return theirs + value;
  }
};

struct base_part {
  int x = 3;
  int of_base() const { return x; }
};
struct derived : base_part {
  int y = 4;
  int own() { return x + y; }
};
struct alignas(64) aligned {
  std::array<char, 100> bytes{};
  std::uint64_t remainder() const { return reinterpret_cast<std::uint64_t>(this) % 64; }
};

void made_and_destroyed_anywhere() {
  alive = 0;
  barrier();
  for (rank_t r = 0; r < rank_count(); ++r) {
    auto p = make<counted>(r, 40L + r);
    CHECK(p);
    CHECK_EQUAL(p.where(), r);
    CHECK_EQUAL(p.is_local(), r == rank_me());
    CHECK_EQUAL(p.call<&counted::where>(), r);
    CHECK_EQUAL(p.call<&counted::get>(via::rpc), 40 + r);
    p.call<&counted::set>(via::migrate, 5);
    CHECK_EQUAL(p.call<&counted::add>(via::rpc, 1, std::pair(2, 3)), 12);
    CHECK_EQUAL(p.call<&counted::name>(via::rpc, "value ").str(), "value 12");
    CHECK(p.is_local() ? p.local()->born == r : true);
    destroy(p);
  }
  destroy(global_ptr<counted>());
  barrier();
  CHECK_EQUAL(alive, 0);
  barrier();
  CHECK_THROWS(std::invalid_argument, make<counted>(rank_me(), -1L));
  CHECK_THROWS(std::invalid_argument, make<counted>(next(), -1L));
  CHECK_THROWS(error, make<counted>(rank_count(), 1L));
  auto d = make<derived>(next());
  CHECK_EQUAL(d.call<&derived::own>(), 7);
  CHECK_EQUAL(d.call<&base_part::of_base>(), 3);
  destroy(d);
  auto a = make<aligned>(next());
  CHECK_EQUAL(a.call<&aligned::remainder>(), 0u);
  destroy(a);
  barrier();
  CHECK_EQUAL(alive, 0);
}

void memory_is_used_again() {
  if (sojourn::detail::checked()) return;  // there it is kept out of use for a while
  std::set<std::uint64_t> large;
  for (int i = 0; i < 20; ++i) {
    auto p = make_array<char>(next(), 2u << 20);
    store(p + ((2 << 20) - 1), 'x');
    large.insert(p.address());
    destroy_array(p, 2u << 20);
  }
  CHECK(large.size() < 10);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    auto p = make<counted>(rank_me(), 1L);
    seen.insert(p.address());
    destroy(p);
  }
  CHECK(seen.size() < 10);
}

long page_faults() {
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// An array as long as one that was freed before it has its pages; when the rank has had nothing to
/// do for a second, the system has them back.
void long_arrays_do_not_fetch_their_memory_anew() {
  if (sojourn::detail::checked()) return;
  barrier();
  constexpr std::size_t bytes = 4u << 20;
  long before = 0;
  for (int i = 0; i < 21; ++i) {
    auto p = make_array<char>(rank_me(), bytes, uncleared);
    for (std::size_t at = 0; at < bytes; at += 4096) p.local()[at] = 'x';
    destroy_array(p, bytes);
    if (i == 0) before = page_faults();
  }
  CHECK(sanitized || page_faults() - before < 1024);
  CHECK(sojourn::detail::heap_bytes_kept >= bytes);
  sleep_for(std::chrono::milliseconds(1050));
  sleep_for(std::chrono::milliseconds(5));
  CHECK_EQUAL(sojourn::detail::heap_bytes_kept, 0u);
  auto zeros = make_array<char>(rank_me(), bytes);
  CHECK_EQUAL(zeros.local()[bytes - 1], 0);
  destroy_array(zeros, bytes);
  // No more is kept than is in use, beyond some.
  for (int i = 0; i < 2; ++i) {
    auto p = make_array<char>(rank_me(), 100u << 20, uncleared);
    destroy_array(p, 100u << 20);
    CHECK_EQUAL(sojourn::detail::heap_bytes_kept, 0u);
  }
}

struct throws_at_the_third {
  static inline int made;
  throws_at_the_third() {
    if (++made == 3) throw std::runtime_error("third");
    ++alive;
  }
  ~throws_at_the_third() { --alive; }
};

void arrays() {
  alive = 0;
  barrier();
  for (rank_t r : {rank_me(), next()}) {
    auto a = make_array<counted>(r, 100);
    CHECK_EQUAL((a + 7).call<&counted::get>(), 1);
    (a + 99).call<&counted::set>(via::rpc, 99);
    CHECK_EQUAL((a + 99).call<&counted::get>(via::migrate), 99);
    CHECK_EQUAL((a + 99) - a, 99);
    CHECK_EQUAL((a + 99) + -99 == a, true);
    CHECK((a + 1) > a);
    destroy_array(a, 100);
    auto zeros = make_array<long>(r, 1000);
    CHECK_EQUAL(load(zeros + 999), 0);
    destroy_array(zeros, 1000);
    auto none = make_array<long>(r, 0);
    CHECK(none);
    destroy_array(none, 0);
    throws_at_the_third::made = 0;
    barrier();
    CHECK_THROWS(std::runtime_error, make_array<throws_at_the_third>(r, 5));
    barrier();
    // Too large for a heap, and for arithmetic.
    CHECK_THROWS(std::bad_array_new_length, make_array<long>(r, ~std::size_t{0} / 4));
    CHECK_THROWS(std::bad_alloc, make_array<char>(r, std::size_t{1} << 46));
  }
  destroy_array(global_ptr<long>(), 5);
  barrier();
  CHECK_EQUAL(alive, 0);
}

void null_and_wild_pointers_are_refused() {
  global_ptr<counted> null;
  CHECK(!null);
  CHECK(null == nullptr);
  CHECK(!null.is_local());
  CHECK_THROWS(error, null.call<&counted::get>());
  CHECK_THROWS(error, null.call<&counted::get>(via::migrate));
  CHECK_THROWS(error, null.async<&counted::get>());
  CHECK_THROWS(error, load(global_ptr<int>()));
  CHECK_THROWS(error, store(global_ptr<int>(), 1));
  auto wild = global_ptr<counted>::at(~std::uint64_t{0} - 4096);
  CHECK_THROWS(error, wild.call<&counted::get>());
  int on_the_stack = 0;
  CHECK_THROWS(error, load(global_ptr<int>(&on_the_stack)));
  try {
    null.call<&counted::get>(via::rpc);
  } catch (const error& e) {
    CHECK(std::string(e.what()).find("counted::get") != std::string::npos);
    CHECK(std::string(e.what()).find("null") != std::string::npos);
  }
  // In an activation, too.
  CHECK_THROWS(
      error,
      activate([](global_ptr<counted> p) { return p.call<&counted::get>(via::migrate); }, null));
}

struct first_base {
  long a = 1;
};
struct second_base {
  long b = 2;
  long get_b() const { return b; }
};
struct two_bases : first_base, second_base {
  long c = 3;
};
struct incomplete;

void pointers_count_elements() {
  constexpr std::ptrdiff_t count = 100;
  auto first = make_array<int>(next(), count);
  const auto end = first + count;
  CHECK_EQUAL(end - first, count);
  CHECK_EQUAL(first - end, -count);
  CHECK(3 + first == first + 3);
  CHECK(end - 97 == first + 3);
  CHECK_EQUAL((first + 3).address() - first.address(), 3 * sizeof(int));
  int n = 0;
  for (auto p = first; p != end; ++p) store(p, n++);
  auto p = first;
  CHECK(p++ == first && p == first + 1);
  CHECK(p-- == first + 1 && p == first);
  CHECK((p += 10) == first + 10 && (p -= 4) == first + 6 && --p == first + 5);
  CHECK_EQUAL(load(p), 5);
  global_ptr<const int> c = p;
  CHECK_EQUAL(c - first, 5);
  CHECK_EQUAL(first - c, -5);
  CHECK(c == p && c > first && first < c && c <= p && (c <=> p) == std::strong_ordering::equal);
  CHECK(p != nullptr && global_ptr<int>() == nullptr && !global_ptr<int>());
  static_assert(global_ptr<int>::at(64) + 2 == global_ptr<int>::at(72));
  static_assert(std::is_same_v<decltype(first)::difference_type, std::ptrdiff_t>);
  static_assert(!std::is_convertible_v<global_ptr<const int>, global_ptr<int>>);

  // Against plain pointers, at random.
  std::array<int, count> plain{};
  std::minstd_rand random(static_cast<unsigned>(rank_me()) + 1);
  std::ptrdiff_t at = 0;
  auto q = first;
  for (int step = 0; step < 2000; ++step) {
    const std::ptrdiff_t to = static_cast<std::ptrdiff_t>(random() % (count + 1));
    switch (random() % 4) {
      case 0:
        q += to - at;
        break;
      case 1:
        q -= at - to;
        break;
      case 2:
        q = q + (to - at);
        break;
      default:
        q = (to - at) + q;
    }
    at = to;
    const auto other = static_cast<std::ptrdiff_t>(random() % (count + 1));
    CHECK_EQUAL(q - (first + other), (plain.data() + at) - (plain.data() + other));
    CHECK((q < first + other) == (at < other));
  }
  destroy_array(first, static_cast<std::size_t>(count));
}

void pointers_are_cast() {
  auto whole = make<two_bases>(next());
  auto second = static_pointer_cast<second_base>(whole);
  CHECK_EQUAL(second.address() - whole.address(), sizeof(first_base));
  CHECK_EQUAL(second.call<&second_base::get_b>(), 2);
  CHECK(static_pointer_cast<two_bases>(second) == whole);
  CHECK(static_pointer_cast<const second_base>(whole) == second);
  CHECK_EQUAL(load(reinterpret_pointer_cast<long>(second)), 2);
  CHECK(!static_pointer_cast<second_base>(global_ptr<two_bases>()));
  CHECK(!static_pointer_cast<two_bases>(global_ptr<second_base>()));
  global_ptr<const two_bases> fixed = whole;
  CHECK(const_pointer_cast<two_bases>(fixed) == whole);
  auto untyped = static_pointer_cast<void>(whole);
  CHECK(static_pointer_cast<two_bases>(untyped) == whole && untyped.where() == next());
  CHECK(reinterpret_pointer_cast<incomplete>(whole).address() == whole.address());
  CHECK(reinterpret_pointer_cast<incomplete>(whole) != nullptr);
  destroy(whole);
}

void const_and_comparison() {
  auto p = make<counted>(next(), 8L);
  global_ptr<const counted> c = p;
  CHECK_EQUAL(c.call<&counted::get>(), 8);
  CHECK_EQUAL(c.call<&counted::get>(via::migrate), 8);
  CHECK_EQUAL(c.async<&counted::get>().get(), 8);
  CHECK_EQUAL(c.address(), p.address());
  CHECK(std::hash<global_ptr<counted>>()(p) == std::hash<global_ptr<counted>>()(p));
  auto q = make<counted>(next(), 9L);
  CHECK(p != q);
  CHECK((p < q) != (q < p));
  // As delete does, it takes pointers to const.
  for (rank_t r : {rank_me(), next()}) {
    destroy_array(global_ptr<const long>(make_array<long>(r, 3)), 3);
  }
  destroy(c);
  destroy(q);
}

void exceptions_of_methods() {
  for (rank_t r : {rank_me(), next()}) {
    auto p = make<counted>(r, 8L);
    for (via how : {via::rpc, via::migrate}) {
      CHECK_THROWS(std::domain_error, p.call<&counted::fail>(how, true));
      CHECK_THROWS(std::domain_error, p.async<&counted::fail>(how, true).get());
      CHECK_EQUAL(p.call<&counted::fail>(how, false), 8);
    }
    auto unread = p.async<&counted::fail>(via::rpc, true);
    CHECK(unread.valid());
    destroy(p);
  }
}

void methods_that_do_not_block_are_atomic() {
  // Every rank adds to one object; no addition is lost, for each runs whole.
  auto p = broadcast(make<counted>(0, 0L), 0);
  barrier();
  std::vector<future<long>> all;
  for (int i = 0; i < 500; ++i) all.push_back(p.async<&counted::add>(via::rpc, 1, std::pair(0, 0)));
  for (auto& f : all) f.get();
  barrier();
  if (rank_me() == 0) CHECK_EQUAL(p.call<&counted::get>(), 500L * rank_count());
  barrier();
}

void async_here_runs_at_once() {
  auto p = make<counted>(rank_me(), 5L);
  auto before = counters_now();
  auto f = p.async<&counted::add>(via::rpc, 1L, std::pair(1, 1));
  CHECK(f.ready());
  CHECK_EQUAL(p.local()->value, 7);
  CHECK_EQUAL(f.get(), 7);
  auto used = counters_now() - before;
  CHECK_EQUAL(used.cuts + used.fibers_made + used.switches, 0);
  CHECK_EQUAL(used.calls_local, 1);
  // One that blocks: the caller goes on, and what it does is seen.
  auto slow = p.async<&counted::slow>(via::rpc, 1500);
  CHECK(!slow.ready());
  p.local()->value += 1000;
  CHECK_EQUAL(slow.get(), 1000);
  // Many at a time, each waiting for another object. Not so briefly that the answer is there before
  // the caller goes on.
  auto q = make<counted>(next(), 3L);
  std::vector<future<long>> all;
  for (int i = 0; i < 100; ++i) all.push_back(p.async<&counted::asks>(via::rpc, q, 2000));
  p.local()->value = 10;
  for (auto& g : all) CHECK_EQUAL(g.get(), 10);
  destroy(p);
  destroy(q);
}

struct link_node {
  global_ptr<link_node> to;
  long sum(int depth) {
    if (depth == 0) {
      pause_us(50);
      return 1;
    }
    auto a = to.async<&link_node::sum>(via::rpc, depth - 1);
    auto b = to.async<&link_node::sum>(via::migrate, depth - 1);
    return a.get() + b.get();
  }
};

void forks_within_forks() {
  // A ring of objects, two on each rank, so that every other call is local.
  auto first = make<link_node>(rank_me());
  auto second = make<link_node>(rank_me());
  auto all = all_gather(std::pair(first, second));
  first.local()->to = second;
  second.local()->to = all[static_cast<std::size_t>(next())].first;
  barrier();
  CHECK_EQUAL(first.call<&link_node::sum>(via::rpc, 7), 128);
  auto f = first.async<&link_node::sum>(via::rpc, 6);
  auto g = second.async<&link_node::sum>(via::rpc, 6);
  CHECK_EQUAL(f.get() + g.get(), 128);
  barrier();
  destroy(first);
  destroy(second);
}

void async_elsewhere() {
  auto p = make<counted>(next(), 5L);
  std::vector<future<long>> all;
  for (int i = 0; i < 50; ++i) all.push_back(p.async<&counted::slow>(via::rpc, 200));
  for (auto& f : all) CHECK_EQUAL(f.get(), 0);
  auto v = p.async<&counted::set>(via::migrate, 77L);
  v.get();
  CHECK_EQUAL(p.call<&counted::get>(), 77);
  destroy(p);
}

struct plain {
  int a;
  double b;
  std::array<char, 300> c;
};

void load_and_store() {
  for (rank_t r : {rank_me(), next(), last()}) {
    auto p = make<plain>(r, 1, 2.5, std::array<char, 300>{});
    plain v = load(p);
    CHECK_EQUAL(v.a, 1);
    CHECK_EQUAL(v.b, 2.5);
    v.a = 9;
    v.c[299] = 'z';
    store(p, v);
    CHECK_EQUAL(load(global_ptr<const plain>(p)).c[299], 'z');
    CHECK_EQUAL(load(p).a, 9);
    destroy(p);
  }
}

void put_and_get_of_every_size() {
  for (std::size_t n : {0u, 1u, 3u, 100u, 5000u, 100001u, 3000001u}) {
    auto p = make_array<int>(next(), n);
    std::vector<int> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<int>(i * 31 + n);
    auto before = counters_now();
    put(std::span(out), p);
    const auto put_copies = (counters_now() - before).bulk_copies;
    std::vector<int> in(n);
    get(p, std::span(in));
    auto used = counters_now() - before;
    CHECK(in == out);
    CHECK_EQUAL(used.bulk_bytes, 2 * n * sizeof(int));
    if (check::system_copies()) {
      CHECK_EQUAL(put_copies, n * sizeof(int));
      // A short one may come by message: into that, into the ticket, into place.
      const auto get_copies = used.bulk_copies - put_copies;
      const bool is_short = n * sizeof(int) <= 2048;
      CHECK(get_copies == n * sizeof(int) || (is_short && get_copies == 3 * n * sizeof(int)));
    }
    if (n > 10) {
      std::vector<int> part(5);
      get(global_ptr<const int>(p + static_cast<std::ptrdiff_t>(n - 6)), std::span(part));
      CHECK_EQUAL(part[4], out[n - 2]);
    }
    // Out of the heap that it begins in. Checked mode ends the program there, and says so.
    if (!sojourn::detail::checked()) {
      CHECK_THROWS(error, get(p, std::span<int>(in.data(), std::size_t{1} << 50)));
    }
    destroy_array(p, n);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("objects are made and destroyed anywhere", made_and_destroyed_anywhere);
    check::claim("memory is used again", memory_is_used_again);
    check::claim("long arrays do not fetch their memory anew",
                 long_arrays_do_not_fetch_their_memory_anew);
    check::claim("arrays", arrays);
    check::claim("null and wild pointers are refused", null_and_wild_pointers_are_refused);
    check::claim("const and comparison", const_and_comparison);
    check::claim("pointers count elements", pointers_count_elements);
    check::claim("pointers are cast", pointers_are_cast);
    check::claim("exceptions of methods", exceptions_of_methods);
    check::claim("methods that do not block are atomic", methods_that_do_not_block_are_atomic);
    check::claim("async here runs at once", async_here_runs_at_once);
    check::claim("forks within forks", forks_within_forks);
    check::claim("async elsewhere", async_elsewhere);
    check::claim("load and store", load_and_store);
    check::claim("put and get of every size, one copy a byte", put_and_get_of_every_size);
    return check::verdict();
  });
}
