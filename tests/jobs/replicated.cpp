// SPDX-License-Identifier: Apache-2.0
// Replicated objects: reads use the newest version that is here, updates spread, and versions live
// as long as somebody reads them.
#include <sojourn/replicated.hpp>

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

/// All words are the same in each version.
struct words {
  std::array<long, 64> all{};

  void add(long n) {
    for (long& w : all) w += n;
  }
  long add_slowly(long n) {
    for (long& w : all) {
      w += n;
      if (&w == &all[32]) yield();
    }
    return all[0];
  }
  void fail_half_way(long n) {
    all[0] += n;
    throw std::runtime_error("half way");
  }
  long first() const { return all[0]; }
  bool is_whole() const {
    for (const long w : all) {
      if (w != all[0]) return false;
    }
    return true;
  }
  /// Suspends until `go` says so, between reads of the same version.
  bool stays_as_it_is(const bool* go) const {
    const long before = all[0];
    while (!*go) {
      if (!is_whole() || all[0] != before) return false;
      yield();
    }
    return is_whole() && all[0] == before;
  }
};

/// Owns memory, and is counted.
struct book {
  static inline long alive = 0;

  std::map<std::string, std::vector<long>> pages;

  book() { ++alive; }
  book(const book& other) : pages(other.pages) { ++alive; }
  book(book&& other) noexcept : pages(std::move(other.pages)) { ++alive; }
  book& operator=(const book&) = default;
  ~book() { --alive; }
  template <class Archive>
  void serialize(Archive& ar) {
    ar(pages);
  }

  void write(std::string_view page, long n) { pages[std::string(page)].push_back(n); }
  std::size_t write_slowly(std::string_view page, long n) {
    yield();
    write(page, n);
    return pages.size();
  }
  long sum(const std::string& page) const {
    long all = 0;
    const auto found = pages.find(page);
    if (found == pages.end()) return 0;
    for (const long n : found->second) all += n;
    return all;
  }
  void replace(std::string_view page, long n) { pages[std::string(page)].assign(100, n); }
};

rank_t last() { return rank_count() - 1; }

template <class T>
replicated<T> shared_by_all(rank_t writer) {
  replicated<T> r;
  if (rank_me() == writer) r = make_replicated<T>();
  return broadcast(r, writer);
}
template <class T>
void destroy_shared(replicated<T> r) {
  barrier();
  if (rank_me() == 0) r.destroy();
  barrier();
}

unsigned seed() {
  const char* text = std::getenv("SOJOURN_TEST_SEED");
  const unsigned of_job =
      text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 1u;
  return of_job * 31u + static_cast<unsigned>(rank_me());
}

void a_version_that_is_here_costs_no_message() {
  auto r = shared_by_all<words>(last());
  const counters before = counters_now();
  CHECK_EQUAL(r.read<&words::first>(), 0);
  const counters subscribed = counters_now() - before;
  const bool reads_elsewhere = rank_me() != last();
  CHECK_EQUAL(subscribed.replica_misses, reads_elsewhere ? 1 : 0);
  for (int i = 0; i < 1000; ++i) CHECK_EQUAL(r.read<&words::first>(), 0);
  const counters used = counters_now() - before;
  CHECK_EQUAL(used.replica_misses, reads_elsewhere ? 1 : 0);
  if (reads_elsewhere) CHECK_EQUAL(used.replica_messages, 1);
  CHECK_EQUAL(used.requests_sent, 0);
  destroy_shared(r);
}

void updates_spread_in_the_background() {
  auto r = shared_by_all<words>(last());
  CHECK_EQUAL(r.version() != 0, rank_me() == last());
  CHECK_EQUAL(r.read<&words::first>(), 0);
  CHECK_EQUAL(r.version(), 1);
  barrier();
  if (rank_me() == 0) r.update<&words::add>(5L);
  while (r.read<&words::first>() != 5) yield();
  CHECK_EQUAL(r.version(), 2);
  barrier();
  if (rank_me() == last()) r.update([](words& w, long n) { w.add(n); }, 2L);
  while (r.read([](const words& w) { return w.all[63]; }) != 7) yield();
  destroy_shared(r);
}

