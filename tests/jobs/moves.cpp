// SPDX-License-Identifier: Apache-2.0
// Objects that move to the ranks that use them (via::fetch).
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

/// An object that nobody uses through a pointer: it moves.
struct counter {
  std::uint64_t value = 0;
  std::uint64_t changes = 0;
  std::uint64_t twice = 0;  ///< Always 2 * value: a torn copy would show.

  std::uint64_t get() const {
    CHECK_EQUAL(twice, 2 * value);
    return value;
  }
  std::uint64_t add(std::uint64_t n) {
    CHECK_EQUAL(twice, 2 * value);
    value += n;
    twice = 2 * value;
    ++changes;
    return value;
  }
  std::uint64_t changed() const { return changes; }
  int rank() const { return rank_me(); }
  int move_in() { return rank_me(); }
  global_ptr<const counter> self() const { return global_ptr<const counter>(this); }
  std::uint64_t append(std::string text, std::vector<std::uint64_t> numbers) {
    std::uint64_t sum = text.size();
    for (const std::uint64_t n : numbers) sum += n;
    return add(sum);
  }
  /// Waits in its middle.
  std::uint64_t add_slowly(std::uint64_t n) {
    sleep_for(std::chrono::microseconds(200));
    return add(n);
  }
  std::uint64_t add_and_ask(std::uint64_t n, rank_t of) {
    add(n);
    rpc(of, [] {}).get();
    return add(n);
  }
  /// Changes the object in the middle of a method that only reads it.
  std::uint64_t seen_after_change(via how) const {
    const std::uint64_t before = value;
    const_pointer_cast<counter>(self()).call<&counter::add>(how, 1);
    return get() - before;
  }
  std::uint64_t get_twice(rank_t of) const {
    const std::uint64_t first = get();
    rpc(of, [] {}).get();
    CHECK(get() >= first);
    return get();
  }
};

/// One that is used through a pointer: it stays.
struct pointed {
  int value = 0;
  int rank() const { return rank_me(); }
  int set(int to) { return value = to; }
};

struct pair {
  counter one;
  counter other;
  std::uint64_t sum() const { return one.value + other.value; }
  std::uint64_t add_both(std::uint64_t n) { return one.add(n) + other.add(n); }
  /// Calls its part while it is in progress itself.
  std::uint64_t add_through_part(std::uint64_t n) {
    return global_ptr<counter>(&other).call<&counter::add>(via::rpc, n);
  }
  global_ptr<counter> second() { return global_ptr<counter>(&other); }
};

template <class T>
global_ptr<T> made_on(rank_t rank) {
  global_ptr<T> p;
  if (rank_me() == rank) p = make<T>(rank);
  return broadcast(p, rank);
}

/// In checked mode, the first call that wants the object runs at its home, which checks it.
void call_first(global_ptr<counter> p) {
  if (detail::checked() && rank_me() == (p.home() + 1) % rank_count())
    p.call<&counter::get>(via::fetch);
  barrier();
}

