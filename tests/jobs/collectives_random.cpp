// SPDX-License-Identifier: Apache-2.0
// Random programs of collective operations, which a model without messages checks: among all ranks
// and random teams, of values that travel and that are marshalled, waited in or under way in any
// number. The seed says everything that is random, and is the same on all ranks.
//
//   collectives_random [--seed S] [--programs N]
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

using u64 = std::uint64_t;

u64 mix(u64 a, u64 b) {
  u64 z = (a ^ b * 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
u64 pick(u64 h, u64 salt, u64 choices) { return mix(h, salt) % choices; }

// ---- Values, with operations that are associative and not commutative ---------------------------

/// x -> a x + b.
struct affine {
  u64 a, b;
  bool operator==(const affine&) const = default;
};
struct composed {
  using value = affine;
  affine operator()(affine f, affine g) const { return {g.a * f.a, g.a * f.b + g.b}; }
  static affine make(u64, u64 h) { return {h | 1, mix(h, 1)}; }
};
struct joined {
  using value = std::string;
  std::string operator()(std::string a, const std::string& b) const { return a += b; }
  static std::string make(u64 of_all, u64 h) {
    const bool is_long = pick(of_all, 77, 50) == 0;
    return std::string(pick(h, 2, is_long ? 70'000 : 40), static_cast<char>('a' + h % 26));
  }
};
struct last_of_each {
  using value = std::vector<u64>;
  value operator()(value a, const value& b) { return each(std::move(a), b); }
  static value make(u64 of_all, u64 h) {
    value v(pick(of_all, 3, 100));
    for (u64& x : v) x = h = mix(h, 4);
    return v;
  }
  [[no_unique_address]] decltype(elementwise([](u64 a, u64 b) { return b % 3 == 0 ? a : b; })) each;
};
struct merged {
  using value = std::map<int, std::string>;
  value operator()(value a, value b) const {
    for (auto& [key, text] : b) a[key] += text;
    return a;
  }
  static value make(u64, u64 h) {
    value v;
    for (u64 i = 0; i < pick(h, 5, 4); ++i) {
      v[static_cast<int>(pick(h, 6 + i, 5))] = std::to_string(h % 100);
    }
    return v;
  }
};

// ---- Operations ---------------------------------------------------------------------------------

/// Compares what an operation returned, now or later.
using check_later = std::function<void()>;

template <class T>
T now(T value) {
  return value;
}
template <class T>
T now(future<T>& value) {
  return value.get();
}
template <class T, class Expected>
check_later expects(T result, Expected expected) {
  auto held = std::make_shared<T>(std::move(result));
  return [held, expected = std::move(expected)] {
    if constexpr (requires { held->get(); } && requires { held->ready(); }) {
      CHECK(held->get() == expected);
    } else {
      CHECK(*held == expected);
    }
  };
}

template <class Op>
check_later begin(u64 h, const team& t, bool waits) {
  using T = typename Op::value;
  const int me = t.rank_me();
  const int count = t.rank_count();
  const auto root = static_cast<rank_t>(pick(h, 10, static_cast<u64>(count)));
  const auto of = [h](int member) { return Op::make(h, mix(h, 100 + static_cast<u64>(member))); };
  std::vector<T> all;
  for (int m = 0; m < count; ++m) all.push_back(of(m));
  const auto up_to = [&](T value, int from, int end) {
    for (int m = from; m < end; ++m)
      value = Op{}(std::move(value), all[static_cast<std::size_t>(m)]);
    return value;
  };
  const auto none = std::vector<T>{};
  const T mine = of(me);
  switch (pick(h, 11, 9)) {
    case 0: {
      const T total = up_to(all[0], 1, count);
      return waits ? expects(reduce(mine, Op{}, t), total)
                   : expects(reduce_async(mine, Op{}, t), total);
    }
    case 1: {
      std::optional<T> total;
      if (me == root) total = up_to(all[0], 1, count);
      return waits ? expects(reduce(mine, Op{}, root, t), total)
                   : expects(reduce_async(mine, Op{}, root, t), total);
    }
    case 2: {
      const T total = up_to(all[0], 1, me + 1);
      return waits ? expects(inclusive_scan(mine, Op{}, t), total)
                   : expects(inclusive_scan_async(mine, Op{}, t), total);
    }
    case 3: {
      const T first = of(1000);
      // That of other members does not count.
      const T other = me == 0 ? first : of(1001);
      const T total = up_to(first, 0, me);
      return waits ? expects(exclusive_scan(mine, other, Op{}, t), total)
                   : expects(exclusive_scan_async(mine, other, Op{}, t), total);
    }
    case 4: {
      const T theirs = of(root);
      return waits ? expects(broadcast(mine, root, t), theirs)
                   : expects(broadcast_async(mine, root, t), theirs);
    }
    case 5:
      return waits ? expects(gather(mine, root, t), me == root ? all : none)
                   : expects(gather_async(mine, root, t), me == root ? all : none);
    case 6:
      return waits ? expects(all_gather(mine, t), all) : expects(all_gather_async(mine, t), all);
    case 7: {
      const auto sent = [&](int from, int to) {
        return Op::make(h, mix(h, 5000 + static_cast<u64>(from * count + to)));
      };
      std::vector<T> to_each;
      std::vector<T> from_each;
      for (int m = 0; m < count; ++m) {
        to_each.push_back(sent(me, m));
        from_each.push_back(sent(m, me));
      }
      return waits ? expects(all_to_all(to_each, t), from_each)
                   : expects(all_to_all_async(to_each, t), from_each);
    }
    default:
      if (waits) {
        barrier(t);
        return [] {};
      }
      return [f = std::make_shared<future<void>>(barrier_async(t))] { f->get(); };
  }
}

check_later begin_any(u64 h, const team& t, bool waits) {
  switch (pick(h, 12, 4)) {
    case 0:
      return begin<composed>(h, t, waits);
    case 1:
      return begin<joined>(h, t, waits);
    case 2:
      return begin<last_of_each>(h, t, waits);
    default:
      return begin<merged>(h, t, waits);
  }
}

// ---- Programs -----------------------------------------------------------------------------------

team split_at_random(u64 h, const team& t) {
  const auto colours = static_cast<u64>(1 + pick(h, 20, 3));
  const auto colour_of = [&](int m) {
    // Some are in none of the teams.
    return static_cast<int>(pick(mix(h, static_cast<u64>(m)), 21, colours + 1)) - 1;
  };
  const auto key_of = [&](int m) {
    return static_cast<int>(pick(mix(h, static_cast<u64>(m)), 22, 3));
  };
  const int me = t.rank_me();
  const team part = t.split(colour_of(me), key_of(me));
  if (colour_of(me) < 0) {
    CHECK_EQUAL(part.rank_count(), 0);
    return part;
  }
  std::vector<rank_t> members;
  for (int key = 0; key < 3; ++key) {
    for (int m = 0; m < t.rank_count(); ++m) {
      if (colour_of(m) == colour_of(me) && key_of(m) == key) members.push_back(t[m]);
    }
  }
  CHECK_EQUAL(members.size(), static_cast<std::size_t>(part.rank_count()));
  for (int m = 0; m < part.rank_count(); ++m) {
    CHECK_EQUAL(part[m], members[static_cast<std::size_t>(m)]);
    CHECK_EQUAL(part.from_world(part[m]), m);
  }
  CHECK_EQUAL(part[part.rank_me()], rank_me());
  return part;
}

void random_program(u64 seed) {
  std::vector<team> teams{team::world()};
  std::deque<check_later> under_way;
  u64 own = mix(seed, 1'000'000 + static_cast<u64>(rank_me()));  // other ranks choose otherwise
  const auto check_one = [&] {
    own = mix(own, 1);
    const auto which = static_cast<std::ptrdiff_t>(own % under_way.size());
    under_way[static_cast<std::size_t>(which)]();
    under_way.erase(under_way.begin() + which);
  };
  for (u64 i = 0; i < 30; ++i) {
    const u64 h = mix(seed, i);
    const auto which = static_cast<std::size_t>(pick(h, 30, teams.size()));
    switch (pick(h, 31, 8)) {
      case 0:  // Teams of teams; all ranks have as many, whether they are members or not.
        if (teams.size() < 5) {
          const team t = teams[which];
          teams.push_back(t.rank_count() == 0 ? t : split_at_random(h, t));
        }
        break;
      case 1:  // Forgotten while operations among it may be under way.
        if (teams.size() > 1) teams.pop_back();
        break;
      case 2: {  // One operation of each team, which every rank begins in an order of its own.
        std::vector<std::size_t> order;
        for (std::size_t t = 0; t < teams.size(); ++t) order.push_back(t);
        for (std::size_t t = teams.size(); t > 1; --t) {
          own = mix(own, 2);
          std::swap(order[t - 1], order[static_cast<std::size_t>(own % t)]);
        }
        for (const std::size_t t : order) {
          if (teams[t].rank_count() == 0) continue;
          under_way.push_back(begin_any(mix(h, t), teams[t], false));
        }
        break;
      }
      case 3:
      case 4:
      case 5:
        if (teams[which].rank_count() != 0) {
          under_way.push_back(begin_any(h, teams[which], false));
        }
        break;
      default:
        if (teams[which].rank_count() != 0) begin_any(h, teams[which], true)();
    }
    own = mix(own, 3);
    if (own % 4 == 0) yield();
    if (own % 5 == 0 && !under_way.empty()) check_one();
  }
  while (!under_way.empty()) check_one();
}

u64 number_after(int argc, char** argv, std::string_view option, u64 otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == option) return std::strtoull(argv[i + 1], nullptr, 10);
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    const u64 seed = number_after(argc, argv, "--seed", 1);
    const u64 programs = number_after(argc, argv, "--programs", 30);
    for (u64 s = seed; s < seed + programs; ++s) {
      const std::string claim = "collectives_random --programs 1 --seed " + std::to_string(s);
      check::claim(claim.c_str(), [s] { random_program(s); });
    }
    return check::verdict();
  });
}
