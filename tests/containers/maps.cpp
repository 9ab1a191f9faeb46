// SPDX-License-Identifier: Apache-2.0
// dist_map and dist_counter: each operation does what it says, and random operations of all ranks
// leave what a serial model has. The seed says everything that is random.
//
//   maps [--operations N]
#include <sojourn/containers/dist_counter.hpp>
#include <sojourn/containers/dist_map.hpp>
#include <sojourn/containers/hash_table.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/check.hpp"

using namespace sojourn;

namespace {

using u64 = std::uint64_t;

u64 seed = 1;
int operations = 2000;  // of each rank in each round

rank_t next() { return (rank_me() + 1) % rank_count(); }

// ---- The table of one rank ----------------------------------------------------------------------

/// All hashes are near each other, so that keys are searched for at many places.
struct crowded_hash {
  std::size_t operator()(u64 key) const { return key % 7; }
};

template <class Hash>
void a_table_agrees_with_a_model() {
  std::mt19937_64 random(seed);
  containers::hash_table<u64, std::string, Hash> table;
  std::unordered_map<u64, std::string> model;
  using t = decltype(table);
  for (int i = 0; i < 20'000; ++i) {
    const u64 key = random() % 300;
    switch (random() % 5) {
      case 0:
      case 1: {
        const std::string value = std::to_string(i);
        const auto [element, is_new] = table.find_or_make(key, t::hash_of(key), value);
        CHECK_EQUAL(is_new, model.try_emplace(key, value).second);
        CHECK_EQUAL(element->second, model[key]);
        break;
      }
      case 2:
        CHECK_EQUAL(table.erase(key, t::hash_of(key)), model.erase(key) == 1);
        break;
      default: {
        const auto* const element = table.find(key);
        CHECK_EQUAL(element != nullptr, model.contains(key));
        if (element != nullptr) CHECK_EQUAL(element->second, model[key]);
      }
    }
    if (i % 4000 == 3999) {
      std::map<u64, std::string> all(table.begin(), table.end());
      CHECK(all == (std::map<u64, std::string>(model.begin(), model.end())));
      CHECK_EQUAL(table.size(), model.size());
    }
    if (i % 7000 == 6999) {
      table.clear();
      model.clear();
    }
  }
}

void elements_stay_where_they_are() {
  containers::hash_table<u64, u64> table;
  using t = decltype(table);
  std::vector<std::pair<const u64, u64>*> at;
  for (u64 key = 0; key < 10'000; ++key)
    at.push_back(table.find_or_make(key, t::hash_of(key), key * 2).first);
  for (u64 key = 0; key < 10'000; key += 2) CHECK(table.erase(key, t::hash_of(key)));
  for (u64 key = 1; key < 10'000; key += 2) {
    CHECK(table.find(key) == at[key]);
    CHECK_EQUAL(at[key]->second, key * 2);
  }
  // In the order in which they came.
  u64 expected = 1;
  for (const auto& [key, value] : table) {
    CHECK_EQUAL(key, expected);
    expected += 2;
  }
}

void an_iterator_survives_inserts_and_names_an_erased_element() {
  containers::hash_table<u64, u64> table;
  using t = decltype(table);
  for (u64 key = 0; key < 100; ++key) table.find_or_make(key, t::hash_of(key), key);
  std::size_t met = 0;
  for (const auto& [key, value] : table) {
    if (key < 100) table.find_or_make(key + 1000, t::hash_of(key + 1000), key);
    ++met;
  }
  CHECK_EQUAL(met, 200u);
  auto at = table.begin();
  table.erase(0, t::hash_of(0));
  CHECK_THROWS(error, (void)*at);
  ++at;
  CHECK_EQUAL(at->first, 1u);
  table.clear();
  CHECK_THROWS(error, (void)*at);
  CHECK(table.begin() == table.end());
}

/// What a constructor throws leaves the table as it was.
struct throws_at_13 {
  explicit throws_at_13(int n) : value(n) {
    if (n == 13) throw std::runtime_error("13");
  }
  int value;
};
void a_constructor_may_throw() {
  containers::hash_table<std::string, throws_at_13> table;
  using t = decltype(table);
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    if (i % 20 == 13) {
      CHECK_THROWS(std::runtime_error, table.find_or_make(key, t::hash_of(key), 13));
      CHECK(table.find(key) == nullptr);
    } else {
      table.find_or_make(key, t::hash_of(key), i + 100);
    }
  }
  CHECK_EQUAL(table.size(), 95u);
}

// ---- The map: one operation at a time -----------------------------------------------------------

void operations_that_wait() {
  const auto m = dist_map<std::string, long>::make();
  const std::string mine = "of " + std::to_string(rank_me());
  CHECK(!m.find(mine).has_value());
  CHECK(m.insert(mine, 1));
  CHECK(!m.insert(mine, 2));
  CHECK_EQUAL(m.find(mine).value_or(0), 1);
  CHECK(!m.assign(mine, 5));
  CHECK_EQUAL(m.async_find(mine).get().value_or(0), 5);
  CHECK_EQUAL(m.visit(mine, [](long& v, long by) { return v *= by; }, 3L), 15);
  CHECK_EQUAL(m.visit(mine, [](const std::string& k, long& v) { return k + std::to_string(v); }),
              mine + "15");
  const auto found = m.visit_if_present(mine, [](long& v) { return v; });
  CHECK_EQUAL(found.value_or(0), 15);
  CHECK(!m.visit_if_present("nowhere", [](long& v) { v = 1; }));
  CHECK(m.visit_if_present(mine, [](long& v) { v = 1; }));
  barrier();
  CHECK_EQUAL(m.size_all(), static_cast<std::size_t>(rank_count()));
  std::size_t here = 0;
  for (auto& [key, value] : m) {
    CHECK_EQUAL(m.owner(key), rank_me());
    CHECK(m.find_here(key) == &value);
    ++here;
  }
  CHECK_EQUAL(m.size_here(), here);
  barrier();
  CHECK(m.erase(mine));
  CHECK(!m.erase(mine));
  barrier();
  CHECK_EQUAL(m.size_all(), 0u);
  m.destroy_all();
}

/// With values that own memory, and with plain ones; bundled and not.
template <class K>
void one_way_operations(K (*key_of)(int)) {
  const auto m = dist_map<K, long>::make();
  const auto both_ways = [](auto body) {
    finish([&] { body(); });
    barrier();
    finish_all([&] { body(); });
  };
  const int ranks = rank_count();
  both_ways([&] {
    for (int i = 0; i < 500; ++i) m.ff_update(key_of(i), [](long& v, int by) { v += by; }, i);
  });
  for (int i = 0; i < 500; i += 50) CHECK_EQUAL(m.find(key_of(i)).value_or(-1), 2L * i * ranks);
  barrier();
  both_ways([&] {
    for (int i = 0; i < 1000; ++i) m.ff_update_if_present(key_of(i), [](long& v) { ++v; });
  });
  CHECK_EQUAL(m.size_all(), 500u);
  CHECK_EQUAL(m.find(key_of(7)).value_or(-1), 2L * 7 * ranks + 2L * ranks);
  barrier();
  both_ways([&] {
    for (int i = 0; i < 1000; ++i) m.ff_insert(key_of(i), -1);
  });
  CHECK_EQUAL(m.find(key_of(7)).value_or(0), 2L * 7 * ranks + 2L * ranks);
  CHECK_EQUAL(m.find(key_of(700)).value_or(0), -1);
  barrier();
  both_ways([&] {
    for (int i = 0; i < 1000; ++i) m.ff_assign(key_of(i), 3L * i);
  });
  for (auto& [key, value] : m.gather_all()) CHECK_EQUAL(value % 3, 0);
  both_ways([&] {
    for (int i = 0; i < 1000; i += 2) m.ff_erase(key_of(i));
  });
  CHECK_EQUAL(m.size_all(), 500u);
  CHECK(!m.find(key_of(2)).has_value());
  CHECK_EQUAL(m.find(key_of(3)).value_or(0), 9);
  m.clear_all();
  CHECK_EQUAL(m.size_all(), 0u);
  m.destroy_all();
}
void one_way_operations_of_plain_keys() {
  one_way_operations<u64>([](int i) { return static_cast<u64>(i) << 32; });
}
void one_way_operations_of_strings() {
  one_way_operations<std::string>(
      [](int i) { return std::string(static_cast<std::size_t>(i % 40), 'x') + std::to_string(i); });
}

/// A visit may wait, and go on to other keys.
void visits_may_wait_and_send() {
  using map = dist_map<long, std::vector<long>>;
  const map m = map::make();
  finish_all([&] {
    m.ff_visit(
        rank_me() * 1000L,
        [](const long& key, std::vector<long>& seen, map all, int left) {
          const auto go_on = [](auto& self, long k, std::vector<long>& s, map a, int n) -> void {
            s.push_back(n);
            const std::vector<long>& same = s;
            yield();
            if (!a.find(k + 1).has_value()) a.insert(k + 1, {});
            CHECK_EQUAL(same.back(), n);
            if (n > 0)
              a.ff_visit(k + 1, [](std::vector<long>& v, int x) { v.push_back(x); }, n - 1);
            (void)self;
          };
          go_on(go_on, key, seen, all, left);
        },
        m, 3);
  });
  CHECK_EQUAL(m.size_all(), 2u * static_cast<std::size_t>(rank_count()));
  const auto at = m.find(next() * 1000L + 1);
  CHECK(at.has_value() && at->size() == 1 && at->front() == 2);
  barrier();
  m.destroy_all();
}

/// Place decides the rank, and nothing else.
struct by_thousands {
  long operator()(long key) const { return key / 1000; }
};
long walk(dist_map<long, long, std::hash<long>, by_thousands> m, long from, via how) {
  long sum = 0;
  long key = from;
  while (const auto next_key = m.find(how, key)) {
    sum += key;
    key = *next_key;
  }
  return sum;
}
void keys_lie_where_their_place_says_and_walks_migrate() {
  using map = dist_map<long, long, std::hash<long>, by_thousands>;
  const map m = map::make();
  finish_all([&] {
    if (rank_me() == 0)
      for (long key = 0; key < 5000; key += 10) m.ff_insert(key, key + 10);
  });
  for (long key = 0; key < 5000; key += 10) CHECK_EQUAL(m.owner(key), m.owner(key / 1000 * 1000));
  const long expected = 10 * (499L * 500 / 2);
  barrier();
  const counters before = counters_now();
  if (rank_me() == 0) CHECK_EQUAL(activate(walk, m, 0L, via::migrate), expected);
  barrier();
  // There and back, and not more often than the place changes.
  CHECK(reduce((counters_now() - before).migrations, std::plus<>()) <= 7);
  CHECK_EQUAL(walk(m, 0, via::rpc), expected);
  barrier();
  m.destroy_all();
}

void an_exception_reaches_who_waits() {
  const auto m = dist_map<long, long>::make();
  CHECK_THROWS(std::domain_error, (void)m.visit(5L, [](long& v) -> long {
    throw std::domain_error(std::to_string(v));
  }));
  barrier();
  CHECK_THROWS(std::domain_error, finish_all([&] {
                 if (rank_me() == 0) m.ff_update(5L, [](long&) { throw std::domain_error("5"); });
               }));
  CHECK_THROWS(std::domain_error, finish_all([&] {
                 if (rank_me() == 0)
                   for (long k = 0; k < 1000; ++k)
                     m.ff_update(k, [](const long& key, long&) {
                       if (key == 77) throw std::domain_error("77");
                     });
               }));
  m.destroy_all();
}

void a_team_has_its_own_map() {
  const team half = team::world().split(rank_me() % 2);
  const auto m = dist_map<long, long>::make(half);
  finish_all(
      [&] {
        for (long k = 0; k < 300; ++k) m.ff_update(k, [](long& v) { ++v; });
      },
      half);
  CHECK_EQUAL(m.size_all(), 300u);
  for (long k = 0; k < 300; k += 30) {
    CHECK(half.from_world(m.owner(k)) >= 0);
    CHECK_EQUAL(m.find(k).value_or(0), half.rank_count());
  }
  barrier();
  // The name travels to ranks that are no members.
  const long seen =
      rpc(next(), [](dist_map<long, long> of) { return of.find(30).value_or(0); }, m).get();
  CHECK_EQUAL(seen, half.rank_count());
  barrier();
  m.destroy_all();
}

/// A call of a plain key takes the bytes of its key.
void a_bundled_update_takes_the_bytes_of_its_key() {
  if (rank_count() == 1) return;
  const auto m = dist_map<u64, u64>::make();
  constexpr u64 many = 40'000;
  const counters before = counters_now();
  finish_all([&] {
    for (u64 k = 0; k < many; ++k) m.ff_update(k, [](u64& v) { ++v; });
  });
  const counters c = counters_now() - before;
  if (std::getenv("SOJOURN_CHECKED") == nullptr || *std::getenv("SOJOURN_CHECKED") == '0')
    CHECK(c.request_bytes < many * 8 * 3 / 2);
  CHECK_EQUAL(m.size_all(), many);
  m.destroy_all();
}

// ---- The counter --------------------------------------------------------------------------------

void a_counter_counts() {
  const auto words = dist_counter<std::string>::make();
  finish_all([&] {
    for (const std::string_view word : {"to", "be", "or", "not", "to", "be"}) words.ff_add(word);
    words.ff_add("often", 100);
  });
  const int ranks = rank_count();
  CHECK_EQUAL(words.count("to"), 2 * ranks);
  CHECK_EQUAL(words.async_count("or").get(), ranks);
  CHECK_EQUAL(words.count("never"), 0);
  CHECK_EQUAL(words.size_all(), 5u);
  CHECK_EQUAL(words.total_all(), 106 * ranks);
  const auto top = words.top_all(3);
  CHECK_EQUAL(top.size(), 3u);
  CHECK_EQUAL(top[0].first, "often");
  CHECK_EQUAL(top[1].first, "be");
  CHECK_EQUAL(top[2].first, "to");
  CHECK_EQUAL(words.top_all(100).size(), 5u);
  auto overtaken = words.begin();
  words.clear_all();
  if (overtaken != words.end()) CHECK_THROWS(error, (void)*overtaken);
  CHECK_EQUAL(words.total_all(), 0);
  CHECK(words.begin() == words.end());
  CHECK_THROWS(error, dist_counter<std::string>().ff_add("nowhere"));
  words.destroy_all();
}

/// Equal keys of a rank go in one message, not one for each.
void what_is_equal_is_added_up_first() {
  const auto c = dist_counter<u64>::make();
  const counters before = counters_now();
  constexpr int many = 100'000;
  finish_all([&] {
    for (int i = 0; i < many; ++i) c.ff_add(static_cast<u64>(i % 100));
  });
  const counters sent = counters_now() - before;
  CHECK(sent.calls_bundled < 1000);
  CHECK_EQUAL(c.total_all(), static_cast<long>(many) * rank_count());
  c.destroy_all();
}

/// More keys than have a place: those that are put out go where they belong, and when that saves
/// little, all do at once.
void keys_that_are_put_out_are_counted() {
  for (const int frequent : {0, 2}) {
    const auto c = dist_counter<u64>::make();
    constexpr int many = 150'000;
    finish_all([&] {
      for (int i = 0; i < many; ++i)
        for (int again = 0; again <= frequent; ++again)
          c.ff_add(static_cast<u64>(i % 30'000) << 20, again + 1);
    });
    const long each = 5L * (frequent == 0 ? 1 : 6) * rank_count();
    for (const auto& [key, times] : c) {
      CHECK_EQUAL(times, each);
      CHECK_EQUAL(c.owner(key), rank_me());
    }
    CHECK_EQUAL(c.size_all(), 30'000u);
    CHECK_EQUAL(c.total_all(), each * 30'000);
    c.destroy_all();
  }
}

/// Each finish waits for its own counts, whatever others have begun on the rank.
void a_finish_waits_for_its_counts() {
  const auto c = dist_counter<u64>::make();
  finish_all([&] {
    c.ff_add(1, 5);
    finish([&] {
      c.ff_add(2, 7);
      c.ff_add(1, 5);
    });
    // All that was counted inside is there, if not yet what was counted before.
    CHECK(c.count(2) >= 7);
    CHECK(c.count(1) >= 5);
    auto other = fork([&] {
      finish([&] {
        for (u64 i = 0; i < 300; ++i) c.ff_add(1000 + i % 3);
        yield();
      });
      CHECK(c.count(1000) >= 100);
    });
    for (u64 i = 0; i < 300; ++i) c.ff_add(2000 + i % 3);
    yield();
    other.get();
    c.ff_add(3);
  });
  CHECK_EQUAL(c.count(1), 10L * rank_count());
  CHECK_EQUAL(c.count(2), 7L * rank_count());
  CHECK_EQUAL(c.count(1001), 100L * rank_count());
  CHECK_EQUAL(c.count(2002), 100L * rank_count());
  CHECK_EQUAL(c.count(3), rank_count());
  // Without a finish nothing is kept back.
  barrier();
  c.ff_add(4);
  while (c.count(4) < rank_count()) yield();
  barrier();
  c.destroy_all();
}

/// In a window each count is a call by itself.
void a_finish_with_a_window_waits_for_its_counts() {
  const auto c = dist_counter<u64>::make();
  finish({.in_flight = 3}, [&] {
    for (u64 i = 0; i < 300; ++i) c.ff_add(i % 7);
    // What its calls count is kept back as elsewhere.
    rpc_ff(
        rank_me(),
        [](dist_counter<u64> all) {
          for (u64 i = 0; i < 300; ++i) all.ff_add(10 + i % 3);
        },
        c);
  });
  barrier();
  CHECK_EQUAL(c.count(10), 100L * rank_count());
  CHECK_EQUAL(c.total_all(), 600L * rank_count());
  c.destroy_all();
}

void count_keys(dist_counter<u64> all, u64 many) {
  for (u64 i = 0; i < many; ++i) {
    if (i % 1000 == 0) yield();
    all.ff_add(i * 7919 % 100'003);
  }
}
/// Also while they hand over what they have gathered.
void threads_that_are_moved_count() {
  // (In checked mode the frames of ff_add do not leave.)
  if (rank_count() == 1 || detail::checked()) return;
  constexpr u64 many = 40'000;
  constexpr int threads = 4;
  for (const std::size_t bytes : {256u, 1024u, 8128u}) {
    const auto c = dist_counter<u64>::make();
    finish_all(
        [&] {
          if (rank_me() != 0) return;
          std::vector<thread> all;
          for (int i = 0; i < threads; ++i) all.push_back(spawn(count_keys, c, many));
          const auto is_done = [](const thread& t) { return t.finished(); };
          for (int to = 1; !std::all_of(all.begin(), all.end(), is_done); ++to) {
            for (const thread& t : all) {
              try {
                migrate(t, static_cast<rank_t>(to % rank_count()));
              } catch (const thread_error&) {  // it has ended, or must not move now
              }
            }
            yield();
          }
          for (thread& t : all) t.join();
        },
        team::world(), {.bytes = bytes});
    CHECK_EQUAL(c.total_all(), static_cast<long>(threads * many));
    c.destroy_all();
  }
}

/// Handlers on other ranks count, too.
void handlers_count() {
  using counter = dist_counter<long>;
  const counter c = counter::make();
  finish_all([&] {
    for (int i = 0; i < 200; ++i)
      rpc_ff((rank_me() + i) % rank_count(),
             [](counter of, long key) {
               of.ff_add(key);
               if (key % 3 == 0) yield();
               of.ff_add(key + 1000);
             },
             c, static_cast<long>(i % 10));
  });
  for (long key = 0; key < 10; ++key) {
    CHECK_EQUAL(c.count(key), 20L * rank_count());
    CHECK_EQUAL(c.count(key + 1000), 20L * rank_count());
  }
  barrier();
  c.destroy_all();
}

// ---- Random operations of all ranks, against a model --------------------------------------------

/// Operations whose order does not matter, so that all ranks know what comes out.
enum class what : std::uint8_t { update, visit, wait, present, insert, erase, count };

struct operation {
  what kind;
  u64 key;
  long by;
};
/// Of one rank in one round. All calls of insert give a key the same value; erase is of keys that
/// nothing else touches in that round.
std::vector<operation> operations_of(rank_t rank, int round) {
  std::mt19937_64 random(seed ^ static_cast<u64>(rank) << 40 ^ static_cast<u64>(round) << 20);
  std::vector<operation> all;
  for (int i = 0; i < operations; ++i) {
    const u64 range = random() % 4 == 0 ? 20 : 3000;  // some keys are frequent
    const u64 key = random() % range;
    const long by = static_cast<long>(random() % 100) - 20;
    switch (random() % 10) {
      case 0:
        all.push_back({what::visit, 3 * key, by});
        break;
      case 1:
        all.push_back({what::present, 3 * key, by});
        break;
      case 2:
        all.push_back({what::insert, 3 * key + 1, by});
        break;
      case 3:
        all.push_back({what::erase, 3 * key + 1 + static_cast<u64>(round % 2), 0});
        break;
      case 4:
        all.push_back({what::count, key, by});
        break;
      case 5:
        all.push_back({i % 20 == 0 ? what::wait : what::update, 3 * key, by});
        break;
      default:
        all.push_back({what::update, 3 * key, by});
    }
  }
  return all;
}
bool erases(const operation& o, int round) {
  // Inserted in even rounds, erased in odd ones.
  return o.kind == what::erase && round % 2 == 1;
}
bool inserts(const operation& o, int round) { return o.kind == what::insert && round % 2 == 0; }

template <class K, class V>
struct kind_of_map {
  using map = dist_map<K, V>;
  K (*key)(u64);
  V (*value)(long);
  long (*number)(const V&);
};

struct plus_in_place {
  void operator()(long& v, long by) const { v += by; }
  void operator()(std::string& v, long by) const {
    v = std::to_string((v.empty() ? 0 : std::stol(v)) + by);
  }
};

template <class K, class V>
void random_operations(const kind_of_map<K, V>& kind) {
  const auto m = dist_map<K, V>::make();
  const auto c = dist_counter<K>::make();
  std::map<u64, long> model;
  std::map<u64, long> counted;
  for (int round = 0; round < 4; ++round) {
    // Updates of present ones are of keys that were there before the round.
    const std::map<u64, long> before = model;
    for (rank_t r = 0; r < rank_count(); ++r)
      for (const operation& o : operations_of(r, round)) {
        switch (o.kind) {
          case what::update:
          case what::visit:
          case what::wait:
            model[o.key] += o.by;
            break;
          case what::present:
            if (before.contains(o.key)) model[o.key] += o.by;
            break;
          case what::insert:
            if (inserts(o, round)) model.try_emplace(o.key, static_cast<long>(o.key));
            break;
          case what::erase:
            if (erases(o, round)) model.erase(o.key - 1);
            break;
          case what::count:
            counted[o.key] += o.by;
            break;
        }
      }
    const auto go = [&] {
      for (const operation& o : operations_of(rank_me(), round)) {
        const K key = kind.key(o.key);
        switch (o.kind) {
          case what::update:
            m.ff_update(key, plus_in_place(), o.by);
            break;
          case what::visit:
            m.ff_visit(
                key,
                [](V& v, long by, dist_map<K, V> all, K k) {
                  if (by % 4 == 0) yield();
                  plus_in_place()(v, by - 1);
                  all.ff_update(k, plus_in_place(), 1L);
                },
                o.by, m, key);
            break;
          case what::wait:
            m.visit(key, plus_in_place(), o.by);
            break;
          case what::present:
            if (before.contains(o.key)) m.ff_update_if_present(key, plus_in_place(), o.by);
            break;
          case what::insert:
            if (inserts(o, round)) m.ff_insert(key, kind.value(static_cast<long>(o.key)));
            break;
          case what::erase:
            if (erases(o, round)) m.ff_erase(kind.key(o.key - 1));
            break;
          case what::count:
            c.ff_add(key, o.by);
            break;
        }
      }
    };
    if (round == 1) {
      finish(go);
      barrier();
    } else {
      finish_all(go);
    }
    std::map<K, long> all;
    for (const auto& [key, value] : m.gather_all()) all[key] = kind.number(value);
    if (rank_me() == 0) {
      std::map<K, long> expected;
      for (const auto& [key, value] : model) expected[kind.key(key)] = value;
      CHECK(all == expected);
    }
    CHECK_EQUAL(m.size_all(), model.size());
    std::map<K, long> here;
    for (const auto& [key, times] : c) here[key] = times;
    std::map<K, long> expected_here;
    for (const auto& [key, times] : counted)
      if (c.owner(kind.key(key)) == rank_me()) expected_here[kind.key(key)] = times;
    std::erase_if(here, [](const auto& e) { return e.second == 0; });
    std::erase_if(expected_here, [](const auto& e) { return e.second == 0; });
    CHECK(here == expected_here);
    barrier();
  }
  c.destroy_all();
  m.destroy_all();
}

void random_operations_of_plain_keys() {
  random_operations<u64, long>({.key = [](u64 k) { return k * 0x9e3779b97f4a7c15U; },
                                .value = [](long n) { return n; },
                                .number = [](const long& n) { return n; }});
}
void random_operations_of_strings() {
  random_operations<std::string, std::string>(
      {.key = [](u64 k) { return std::string(k % 30, 'k') + std::to_string(k); },
       .value = [](long n) { return std::to_string(n); },
       .number = [](const std::string& n) { return std::stol(n); }});
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=] {
    if (const char* text = std::getenv("SOJOURN_TEST_SEED"))
      seed = std::strtoull(text, nullptr, 10);
    if (argc == 3 && std::string_view(argv[1]) == "--operations") operations = std::atoi(argv[2]);
    check::claim("a table agrees with a model", a_table_agrees_with_a_model<std::hash<u64>>);
    check::claim("a table of equal hashes agrees", a_table_agrees_with_a_model<crowded_hash>);
    check::claim("elements stay where they are", elements_stay_where_they_are);
    check::claim("an iterator survives inserts and names an erased element",
                 an_iterator_survives_inserts_and_names_an_erased_element);
    check::claim("a constructor may throw", a_constructor_may_throw);
    check::claim("operations that wait", operations_that_wait);
    check::claim("one-way operations of plain keys", one_way_operations_of_plain_keys);
    check::claim("one-way operations of strings", one_way_operations_of_strings);
    check::claim("visits may wait and send", visits_may_wait_and_send);
    check::claim("keys lie where their place says, and walks migrate",
                 keys_lie_where_their_place_says_and_walks_migrate);
    check::claim("an exception reaches who waits", an_exception_reaches_who_waits);
    check::claim("a team has its own map", a_team_has_its_own_map);
    check::claim("a bundled update takes the bytes of its key",
                 a_bundled_update_takes_the_bytes_of_its_key);
    check::claim("a counter counts", a_counter_counts);
    check::claim("what is equal is added up first", what_is_equal_is_added_up_first);
    check::claim("keys that are put out are counted", keys_that_are_put_out_are_counted);
    check::claim("a finish waits for its counts", a_finish_waits_for_its_counts);
    check::claim("a finish with a window waits for its counts",
                 a_finish_with_a_window_waits_for_its_counts);
    check::claim("threads that are moved count", threads_that_are_moved_count);
    check::claim("handlers count", handlers_count);
    check::claim("random operations of plain keys", random_operations_of_plain_keys);
    check::claim("random operations of strings", random_operations_of_strings);
    return check::verdict();
  });
}