void a_rank_sees_its_own_updates_and_never_goes_back() {
  auto r = shared_by_all<words>(last());
  std::mt19937 random(seed());
  long mine = 0;
  long latest = 0;
  std::uint64_t version = 0;
  for (int i = 0; i < 400; ++i) {
    switch (random() % 8) {
      case 0:
        r.update<&words::add>(1L);
        latest = std::max(latest, ++mine);
        break;
      case 1:
        CHECK(r.update<&words::add_slowly>(1L) > mine);
        latest = std::max(latest, ++mine);
        break;
      case 2:
        r.refresh();
        break;
      case 3:
        if (random() % 4 == 0) r.unsubscribe();
        break;
      case 4:
        yield();
        break;
      default: {
        const long now = r.read<&words::first>();
        CHECK(now >= latest);
        CHECK(r.version() >= version);
        CHECK(r.read<&words::is_whole>());
        version = r.version();
        latest = now;
      }
    }
  }
  const long total = reduce(mine, std::plus<>{});
  barrier();
  r.refresh();
  CHECK_EQUAL(r.read<&words::first>(), total);
  destroy_shared(r);
}

void refresh_brings_the_newest() {
  auto r = shared_by_all<words>(0);
  for (long i = 1; i <= 100; ++i) {
    if (rank_me() == i % rank_count()) r.update<&words::add>(1L);
    barrier();
    if (i % 3 != 0) r.refresh();
    if (i % 3 == 1) CHECK_EQUAL(r.read<&words::first>(), i);
    if (i % 3 == 2) CHECK_EQUAL(r.version() == 0 || r.read<&words::first>() == i, true);
    if (i % 10 == 0) r.unsubscribe();
    barrier();
  }
  destroy_shared(r);
}

void an_update_keeps_the_bound_that_it_promises() {
  for (const std::uint64_t behind : {0u, 1u, 5u}) {
    auto r = shared_by_all<words>(last());
    (void)r.read<&words::first>();
    barrier();
    for (long i = 1; i <= 60; ++i) {
      if (rank_me() == i % rank_count()) r.update<&words::add>(versions{behind}, 1L);
      barrier();
      CHECK(r.read<&words::first>() + static_cast<long>(behind) >= i);
      barrier();
    }
    destroy_shared(r);
  }
}

void a_suspended_reader_keeps_its_version() {
  auto r = shared_by_all<words>(last());
  auto b = shared_by_all<book>(last());
  if (rank_me() == 0) b.update<&book::replace>("page", 7L);
  barrier();
  (void)r.read<&words::first>();
  CHECK_EQUAL((b.refresh(), b.read<&book::sum>("page")), 700);
  bool go = false;
  std::vector<future<bool>> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(fork([&] { return r.read<&words::stays_as_it_is>(&go); }));
    // Holds an address in the memory that the version owns.
    readers.push_back(fork([&] {
      return b.read([&](const book& text) {
        bool is_same = true;
        for (const long& n : text.pages.at("page")) {
          const bool is_seven = n == 7;
          is_same = is_same && is_seven;
          yield();
        }
        while (!go) yield();
        return is_same && text.sum("page") == 700;
      });
    }));
  }
  yield();  // all of them have begun
  barrier();
  for (long i = 0; i < 200; ++i) {
    if (rank_me() == i % rank_count()) {
      r.update<&words::add>(1L);
      b.update<&book::replace>("page", i);
    }
    if (i % 20 == 0) barrier();
    yield();
  }
  barrier();
  r.refresh();
  CHECK_EQUAL(r.read<&words::first>(), 200);
  go = true;
  for (auto& f : readers) CHECK(f.get());
  destroy_shared(r);
  destroy_shared(b);
}

void versions_are_freed() {
  const long before = book::alive;
  auto b = shared_by_all<book>(0);
  long most = 0;
  const auto look = [&] { most = std::max(most, book::alive - before); };
  for (long i = 0; i < 1000; ++i) {
    if (rank_me() == i % rank_count()) b.update<&book::replace>("page", i);
    (void)b.read<&book::sum>("page");
    if (i % 7 == 0) yield();
    look();
  }
  barrier();
  // A writer that never suspends.
  if (rank_me() == 0) {
    for (long i = 0; i < 1000; ++i) {
      b.update<&book::replace>("page", i);
      look();
    }
  }
  CHECK(most < 40);
  destroy_shared(b);
  CHECK(book::alive - before < 40);
}

void an_update_that_throws_changes_nothing() {
  auto r = shared_by_all<words>(last());
  for (int i = 0; i < 10; ++i) {
    CHECK_THROWS(std::runtime_error, r.update<&words::fail_half_way>(1L));
    CHECK_EQUAL(r.read<&words::first>(), 0);
    CHECK_EQUAL(r.version(), 1);
  }
  destroy_shared(r);
}

