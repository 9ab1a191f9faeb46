// SPDX-License-Identifier: Apache-2.0
// Methods that take a batch: callers pass one item, each item arrives once and in order, and in a
// bundle many arrive in one call.
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

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("each item arrives once and in order", each_item_arrives_once_and_in_order);
    check::claim("other calls keep their place", other_calls_keep_their_place);
    check::claim("all kinds of calls take an item", all_kinds_of_calls_take_an_item);
    check::claim("items may have any size", items_may_have_any_size);
    check::claim("what a method throws ends its batch", what_a_method_throws_ends_its_batch);
    check::claim("its object stays", its_object_stays);
    return check::verdict();
  });
}
