// SPDX-License-Identifier: Apache-2.0
// Methods that take a batch: callers pass one item, each item arrives once and in order, and in a
// bundle many arrive in one call.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

struct three_bytes {
  std::uint8_t low, middle, high;
};
struct alignas(16) wide {
  long a, b;
};

class list {
 public:
  void add(batch<long> items) {
    ++calls_;
    for (const long item : items) numbers_.push_back(item);
  }
  void add_one(long item) { numbers_.push_back(item); }
  long add_and_tell(batch<long> items) {
    add(items);
    return numbers_.back();
  }
  void add_until(batch<long> items) {
    for (const long item : items) {
      if (item < 0) throw std::domain_error("no item " + std::to_string(item));
      numbers_.push_back(item);
    }
  }
  void add_small(batch<three_bytes> items) {
    ++calls_;
    for (std::size_t i = 0; i < items.size(); ++i)
      numbers_.push_back(items[i].low + (items[i].middle << 8) + (items[i].high << 16));
  }
  void add_wide(const batch<wide> items) {
    for (const wide& item : items) {
      CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(&item) % alignof(wide), 0u);
      numbers_.push_back(item.a + item.b);
    }
  }
  void add_pairs(batch<std::pair<int, int>> items) noexcept {
    for (const auto& [a, b] : items) numbers_.push_back(a + b);
  }
  std::size_t count(batch<long> items) const { return items.size(); }
  void see(batch<long> items) const { seen += static_cast<long>(items.size()); }

  static inline long seen = 0;

  std::vector<long> numbers() const { return numbers_; }
  long calls() const { return calls_; }

 private:
  std::vector<long> numbers_;
  long calls_ = 0;
};

std::vector<long> numbers_to(long end) {
  std::vector<long> numbers;
  for (long i = 0; i < end; ++i) numbers.push_back(i);
  return numbers;
}

void each_item_arrives_once_and_in_order() {
  for (const rank_t where : {next(), rank_me()}) {
    const auto alone = make<list>(where);
    const auto bundled = make<list>(where);
    finish([&] {
      for (long i = 0; i < 3000; ++i) alone.ff<&list::add>(i);
    });
    finish_all([&] {
      for (long i = 0; i < 3000; ++i) bundled.ff<&list::add>(i);
    });
    CHECK(alone.call<&list::numbers>(via::rpc) == numbers_to(3000));
    CHECK(bundled.call<&list::numbers>(via::rpc) == numbers_to(3000));
    CHECK_EQUAL(alone.call<&list::calls>(via::rpc), 3000);
    // Some thousand items fit into a bundle.
    if (!detail::checked()) CHECK(bundled.call<&list::calls>(via::rpc) < 30);
  }
}

void other_calls_keep_their_place() {
  const auto l = make<list>(next());
  finish_all([&] {
    for (long i = 0; i < 3000; ++i) {
      if (i % 7 == 0) {
        l.ff<&list::add_one>(i);
      } else if (i % 100 == 99) {
        l.ff<&list::add_until>(i);
      } else {
        l.ff<&list::add>(i);
      }
    }
  });
  CHECK(l.call<&list::numbers>(via::rpc) == numbers_to(3000));
}

void all_kinds_of_calls_take_an_item() {
  const auto l = make<list>(next());
  CHECK_EQUAL(l.call<&list::add_and_tell>(0L), 0);
  CHECK_EQUAL(l.call<&list::add_and_tell>(via::rpc, 1L), 1);
  CHECK_EQUAL(l.call<&list::add_and_tell>(via::migrate, 2L), 2);
  CHECK_EQUAL(l.async<&list::add_and_tell>(3L).get(), 3);
  CHECK_EQUAL(l.call<&list::count>(via::cache, 3L), 1u);
  l.call<&list::add>(4L);
  CHECK(l.call<&list::numbers>(via::rpc) == numbers_to(5));
}