void updates_run_one_at_a_time() {
  auto r = shared_by_all<words>(0);
  auto b = shared_by_all<book>(last());
  std::vector<future<void>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(fork([=] { r.update<&words::add_slowly>(1L); }));
    all.push_back(fork([=] {
      const std::string page = "page " + std::to_string(i % 3);
      CHECK(b.update<&book::write_slowly>(std::string_view(page), 1L) >= 1);
    }));
  }
  for (auto& f : all) f.get();
  barrier();
  r.refresh();
  b.refresh();
  CHECK_EQUAL(r.read<&words::first>(), 20 * rank_count());
  CHECK_EQUAL(b.read<&book::sum>("page 0"), 7 * rank_count());
  destroy_shared(r);
  destroy_shared(b);
}

/// Who has just had its turn comes after those who have waited.
void updates_come_in_their_turn() {
  const auto r = make_replicated<words>();
  static bool has_begun;
  has_begun = false;
  // Waits in the middle of its first update.
  future<long> other = fork([=] {
    has_begun = true;
    CHECK_EQUAL(r.update<&words::add_slowly>(1L), 1);
    return r.update<&words::add_slowly>(1L);
  });
  while (!has_begun) yield();
  CHECK_EQUAL(r.update<&words::add_slowly>(1L), 2);
  CHECK_EQUAL(other.get(), 3);
  r.destroy();
}

void there_is_one_push_at_a_time() {
  auto r = shared_by_all<words>(0);
  (void)r.read<&words::first>();
  barrier();
  const counters before = counters_now();
  if (rank_me() == 0) {
    // Looks at no message meanwhile.
    for (int i = 0; i < 1000; ++i) r.update<&words::add>(1L);
    const counters used = counters_now() - before;
    CHECK_EQUAL(used.versions_published, 1000);
    CHECK_EQUAL(used.versions_pushed, rank_count() - 1);
  }
  while (r.read<&words::first>() != 1000) yield();
  destroy_shared(r);
}

void who_has_unsubscribed_is_left_alone() {
  auto r = shared_by_all<words>(0);
  (void)r.read<&words::first>();
  r.unsubscribe();
  barrier();
  CHECK_EQUAL(r.version() == 0, rank_me() != 0);
  // The first push tells the writer.
  if (rank_me() == 0) r.update<&words::add>(versions{0}, 1L);
  barrier();
  const counters before = counters_now();
  if (rank_me() == 0) {
    for (int i = 0; i < 100; ++i) r.update<&words::add>(1L);
    CHECK_EQUAL((counters_now() - before).versions_pushed, 0);
  }
  barrier();
  CHECK_EQUAL(r.read<&words::first>(), 101);
  destroy_shared(r);
}

void a_destroyed_object_is_refused() {
  const long before = book::alive;
  for (int i = 0; i < 20; ++i) {
    auto b = shared_by_all<book>(last());
    if (i % 2 == 0) (void)b.read<&book::sum>("page");
    barrier();
    if (rank_me() == i % rank_count()) b.destroy();
    barrier();
    // What is here may be read until this rank has heard of it.
    if (i % 2 == 0) {
      while (b.version() != 0) yield();
    }
    CHECK_THROWS(replicated_destroyed, b.read<&book::sum>("page"));
    CHECK_THROWS(replicated_destroyed, b.update<&book::write>("page", 1L));
    CHECK_THROWS(replicated_destroyed, b.refresh());
    CHECK_THROWS(replicated_destroyed, b.destroy());
    // Another one has its place, which is not mistaken for it.
    auto other = shared_by_all<book>(last());
    if (rank_me() == 0) other.update<&book::write>("page", 3L);
    barrier();
    CHECK_EQUAL(other.read<&book::sum>("page"), 3);
    CHECK_THROWS(replicated_destroyed, b.read<&book::sum>("page"));
    destroy_shared(other);
  }
  CHECK(book::alive - before < 40);
}

void destroy_waits_for_updates_that_have_begun() {
  auto r = shared_by_all<words>(0);
  (void)r.read<&words::first>();
  barrier();
  std::vector<future<int>> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(fork([=] {
      try {
        r.update<&words::add_slowly>(versions{0}, 1L);
        return 1;
      } catch (const replicated_destroyed&) {
        return 0;
      }
    }));
  }
  if (rank_me() == last()) r.destroy();
  for (auto& f : all) (void)f.get();
  barrier();
  CHECK_THROWS(replicated_destroyed, r.update<&words::add>(1L));
}