void an_object_moves_to_the_rank_that_fetches_it() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  if (rank_me() == last) {
    CHECK_EQUAL(p.call<&counter::add>(via::fetch, 5), 5u);
    CHECK_EQUAL(p.call<&counter::rank>(via::rpc), last);
    CHECK_EQUAL(p.where(), last);
    CHECK_EQUAL(p.home(), 0);
    CHECK(p.call<&counter::self>(via::fetch) == p);
    const counters before = counters_now();
    for (int i = 0; i < 100; ++i) p.call<&counter::add>(via::fetch, 1);
    CHECK_EQUAL((counters_now() - before).requests_sent, 0u);
  }
  barrier();
  CHECK_EQUAL(p.call<&counter::get>(via::rpc), 105u);
  CHECK_EQUAL(p.call<&counter::rank>(via::rpc), last);
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void calls_follow_the_object() {
  const auto p = made_on<counter>(0);
  call_first(p);
  std::uint64_t calls = 0;
  for (rank_t to = rank_count(); to-- > 0;) {
    barrier();
    if (rank_me() == to) CHECK_EQUAL(p.call<&counter::move_in>(via::fetch), to);
    barrier();
    CHECK_EQUAL(p.call<&counter::rank>(via::rpc), to);
    activate([](global_ptr<counter> q) { return q.call<&counter::add>(via::migrate, 1); }, p);
    p.call<&counter::append>(via::rpc, std::string("ab"), std::vector<std::uint64_t>{1, 2});
    p.async<&counter::add>(1).get();
    calls += 7;
    barrier();
    const auto expected = calls * static_cast<unsigned>(rank_count());
    CHECK_EQUAL(p.call<&counter::get>(via::cache), expected);
    CHECK_EQUAL(p.call<&counter::get>(via::cache), expected);
  }
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void hints_shorten() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  if (rank_me() == last) p.call<&counter::move_in>(via::fetch);
  barrier();
  const counters before = counters_now();
  p.call<&counter::get>(via::rpc);
  barrier();
  const counters first = counters_now();
  for (int i = 0; i < 10; ++i) p.call<&counter::get>(via::rpc);
  barrier();
  const auto relayed = [](const counters& n) { return reduce(n.calls_relayed, std::plus<>{}); };
  CHECK_EQUAL(relayed(first - before),
              static_cast<std::uint64_t>(rank_count() > 2 ? rank_count() - 2 : 0));
  CHECK_EQUAL(relayed(counters_now() - first), 0u);
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

using counters_of_all = std::array<global_ptr<counter>, 3>;

/// Calls of all kinds, by all words; returns how often it has changed something.
std::uint64_t random_calls(counters_of_all all, unsigned seed) {
  std::mt19937 random(seed);
  const via words[] = {via::rpc, via::migrate, via::cache, via::fetch, via::fetch};
  std::uint64_t changes = 0;
  std::uint64_t seen[3] = {};
  for (int i = 0; i < 150; ++i) {
    const std::size_t which = random() % all.size();
    const auto p = all[which];
    const via how = words[random() % 5];
    const auto rank = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
    switch (random() % 6) {
      case 0:
        p.call<&counter::add_and_ask>(how, 1, rank);
        changes += 2;
        break;
      case 1:
        CHECK(p.call<&counter::get_twice>(how, rank) >= seen[which]);
        break;
      case 2:
        p.async<&counter::add>(1).get();
        ++changes;
        break;
      case 3:
      case 4: {
        const std::uint64_t now = p.call<&counter::get>(how);
        CHECK(now >= seen[which]);
        seen[which] = now;
        break;
      }
      default:
        p.call<&counter::add>(how, 1);
        ++changes;
    }
  }
  return changes;
}

void all_fetch_at_once() {
  counters_of_all all;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = made_on<counter>(static_cast<rank_t>(i) % rank_count());
  barrier();
  const char* seed = std::getenv("SOJOURN_TEST_SEED");
  std::mt19937 random(
      (seed != nullptr ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 1u) * 31u +
      static_cast<unsigned>(rank_me()));
  std::vector<future<std::uint64_t>> fibers;
  for (int i = 0; i < 3; ++i)
    fibers.push_back(rpc(rank_me(), random_calls, all, static_cast<unsigned>(random())));
  std::uint64_t mine = 0;
  for (auto& f : fibers) mine += f.get();
  barrier();
  const std::uint64_t expected = reduce(mine, std::plus<>{});
  std::uint64_t changes = 0, values = 0;
  for (const auto p : all) {
    changes += p.call<&counter::changed>(via::rpc);
    values += p.call<&counter::get>(via::rpc);
  }
  CHECK_EQUAL(changes, expected);
  CHECK_EQUAL(values, expected);
  barrier();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (rank_me() == (static_cast<rank_t>(i) + 1) % rank_count()) destroy(all[i]);
  }
  barrier();
}

