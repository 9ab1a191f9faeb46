// SPDX-License-Identifier: Apache-2.0
// Each template of the public headers with values of several shapes, because what the optimizer
// warns of depends on them: nothing, small, with a hole, aligned, larger than a cache line, with a
// destructor.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

using namespace sojourn;

struct large {
  double values[70];
};
struct alignas(64) aligned {
  long values[8];
};
struct released {
  long value = 0;
  released() = default;
  explicit released(long v) : value(v) {}
  released(const released& other) : value(other.value) {}
  ~released() { value = -1; }
};
template <>
inline constexpr bool sojourn::travels<released> = true;

using name = inline_string<24>;
using mixed = std::tuple<int, char, double>;

struct object {
  long count = 0;
  name text = "object";

  void touch_remote() noexcept { ++count; }
  bool touched() const { return count != 0; }
  std::optional<int> maybe() const { return count > 1000 ? std::nullopt : std::optional<int>(7); }
  std::variant<int, double> either() const { return 2.5; }
  std::array<char, 3> letters() const { return {'a', 'b', 'c'}; }
  mixed same(mixed m) const { return m; }
  large grown(large l) const {
    l.values[69] += 1;
    return l;
  }
  aligned grown(aligned a) const {
    a.values[7] += 1;
    return a;
  }
  released twice(const released& r) { return released(2 * r.value); }
  name rename(name n) {
    std::swap(n, text);
    return n;
  }
  int refuse(int i) const {
    if (i > 0) throw std::domain_error("refused");
    return i;
  }
};

static void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "rank %d: wrong: %s\n", rank_me(), what);
  std::exit(1);
}

static void touch_remote(global_ptr<object> p, via how) { p.call<&object::touch_remote>(how); }
static bool touched(global_ptr<object> p, via how) { return p.call<&object::touched>(how); }
static std::optional<int> maybe(global_ptr<object> p, via how) {
  return p.call<&object::maybe>(how);
}
static std::variant<int, double> either(global_ptr<object> p, via how) {
  return p.call<&object::either>(how);
}
static mixed same(global_ptr<object> p, via how, mixed m) { return p.call<&object::same>(how, m); }
static large grow_large(global_ptr<object> p, via how, large l) {
  constexpr auto method = static_cast<large (object::*)(large) const>(&object::grown);
  return p.call<method>(how, l);
}
static aligned grow_aligned(global_ptr<object> p, via how, aligned a) {
  constexpr auto method = static_cast<aligned (object::*)(aligned) const>(&object::grown);
  return p.call<method>(how, a);
}
static released twice(global_ptr<object> p, via how, released r) {
  return p.call<&object::twice>(how, r);
}
static name rename_object(global_ptr<object> p, via how, name n) {
  return p.call<&object::rename>(how, n);
}
static long nested(global_ptr<object> p, via how) {
  long sum = 0;
  for (int i = 0; i < 3; ++i) sum += activate(maybe, p, how).value_or(0);
  return sum + activate(twice, p, how, released(4)).value;
}

static void activations(global_ptr<object> p, via how) {
  activate(touch_remote, p, how);
  check(activate(touched, p, how), "touched");
  check(activate(maybe, p, how) == 7, "optional");
  check(std::get<double>(activate(either, p, how)) == 2.5, "variant");
  check(activate(same, p, how, mixed(1, 'c', 2.0)) == mixed(1, 'c', 2.0), "tuple");
  check(activate(grow_large, p, how, large{}).values[69] == 1, "large");
  check(activate(grow_aligned, p, how, aligned{}).values[7] == 1, "aligned");
  check(activate(twice, p, how, released(3)).value == 6, "released");
  activate(rename_object, p, how, name("new"));
  check(activate(rename_object, p, how, name("newer")).view() == "new", "name");
  check(activate(nested, p, how) == 29, "nested");
  int local = 3;
  check(activate([&] { return std::string(5, 'x') + std::to_string(local); }) == "xxxxx3", "text");
  check(activate([&] { return std::vector<int>(4, local); }).size() == 4, "vector");
}

static void futures(global_ptr<object> p, via how) {
  auto letters = p.async<&object::letters>(how);
  auto doubled = p.async<&object::twice>(how, released(5));
  auto nothing = p.async<&object::touch_remote>(how);
  auto later = p.async<&object::maybe>(how);
  auto moved = std::move(later);
  auto text = p.async<&object::rename>(how, name("async")).then([](name n) { return n.str(); });
  auto [abc, ten, nil] = when_all(std::move(letters), std::move(doubled), std::move(nothing)).get();
  (void)nil;
  check(abc[2] == 'c' && ten.value == 10 && moved.get() == 7 && !text.get().empty(), "async");
  try {
    p.call<&object::refuse>(how, 1);
    check(false, "an exception arrives");
  } catch (const std::domain_error&) {
  }

  std::vector<future<released>> values;
  std::vector<future<bool>> flags;
  std::vector<future<void>> voids;
  for (rank_t r = 0; r < rank_count(); ++r) {
    values.push_back(rpc(r, [](released v) { return released(v.value + rank_me()); }, released(r)));
    flags.push_back(rpc(r, [](rank_t to) { return to == rank_me(); }, r));
    voids.push_back(rpc(r, [] {}));
  }
  long sum = 0;
  for (const released& v : when_all(std::move(values)).get()) sum += v.value;
  check(sum == long{rank_count()} * (rank_count() - 1), "values of all ranks");
  for (bool flag : when_all(std::move(flags)).get()) check(flag, "the rank that was meant");
  when_all(std::move(voids)).get();
  finish([] {
    for (rank_t r = 0; r < rank_count(); ++r) rpc_ff(r, [](large l) { (void)l; }, large{});
  });
}

static void bulk_and_collectives() {
  auto array = make_array<released>(rank_count() - 1, 100);
  std::vector<released> copy(100, released(rank_me()));
  if (rank_me() == 0) put(std::span(copy), array);
  get(array, std::span(copy));
  store(array + 3, released(9));
  check(load(array + 3).value == 9, "store and load");
  destroy_array(array, 100);
  auto optional = make<std::optional<int>>(0, 4);
  check(load(optional) == 4, "load of an optional");
  destroy(optional);

  check(reduce(1, std::plus<>{}) == rank_count(), "reduce");
  auto later = [](const name& a, const name& b) { return a < b ? b : a; };
  check(reduce(name("a"), later).view() == "a", "reduce of a name");
  check(broadcast(aligned{{1, 2, 3}}).values[2] == 3, "broadcast");
  check(broadcast(std::optional<int>(5)) == 5, "broadcast of an optional");
  auto all = gather(released(rank_me()));
  check(rank_me() != 0 || all.back().value == rank_count() - 1, "gather");
  barrier();
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto p = make<object>((rank_me() + 1) % rank_count());
    for (via how : {via::rpc, via::migrate}) {
      activations(p, how);
      futures(p, how);
    }
    bulk_and_collectives();
    stay here;
    check(activate([] { return migrate_to(rank_count() - 1); }), "migrate_to");
    destroy(p);
  });
}
