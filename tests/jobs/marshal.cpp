// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments and results own memory: of each kind and size, by each way to call.
#include "sojourn/calls/marshal.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

int next_rank() { return (rank_me() + 1) % rank_count(); }
int last_rank() { return rank_count() - 1; }

// ---- Types of a program ---------------------------------------------------------------------

struct person {
  std::string name;
  int age;
  std::vector<std::string> tags;
  bool operator==(const person&) const = default;
};
struct tree {
  int value;
  std::vector<tree> children;
  bool operator==(const tree&) const = default;
};
class annotated {
 public:
  annotated() = default;
  explicit annotated(std::string text) : text_(std::move(text)) {}
  template <class Archive>
  void serialize(Archive& ar) {
    ar(text_, uses_);
  }
  bool operator==(const annotated&) const = default;

 private:
  std::string text_;
  std::map<std::string, int> uses_{{"here", 1}};
};

struct store {
  std::map<std::string, std::string> words;
  std::string history;

  store() = default;
  store(std::string first, std::vector<std::pair<std::string, std::string>> more) : history(first) {
    words.insert(more.begin(), more.end());
  }
  void put(const std::string& key, std::string value) { words[key] = std::move(value); }
  std::optional<std::string> find(const std::string& key) const {
    auto found = words.find(key);
    if (found == words.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& [key, value] : words) all.push_back(key);
    return all;
  }
  std::size_t lookups(std::vector<std::string> keys) const {
    return static_cast<std::size_t>(
        std::count_if(keys.begin(), keys.end(), [&](const auto& k) { return words.contains(k); }));
  }
  std::string slow(std::string_view text, std::span<const int> numbers) {
    yield();  // waits: the message is gone by then
    return std::string(text) + std::to_string(std::accumulate(numbers.begin(), numbers.end(), 0));
  }
  long quick(view<long> numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0L); }
  [[noreturn]] void refuse(std::string why) { throw std::invalid_argument(why); }
};

// ---- By rpc ---------------------------------------------------------------------------------

template <class T>
T same(T value) {
  return value;
}

template <class T>
void there_and_back(const T& value) {
  for (int to : {rank_me(), next_rank(), last_rank()}) {
    T back = rpc(to, same<T>, value).get();
    CHECK(back == value);
  }
}