struct holder {
  replicated<words> inside;
  long outside = 0;
  void set(replicated<words> w) { inside = w; }
  replicated<words> get() const { return inside; }
};
void handles_travel() {
  static_assert(std::is_trivially_copyable_v<replicated<words>> && travels<replicated<words>>);
  static_assert(sizeof(replicated<words>) == 16);
  auto r = shared_by_all<words>(last());
  auto h = shared_by_all<holder>(0);
  if (rank_me() == 0) h.update<&holder::set>(versions{0}, r);
  barrier();
  h.refresh();
  CHECK(h.read<&holder::get>() == r);
  CHECK_EQUAL(h.read<&holder::get>().read<&words::first>(), 0);
  const rank_t next = (rank_me() + 1) % rank_count();
  CHECK(rpc(next, [](replicated<words> w) { return w.read<&words::is_whole>(); }, r).get());
  CHECK(!replicated<words>());
  CHECK_THROWS(error, replicated<words>().read<&words::first>());
  CHECK_THROWS(error, replicated<words>().update<&words::add>(1L));
  destroy_shared(h);
  destroy_shared(r);
}

void too_long_a_version_is_refused() {
  auto text = shared_by_all<std::string>(0);
  if (rank_me() == last()) {
    CHECK_THROWS(error, text.update([](std::string& s) { s.assign(5u << 20, 'x'); }));
    text.update(versions{0}, [](std::string& s) { s.assign(3u << 20, 'x'); });
  }
  barrier();
  text.refresh();
  CHECK_EQUAL(text.read([](const std::string& s) { return s.size(); }), 3u << 20);
  destroy_shared(text);
}

/// Many objects of all ranks; what each rank knows of them is what it has done and seen.
void random_calls_agree_with_a_model() {
  constexpr std::size_t count = 10;
  std::vector<replicated<book>> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(shared_by_all<book>(static_cast<rank_t>(i) % rank_count()));
  std::mt19937 random(seed());
  std::vector<std::map<std::string, long>> added(count);
  std::vector<long> seen(count);
  const std::string own = "rank " + std::to_string(rank_me());
  for (int i = 0; i < 400; ++i) {
    const std::size_t which = random() % count;
    replicated<book> b = all[which];
    switch (random() % 8) {
      case 0:
        b.update<&book::write>(own, 2L);
        added[which][own] += 2;
        break;
      case 1:
        b.update<&book::write_slowly>(versions{random() % 3}, own, 1L);
        added[which][own] += 1;
        break;
      case 2:
        b.refresh();
        break;
      case 3:
        b.unsubscribe();
        break;
      default: {
        // Only this rank writes that page.
        CHECK_EQUAL(b.read<&book::sum>(own), added[which][own]);
        long total = 0;
        for (rank_t p = 0; p < rank_count(); ++p)
          total += b.read<&book::sum>("rank " + std::to_string(p));
        CHECK(total >= seen[which]);
        seen[which] = total;
      }
    }
  }
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    all[i].refresh();
    long total = 0;
    for (rank_t p = 0; p < rank_count(); ++p)
      total += all[i].read<&book::sum>("rank " + std::to_string(p));
    CHECK_EQUAL(total, reduce(added[i][own], std::plus<>{}));
  }
  for (auto b : all) destroy_shared(b);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#define CLAIM(name) check::claim(#name, name)
    CLAIM(a_version_that_is_here_costs_no_message);
    CLAIM(updates_spread_in_the_background);
    CLAIM(a_rank_sees_its_own_updates_and_never_goes_back);
    CLAIM(refresh_brings_the_newest);
    CLAIM(an_update_keeps_the_bound_that_it_promises);
    CLAIM(a_suspended_reader_keeps_its_version);
    CLAIM(versions_are_freed);
    CLAIM(an_update_that_throws_changes_nothing);
    CLAIM(updates_run_one_at_a_time);
    CLAIM(updates_come_in_their_turn);
    CLAIM(there_is_one_push_at_a_time);
    CLAIM(who_has_unsubscribed_is_left_alone);
    CLAIM(a_destroyed_object_is_refused);
    CLAIM(destroy_waits_for_updates_that_have_begun);
    CLAIM(handles_travel);
    CLAIM(too_long_a_version_is_refused);
    CLAIM(random_calls_agree_with_a_model);
    return check::verdict();
  });
}