void a_method_in_progress_keeps_the_object() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  if (rank_me() == 0) {
    for (int i = 0; i < 20; ++i) p.call<&counter::add_slowly>(via::rpc, 1);
  } else if (rank_me() == last) {
    for (int i = 0; i < 20; ++i) p.call<&counter::get>(via::fetch);
  }
  barrier();
  CHECK_EQUAL(p.call<&counter::get>(via::rpc), 20u);
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void one_with_pointers_stays() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<pointed>(0);
  barrier();
  if (rank_me() == last) CHECK_EQUAL(p.call<&pointed::set>(via::fetch, 3), 3);
  barrier();
  if (rank_me() == 0) CHECK_EQUAL(p.local()->value, 3);
  CHECK_EQUAL(p.call<&pointed::rank>(via::rpc), 0);
  CHECK_EQUAL(p.where(), 0);
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void a_fixed_object_stays() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  if (rank_me() == last) p.call<&counter::add>(via::fetch, 1);
  barrier();
  if (rank_me() == 0) {
    fix(p);
    CHECK_EQUAL(p.call<&counter::add>(via::fetch, 1), 2u);
    CHECK_EQUAL(p.call<&counter::rank>(via::rpc), last);
    unfix(p);
    CHECK_EQUAL(p.call<&counter::add>(via::fetch, 1), 3u);
    CHECK_EQUAL(p.call<&counter::rank>(via::rpc), 0);
    fix(p);
  }
  barrier();
  CHECK_EQUAL(p.call<&counter::move_in>(via::fetch), 0);
  barrier();
  if (rank_me() == last) destroy(p);
  barrier();
}

void parts_come_home() {
  const rank_t last = rank_count() - 1;
  const auto p = made_on<pair>(0);
  const auto part = broadcast(rank_me() == 0 ? p.call<&pair::second>() : global_ptr<counter>(), 0);
  barrier();
  if (rank_me() == last) CHECK_EQUAL(part.call<&counter::add>(via::fetch, 5), 5u);
  barrier();
  CHECK_EQUAL(p.call<&pair::sum>(via::rpc), 5u);
  barrier();
  if (rank_me() == last) p.call<&pair::add_both>(via::fetch, 1);
  barrier();
  CHECK_EQUAL(part.call<&counter::get>(via::rpc), 6u);
  CHECK_EQUAL(p.call<&pair::sum>(via::rpc), 7u);
  barrier();
  if (rank_me() == last) CHECK_EQUAL(p.call<&pair::add_through_part>(via::fetch, 1), 7u);
  barrier();
  CHECK_EQUAL(part.call<&counter::add>(via::rpc, 0), 7u);
  CHECK_EQUAL(part.call<&counter::get>(via::cache), 7u);
  CHECK_EQUAL(p.call<&pair::sum>(via::cache), 8u);
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void a_method_sees_the_change_that_it_makes() {
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  for (rank_t turn = 0; turn < rank_count(); ++turn) {
    if (rank_me() == turn) {
      for (const via how : {via::rpc, via::cache, via::fetch}) {
        p.call<&counter::get>(via::cache);
        CHECK_EQUAL(p.call<&counter::seen_after_change>(via::cache, how), 1u);
        CHECK_EQUAL(p.call<&counter::seen_after_change>(via::fetch, how), 1u);
      }
    }
    barrier();
  }
  if (rank_me() == 0) destroy(p);
  barrier();
}

/// Nothing is copied here, so nothing resets what settles.
void all_fetch_one_object() {
  const auto p = made_on<counter>(0);
  call_first(p);
  barrier();
  for (int i = 0; i < 300; ++i) p.call<&counter::add>(via::fetch, 1);
  barrier();
  CHECK_EQUAL(p.call<&counter::get>(via::rpc), 300u * static_cast<unsigned>(rank_count()));
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void elements_of_arrays_move() {
  constexpr std::size_t count = 500;
  global_ptr<counter> first;
  if (rank_me() == 0) first = make_array<counter>(0, count);
  first = broadcast(first, 0);
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<int>(i % static_cast<unsigned>(rank_count())) == rank_me())
      (first + static_cast<std::ptrdiff_t>(i)).call<&counter::add>(via::fetch, i);
  }
  barrier();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto p = first + static_cast<std::ptrdiff_t>(i);
    sum += p.call<&counter::get>(via::rpc);
    if (!detail::checked())
      CHECK_EQUAL(p.where(), static_cast<rank_t>(i % static_cast<unsigned>(rank_count())));
  }
  CHECK_EQUAL(sum, count * (count - 1) / 2);
  barrier();
  if (rank_me() == 0) destroy_array(first, count);
  barrier();
}