void items_may_have_any_size() {
  const auto l = make<list>(next());
  finish_all([&] {
    for (long i = 0; i < 1000; ++i)
      l.ff<&list::add_small>(three_bytes{static_cast<std::uint8_t>(i),
                                         static_cast<std::uint8_t>(i >> 8),
                                         static_cast<std::uint8_t>(i >> 16)});
  });
  CHECK(l.call<&list::numbers>(via::rpc) == numbers_to(1000));
  const auto w = make<list>(next());
  finish_all([&] {
    for (long i = 0; i < 1000; ++i) w.ff<&list::add_wide>(wide{i, 0});
  });
  CHECK(w.call<&list::numbers>(via::rpc) == numbers_to(1000));
  const auto p = make<list>(next());
  finish_all([&] {
    for (int i = 0; i < 1000; ++i) p.ff<&list::add_pairs>(std::pair(i, 0));
  });
  CHECK(p.call<&list::numbers>(via::rpc) == numbers_to(1000));
}

/// The items in front of the one that is refused have been handled, and later bundles are.
void what_a_method_throws_ends_its_batch() {
  const auto l = make<list>(next());
  CHECK_THROWS(std::domain_error, finish([&] {
                 const aggregated here;
                 for (long i = 0; i < 10; ++i) l.ff<&list::add_until>(i);
                 l.ff<&list::add_until>(-1L);
                 flush();
                 for (long i = 10; i < 20; ++i) l.ff<&list::add_until>(i);
               }));
  CHECK(l.call<&list::numbers>(via::rpc) == numbers_to(20));
  CHECK_THROWS(std::domain_error, finish([&] { l.ff<&list::add_until>(-1L); }));
  CHECK_THROWS(std::domain_error, l.call<&list::add_until>(via::rpc, -1L));
}

struct counted {
  long sum = 0;
  void add(batch<long> items) {
    for (const long n : items) sum += n;
  }
  long get() const { return sum; }
};
/// An object with such a method is neither copied nor moved, since it could not be waited for.
void its_object_stays() {
  const auto c = make<counted>(next());
  for (int i = 0; i < 2; ++i) {
    c.call<&counted::add>(via::fetch, 1L);
    CHECK_EQUAL(c.call<&counted::get>(via::cache), i + 1);
  }
  CHECK_EQUAL(c.where(), next());
}

// ---- Bundles ------------------------------------------------------------------------------------

/// Each rank sends each rank the numbers 0, 1, 2, …
void a_bundle_hands_each_item_over_once() {
  for (const long many : {0L, 1L, 63L, 64L, 65L, 5000L}) {
    for (int way = 0; way < 2; ++way) {
      const auto lists = make_sharded<list>();
      const auto body = [&] {
        bundle<&list::add> out(lists);
        for (long i = 0; i < many; ++i)
          for (rank_t r = 0; r < rank_count(); ++r) out.to(r, i * 100 + rank_me());
      };
      if (way == 0) {
        finish(body);
        barrier();
      } else {
        finish_all(body);
      }
      std::vector<long> next_of(static_cast<std::size_t>(rank_count()), 0);
      for (const long n : lists.here().numbers()) {
        CHECK_EQUAL(n / 100, next_of[static_cast<std::size_t>(n % 100)]);
        ++next_of[static_cast<std::size_t>(n % 100)];
      }
      for (const long n : next_of) CHECK_EQUAL(n, many);
      if (way == 1 && many == 5000 && !detail::checked())
        CHECK(lists.here().calls() <= 40 * rank_count());
      barrier();
      lists.destroy();
    }
  }
}

void a_bundle_takes_items_of_any_size() {
  const auto lists = make_sharded<list>();
  finish_all([&] {
    bundle<&list::add_small> small(lists);
    bundle<&list::add_pairs> pairs(lists);
    for (long i = 0; i < 1000; ++i) {
      small.to(next(), {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8), 0});
      if (i == 500) pairs.flush();
    }
    pairs.to(next(), {1000, 0});
    small.flush();
  });
  CHECK(lists.here().numbers() == numbers_to(1001));
  barrier();
  lists.destroy();
}

void a_bundle_belongs_to_its_finish() {
  const auto lists = make_sharded<list>();
  CHECK_THROWS(error, finish([&] {
                 bundle<&list::add> out(lists);
                 finish([&] {
                   for (long i = 0; i < 1000; ++i) out.to(next(), i);
                 });
               }));
  // It goes on being one, and no item is written where there is no room.
  CHECK_THROWS(error, finish([&] {
                 bundle<&list::add> out(lists);
                 int refused = 0;
                 finish([&] {
                   for (long i = 0; i < 1000; ++i) try {
                       out.to(next(), i);
                     } catch (const error&) {
                       ++refused;
                     }
                 });
                 CHECK_EQUAL(refused, 1000 - 63);
                 throw error("seen");
               }));
  // What is gathered when an exception is on its way is handed over, too.
  barrier();
  const std::size_t before = lists.here().numbers().size();
  barrier();
  CHECK_THROWS(std::domain_error, finish([&] {
                 bundle<&list::add> out(lists);
                 out.to(next(), 1L);
                 throw std::domain_error("enough");
               }));
  barrier();
  CHECK_EQUAL(lists.here().numbers().size(), before + 1);
  barrier();
  lists.destroy();
}