void values_of_each_kind() {
  there_and_back(std::string());
  there_and_back(std::string("text"));
  there_and_back(std::string(10'000, 'x'));
  there_and_back(std::vector<double>{1, 2, 3});
  there_and_back(std::vector<bool>{true, false, true});
  there_and_back(std::vector<std::string>{"a", "", "c"});
  there_and_back(std::array<std::string, 3>{"a", "b", "c"});
  there_and_back(std::list<std::string>{"a", "b"});
  there_and_back(std::deque<int>{1, 2});
  there_and_back(std::map<std::string, std::vector<int>>{{"a", {1, 2}}, {"b", {}}});
  there_and_back(std::unordered_map<int, std::string>{{1, "a"}, {2, "b"}});
  there_and_back(std::set<std::string>{"x", "y"});
  there_and_back(std::optional<std::string>("here"));
  there_and_back(std::optional<std::string>());
  there_and_back(std::variant<int, std::string>("second"));
  there_and_back(std::tuple<int, std::string, std::optional<person>>(1, "x", person{"y", 2, {}}));
  there_and_back(std::pair<std::string, int>("a", 1));
  // As the elements of a map are.
  using element = std::pair<const std::string, int>;
  there_and_back(element("a", 1));
  there_and_back(std::tuple<element, std::optional<element>>(element("b", 2), element("c", 3)));
  there_and_back(person{"Ada", 36, {"x"}});
  there_and_back(tree{1, {{2, {{3, {}}}}, {4, {}}}});
  there_and_back(annotated("serialized"));
  there_and_back(std::vector<std::map<std::string, std::optional<annotated>>>{
      {{"a", annotated("b")}, {"c", std::nullopt}}, {}});
}

void owners_move_through() {
  auto sum = [](std::unique_ptr<person> p, std::vector<std::unique_ptr<int>> all) {
    p->age += static_cast<int>(all.size());
    return p;
  };
  std::vector<std::unique_ptr<int>> all;
  all.push_back(std::make_unique<int>(1));
  all.push_back(nullptr);
  auto back = rpc(next_rank(), sum, std::make_unique<person>(person{"a", 1, {}}), std::move(all));
  auto person_back = back.get();
  CHECK_EQUAL(person_back->age, 3);
  CHECK(person_back->name == "a");
}

void one_way_calls() {
  static long received;
  received = 0;
  barrier();
  finish([] {
    for (int to = 0; to < rank_count(); ++to) {
      rpc_ff(
          to, [](std::string s, std::vector<int> v) { received += long(s.size() + v.size()); },
          std::string(100, 'x'), std::vector<int>{1, 2, 3});
    }
  });
  barrier();
  CHECK_EQUAL(received, 103L * rank_count());
}

void exceptions_arrive() {
  auto fails = [](std::string why) -> std::string { throw std::out_of_range(why); };
  CHECK_THROWS(std::out_of_range, rpc(next_rank(), fails, std::string("no")).get());
  try {
    rpc(last_rank(), fails, std::string("this is why")).get();
  } catch (const std::out_of_range& e) {
    CHECK(std::string(e.what()) == "this is why");
  }
}

// ---- By method --------------------------------------------------------------------------------

void methods_take_and_return_what_owns_memory() {
  using pairs = std::vector<std::pair<std::string, std::string>>;
  auto s = make<store>(next_rank(), std::string("made"), pairs{{"first", "1"}});
  CHECK(s.call<&store::find>(std::string("first")) == std::optional<std::string>("1"));
  s.call<&store::put>(via::migrate, "second", "2");  // an rpc: its frames own strings
  s.call<&store::put>(via::rpc, std::string("third"), std::string(5000, 'z'));
  CHECK_EQUAL(s.call<&store::find>(via::rpc, "third")->size(), 5000u);
  CHECK(!s.call<&store::find>(via::rpc, "fourth"));
  CHECK((s.call<&store::keys>(via::rpc) == std::vector<std::string>{"first", "second", "third"}));
  auto later = s.async<&store::lookups>(std::vector<std::string>{"first", "none", "third"});
  CHECK_EQUAL(later.get(), 2u);
  CHECK_THROWS(std::invalid_argument, s.call<&store::refuse>(std::string("why")));
  destroy(s);
}

void views_are_read_at_the_receiver() {
  auto s = make<store>(next_rank());
  std::vector<int> numbers(1000, 2);
  std::vector<long> longs(10'000, 3);
  CHECK(s.call<&store::slow>(via::rpc, "text", numbers) == "text2000");
  CHECK_EQUAL(s.call<&store::quick>(via::rpc, longs), 30'000L);
  // Started here and there: the caller's elements may be gone before they are looked at.
  future<std::string> later;
  {
    std::string text(50, 't');
    std::vector<int> few{1, 2, 3};
    later = s.async<&store::slow>(std::string_view(text), std::span<const int>(few));
    std::fill(text.begin(), text.end(), '!');
    std::fill(few.begin(), few.end(), 9);
  }
  CHECK(later.get() == std::string(50, 't') + "6");
  std::vector<double> halves(100, 0.5);
  auto sum = [](view<double> v, int more) {
    return std::accumulate(v.begin(), v.end(), 0.0) + more;
  };
  CHECK_EQUAL(rpc(next_rank(), sum, view<double>(halves), 1).get(), 51.0);
  destroy(s);
}

// ---- Other ways -------------------------------------------------------------------------------

void threads_take_what_owns_memory() {
  static std::string seen;
  static int seen_on;
  seen.clear();
  seen_on = -1;
  barrier();
  auto t = spawn_on(
      next_rank(),
      [](std::string s, std::vector<std::string> more, std::string_view end) {
        sojourn::yield();
        seen = s + more.at(1);
        seen += end;
        seen_on = rank_me();
      },
      std::string("a"), std::vector<std::string>{"b", "c"}, std::string_view("d"));
  CHECK_THROWS(thread_error, migrate(t, last_rank() == next_rank() ? rank_me() : last_rank()));
  t.join();
  barrier();
  CHECK(seen == "acd");
  CHECK_EQUAL(seen_on, rank_me());
}

void futures_are_read_elsewhere() {
  // A result that the home of its ticket forwards to where it is asked for.
  auto words = [](int n) { return std::vector<std::string>(static_cast<std::size_t>(n), "word"); };
  auto all = when_all(rpc(next_rank(), words, 3), rpc(last_rank(), words, 2)).get();
  CHECK_EQUAL(std::get<0>(all).size(), 3u);
  CHECK_EQUAL(std::get<1>(all).size(), 2u);
  std::size_t read = activate(
      [](rank_t there, decltype(words) make_words) {
        auto f = rpc(rank_me(), make_words, 5);
        migrate_to(there);
        return f.get().size();
      },
      next_rank(), words);
  CHECK_EQUAL(read, 5u);
  rpc(next_rank(), words, 1000).wait();  // dropped unread
}

void values_are_broadcast_and_gathered() {
  std::map<std::string, int> mine;
  if (rank_me() == last_rank()) mine = {{"a", 1}, {"b", 2}};
  auto all = broadcast(mine, last_rank());
  CHECK_EQUAL(all.size(), 2u);
  CHECK_EQUAL(all["b"], 2);
  std::string long_text = rank_me() == 0 ? std::string(20 << 20, 'x') : std::string();
  CHECK_EQUAL(broadcast(long_text).size(), std::size_t{20} << 20);
  auto names = all_gather(std::string(static_cast<std::size_t>(rank_me()), 'r'));
  CHECK_EQUAL(names.size(), static_cast<std::size_t>(rank_count()));
  for (int r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(names[static_cast<std::size_t>(r)].size(), static_cast<std::size_t>(r));
  }
  auto at_one = gather(person{"p", rank_me(), {"x"}}, last_rank());
  CHECK_EQUAL(at_one.size(), rank_me() == last_rank() ? names.size() : 0);
  if (rank_me() == last_rank()) CHECK_EQUAL(at_one.back().age, last_rank());
}

// ---- Failures ---------------------------------------------------------------------------------

struct fails_to_load {
  std::string text;
  template <class Archive>
  void save(Archive& ar) const {
    ar(text);
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(text);
    if (text == "bad") throw std::domain_error("this is no value: " + text);
  }
};
struct fails_to_save {
  static inline int saves = 0;
  int saves_until = 0;
  std::string text;
  template <class Archive>
  void save(Archive& ar) const {
    ar(text);
    if (++saves == saves_until) throw std::range_error("not now");
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(text);
  }
};

void what_reading_throws_arrives() {
  auto f = [](fails_to_load v, std::string) { return v.text; };
  CHECK(rpc(next_rank(), f, fails_to_load{"good"}, std::string("x")).get() == "good");
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS(std::domain_error,
                 rpc(next_rank(), f, fails_to_load{"bad"}, std::string("x")).get());
  }
  auto g = [](int) { return fails_to_load{"bad"}; };
  CHECK_THROWS(std::domain_error, rpc(next_rank(), g, 1).get());
  CHECK(rpc(next_rank(), f, fails_to_load{"good"}, std::string("x")).get() == "good");
}

void what_writing_throws_is_thrown_at_the_call() {
  auto f = [](fails_to_save v) { return v.text; };
  // While it is measured, and then while it is written into room that the message has already.
  for (int i : {1, 2}) {
    fails_to_save::saves = 0;
    CHECK_THROWS(std::range_error, rpc(next_rank(), f, fails_to_save{i, "x"}));
  }
  CHECK(rpc(next_rank(), f, fails_to_save{0, "good"}).get() == "good");
}

void values_nested_too_deep_are_refused_here() {
  tree deep{0, {}};
  for (int i = 0; i < 200; ++i) {
    tree outer{i, {}};
    outer.children.push_back(std::move(deep));
    deep = std::move(outer);
  }
  CHECK_THROWS(error, rpc(next_rank(), same<tree>, deep));
}

// ---- What it costs ----------------------------------------------------------------------------

/// Copied as bytes, and says how often it was moved by the program.
struct counted {
  static inline long moves = 0;
  long value = 0;
  counted() = default;
  explicit counted(long v) : value(v) {}
  counted(const counted& o) : value(o.value) { ++moves; }
};
struct counting {
  long sum = 0;
  long add(const counted& c) {
    sum += c.value;
    return counted::moves;
  }
};

}  // namespace

template <>
inline constexpr bool sojourn::travels<counted> = true;

namespace {

void what_travels_as_bytes_is_copied_once_a_side() {
  if (rank_count() == 1) return;
  auto c = make<counting>(1);
  if (rank_me() == 0) {
    auto there = [](const counted&) { return counted::moves; };
    long before_there = rpc(1, there, counted()).get();
    long before = counted::moves;
    long after_there = rpc(1, there, counted(3)).get();
    CHECK_EQUAL(counted::moves - before, 1);     // from the parameter into the message
    CHECK_EQUAL(after_there - before_there, 0);  // out of it, by its bytes
    before = counted::moves;
    after_there = c.call<&counting::add>(via::rpc, counted(4));
    CHECK_EQUAL(counted::moves - before, 2);  // into the access's own frame, into the message
    CHECK_EQUAL(after_there - before_there, 0);
  }
  barrier();
  destroy(c);
}

void each_byte_is_copied_once_a_side() {
  if (rank_count() == 1) return;
  // From rank 0 to rank 1, counted at both ends.
  constexpr std::size_t n = 10'000;
  constexpr std::uint64_t bytes = n * sizeof(double);
  constexpr std::uint64_t aligned = 16;  // the count of elements, before a long block
  auto counted = [](auto call, auto& before_there, auto& after_there) {
    auto now = [] { return counters_now(); };
    before_there = rpc(1, now).get();
    auto before = counters_now();
    call();
    auto here = counters_now() - before;
    after_there = rpc(1, now).get();
    return here;
  };
  if (rank_me() == 0) {
    counters before;
    counters after;
    std::vector<double> values(n, 1);
    auto here =
        counted([&] { rpc(1, [](std::vector<double> v) { return v.size(); }, values).get(); },
                before, after);
    auto there = after - before;
    CHECK_EQUAL(here.marshalled_bytes, bytes + aligned);
    CHECK_EQUAL(here.marshal_copies, bytes + aligned);
    CHECK_EQUAL(there.marshal_copies, bytes + 8);
    // A view is not copied at the receiver; what outlives the message is, once.
    here = counted([&] { rpc(1, [](view<double> v) { return v.size(); }, view(values)).get(); },
                   before, after);
    there = after - before;
    CHECK_EQUAL(here.marshal_copies, bytes + aligned);
    CHECK_EQUAL(there.marshal_copies, 8u);
    here = counted(
        [&] {
          rpc(
              1, [](std::span<const double> v) { return v.size(); },
              std::span<const double>(values))
              .get();
        },
        before, after);
    there = after - before;
    CHECK_EQUAL(there.marshal_copies, bytes + 8);
  }
  barrier();
}

}  // namespace

// ---- Nothing is allocated ---------------------------------------------------------------------

static long allocations;

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  auto a = static_cast<std::size_t>(alignment);
  void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  ++allocations;
  auto a = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(a, (bytes + a - 1) / a * a);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace {

std::vector<int> begun;
/// In one message, in several, or a message of its own: up to 4 MiB all is one order.
void calls_up_to_4_MiB_begin_in_order() {
  begun.clear();
  barrier();
  std::mt19937 random(static_cast<unsigned>(rank_me()) + 1);
  constexpr int calls = 60;
  constexpr std::size_t lengths[] = {8, 4000, 60'000, 300'000, 1'200'000, 4'100'000};
  finish([&] {
    for (int i = 0; i < calls; ++i) {
      const std::vector<char> values(lengths[random() % std::size(lengths)], static_cast<char>(i));
      const auto note = [](int number, view<char> v) {
        CHECK_EQUAL(v[0], static_cast<char>(number));
        CHECK_EQUAL(v[v.size() - 1], static_cast<char>(number));
        begun.push_back(number);
      };
      rpc_ff(next_rank(), note, i, view(values));
    }
  });
  barrier();
  CHECK_EQUAL(begun.size(), std::size_t{calls});
  CHECK(std::is_sorted(begun.begin(), begun.end()));
  barrier();
}

void steady_calls_allocate_nothing() {
  if (rank_count() == 1) return;
  if (rank_me() == 0) {
    auto count = [] { return allocations; };
    struct plain {
      long a[6];
    };
    auto twice = [](plain p) { return plain{{p.a[0] * 2}}; };
    std::vector<double> values(1000, 1);
    auto in_place = [](view<double> v) { return v.size(); };
    auto in_buffer = [](std::span<const double> v) { return v.size(); };
    auto calls = [&] {
      for (int i = 0; i < 100; ++i) {
        CHECK_EQUAL(rpc(1, twice, plain{{i}}).get().a[0], 2L * i);
        CHECK_EQUAL(rpc(1, in_place, view(values)).get(), values.size());
        CHECK_EQUAL(rpc(1, in_buffer, std::span<const double>(values)).get(), values.size());
      }
    };
    calls();  // once, for what is made the first time
    long there = rpc(1, count).get();
    long here = allocations;
    calls();
    // A hundred of each kind of call. A queue of the runtime may grow once for a wait that is rare.
    CHECK(allocations - here < 10);
    CHECK(rpc(1, count).get() - there < 10);
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    using check::claim;
    claim("values of each kind go there and back", values_of_each_kind);
    claim("what a unique_ptr owns goes along", owners_move_through);
    claim("one-way calls take them", one_way_calls);
    claim("exceptions arrive", exceptions_arrive);
    claim("methods take and return them", methods_take_and_return_what_owns_memory);
    claim("views are read at the receiver", views_are_read_at_the_receiver);
    claim("threads take them and stay", threads_take_what_owns_memory);
    claim("futures of them are read elsewhere", futures_are_read_elsewhere);
    claim("they are broadcast and gathered", values_are_broadcast_and_gathered);
    claim("what reading throws arrives", what_reading_throws_arrives);
    claim("what writing throws is thrown at the call", what_writing_throws_is_thrown_at_the_call);
    claim("values nested too deep are refused", values_nested_too_deep_are_refused_here);
    claim("what travels as bytes is copied once a side",
          what_travels_as_bytes_is_copied_once_a_side);
    claim("each byte is copied once a side", each_byte_is_copied_once_a_side);
    claim("calls up to 4 MiB begin in order", calls_up_to_4_MiB_begin_in_order);
    claim("steady calls allocate nothing", steady_calls_allocate_nothing);
    return check::verdict();
  });
}