/// It comes in the background.
bool comes_here(global_ptr<counter> p) {
  const auto begun = std::chrono::steady_clock::now();
  while (p.where() != rank_me()) {
    if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(20)) return false;
    yield();
  }
  return true;
}

/// The second is attached to the first, and the third to the second.
void attached_objects_follow() {
  const rank_t last = rank_count() - 1;
  const std::array<global_ptr<counter>, 3> all{made_on<counter>(0), made_on<counter>(last / 2),
                                               made_on<counter>(last)};
  for (const auto p : all) call_first(p);
  if (rank_me() == last) {
    attach(all[0], all[1]);
    attach(all[1], all[2]);
  }
  for (rank_t turn = last; turn >= 0; --turn) {
    barrier();
    if (rank_me() == turn) {
      all[0].call<&counter::add>(via::fetch, 1);
      CHECK(comes_here(all[1]));
      CHECK(comes_here(all[2]));
      CHECK_EQUAL(all[0].where(), rank_me());
    }
  }
  // What follows is not followed.
  barrier();
  if (rank_me() == last) {
    all[2].call<&counter::add>(via::fetch, 1);
    all[1].call<&counter::add>(via::fetch, 1);
    CHECK_EQUAL(all[0].call<&counter::rank>(via::rpc), 0);
    detach(all[0], all[1]);
  }
  barrier();
  if (rank_me() == last / 2) all[0].call<&counter::add>(via::fetch, 1);
  barrier();
  CHECK_EQUAL(all[1].call<&counter::rank>(via::rpc), last);
  CHECK_EQUAL(all[0].call<&counter::get>(via::rpc), static_cast<unsigned>(rank_count()) + 1);
  barrier();
  if (rank_me() == 0) {
    for (const auto p : all) destroy(p);
  }
  barrier();
}

/// Each of two is attached to the other, both are fetched by all ranks at once, and sometimes
/// destroyed and made again.
void attached_in_a_circle() {
  for (int round = 0; round < 10; ++round) {
    const auto a = made_on<counter>(0);
    const auto b = made_on<counter>(rank_count() - 1);
    barrier();
    if (rank_me() == round % rank_count()) {
      attach(a, b);
      attach(b, a);
      attach(b, a);
    }
    barrier();
    for (int i = 0; i < 40; ++i)
      (i % 3 == 0 ? a : b).call<&counter::add>(i % 5 == 0 ? via::rpc : via::fetch, 1);
    barrier();
    CHECK_EQUAL(a.call<&counter::get>(via::rpc) + b.call<&counter::get>(via::rpc),
                40u * static_cast<unsigned>(rank_count()));
    barrier();
    if (rank_me() == 0) destroy(a);
    if (rank_me() == rank_count() - 1) {
      destroy(b);
      // It probably lies where the destroyed one lay, and follows nobody.
      const auto next = make<counter>(rank_me());
      CHECK_EQUAL(next.call<&counter::add>(via::rpc, 1), 1u);
      CHECK_EQUAL(next.where(), rank_me());
      destroy(next);
    }
    barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("an object moves to the rank that fetches it, and keeps its address",
                 an_object_moves_to_the_rank_that_fetches_it);
    check::claim("calls by every word follow an object that has moved", calls_follow_the_object);
    check::claim("a call that was relayed is the last one that is", hints_shorten);
    check::claim("objects that all ranks fetch at once lose no change", all_fetch_at_once);
    check::claim("an object does not leave while a method that changes it is suspended",
                 a_method_in_progress_keeps_the_object);
    check::claim("an object that the program uses through pointers stays where it was made",
                 one_with_pointers_stays);
    check::claim("a fixed object stays", a_fixed_object_stays);
    check::claim("a method sees the change that it makes", a_method_sees_the_change_that_it_makes);
    check::claim("all fetch one object", all_fetch_one_object);
    check::claim("a whole is right after one of its parts has moved, and the other way round",
                 parts_come_home);
    check::claim(
        "elements of an array move each by itself, and come home when the array is destroyed",
        elements_of_arrays_move);
    check::claim("attached objects follow the one that is fetched", attached_objects_follow);
    check::claim("objects attached in a circle lose no change", attached_in_a_circle);
    return check::verdict();
  });
}