/// What was gathered goes in messages of its own, of some thousand bytes.
void a_bundle_sends_what_it_has_gathered() {
  if (rank_count() == 1 || detail::checked()) return;
  constexpr long many = 100'000;
  const auto lists = make_sharded<list>();
  barrier();
  const counters before = counters_now();
  finish_all([&] {
    bundle<&list::add> out(lists);
    for (long i = 0; i < many; ++i) out.to(next(), i);
  });
  const counters spent = counters_now() - before;
  CHECK_EQUAL(spent.calls_bundled, static_cast<std::uint64_t>(many));
  CHECK(spent.bundles_sent < many * sizeof(long) / 7000);
  CHECK(lists.here().numbers() == numbers_to(many));
  barrier();
  // Behind other calls of this rank, which are bundled.
  finish_all([&] {
    bundle<&list::add> out(lists);
    for (long i = many; i < 2 * many; ++i) {
      if (i % 10'000 == 0) {
        lists.on(next()).ff<&list::add_one>(i);
      } else {
        out.to(next(), i);
      }
      if (i % 10'000 == 9'999) out.flush();
    }
  });
  CHECK(lists.here().numbers() == numbers_to(2 * many));
  barrier();
  lists.destroy();
}

void a_bundle_in_a_window_sends_its_items_alone() {
  const auto lists = make_sharded<list>();
  finish({.in_flight = 3}, [&] {
    const aggregated here;
    bundle<&list::add> out(lists);
    for (long i = 0; i < 1000; ++i) out.to(next(), i);
  });
  barrier();
  std::vector<long> all = lists.here().numbers();
  std::sort(all.begin(), all.end());
  CHECK(all == numbers_to(1000));
  CHECK(lists.here().calls() == 1000);
  barrier();
  lists.destroy();
}

void const_methods_may_take_a_batch() {
  const auto lists = make_sharded<list>();
  list::seen = 0;
  barrier();
  finish_all([&] {
    bundle<&list::see> out(lists);
    for (long i = 0; i < 500; ++i) {
      out.to(next(), i);
      lists.on(next()).ff<&list::see>(i);
    }
  });
  CHECK_EQUAL(list::seen, 1000);
  barrier();
  lists.destroy();
}

void a_team_has_its_own_bundle() {
  const team half = team::world().split(rank_me() % 2);
  const auto lists = make_sharded<list>(half);
  finish_all(
      [&] {
        bundle<&list::add> out(lists);
        for (rank_t m = 0; m < half.rank_count(); ++m) out.to(half[m], 7L);
      },
      half);
  CHECK_EQUAL(lists.here().numbers().size(), static_cast<std::size_t>(half.rank_count()));
  barrier(half);
  lists.destroy();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("each item arrives once and in order", each_item_arrives_once_and_in_order);
    check::claim("other calls keep their place", other_calls_keep_their_place);
    check::claim("all kinds of calls take an item", all_kinds_of_calls_take_an_item);
    check::claim("items may have any size", items_may_have_any_size);
    check::claim("what a method throws ends its batch", what_a_method_throws_ends_its_batch);
    check::claim("its object stays", its_object_stays);
    check::claim("a bundle hands each item over once", a_bundle_hands_each_item_over_once);
    check::claim("a bundle takes items of any size", a_bundle_takes_items_of_any_size);
    check::claim("a bundle belongs to its finish", a_bundle_belongs_to_its_finish);
    check::claim("a bundle sends what it has gathered", a_bundle_sends_what_it_has_gathered);
    check::claim("a bundle in a window sends its items alone",
                 a_bundle_in_a_window_sends_its_items_alone);
    check::claim("const methods may take a batch", const_methods_may_take_a_batch);
    check::claim("a team has its own bundle", a_team_has_its_own_bundle);
    return check::verdict();
  });
}
