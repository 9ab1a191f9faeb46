// SPDX-License-Identifier: Apache-2.0
#include "sojourn/calls/marshal.hpp"

#include <gtest/gtest.h>

#include <cereal/cereal.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/queue.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/valarray.hpp>
#include <cereal/types/vector.hpp>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

using namespace sojourn;

namespace {

// ---- Types of a program ---------------------------------------------------------------------

struct point {
  double x, y;
  bool operator==(const point&) const = default;
};
struct person {
  std::string name;
  int age;
  std::vector<std::string> tags;
  bool operator==(const person&) const = default;
};
struct with_arrays {
  int numbers[3];
  std::string words[2];
  std::optional<person> who;
  char last;
  bool operator==(const with_arrays&) const = default;
};
struct tree {
  int value;
  std::vector<tree> children;
  bool operator==(const tree&) const = default;
};
struct list_of {
  int value;
  std::unique_ptr<list_of> next;
};
struct empty {
  bool operator==(const empty&) const = default;
};
class no_default {
 public:
  explicit no_default(int n) : n_(n) {}
  bool operator==(const no_default&) const = default;

 private:
  int n_;
};
struct of_no_default {
  no_default a;
  std::string b;
  bool operator==(const of_no_default&) const = default;
};

// Annotated in each of the ways that cereal offers.
class by_member {
 public:
  by_member() = default;
  by_member(std::string text, std::map<std::string, int> counts)
      : text_(std::move(text)), counts_(std::move(counts)) {}
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(text_), counts_);
  }
  bool operator==(const by_member&) const = default;

 private:
  std::string text_;
  std::map<std::string, int> counts_;
};
class by_private_member {
 public:
  by_private_member() = default;
  explicit by_private_member(std::string text) : text_(std::move(text)) {}
  bool operator==(const by_private_member&) const = default;

 private:
  friend class cereal::access;
  template <class Archive>
  void serialize(Archive& ar) {
    ar & text_;
  }
  std::string text_;
};
struct by_save_and_load {
  std::vector<int> halves;
  template <class Archive>
  void save(Archive& ar) const {
    std::vector<int> doubled;  // gone when this returns
    for (int h : halves) doubled.push_back(2 * h);
    ar << doubled;
    static_assert(Archive::is_saving::value && !Archive::is_loading::value);
  }
  template <class Archive>
  void load(Archive& ar) {
    ar >> halves;
    for (int& h : halves) h /= 2;
  }
  bool operator==(const by_save_and_load&) const = default;
};
struct by_function {
  std::string text;
  bool operator==(const by_function&) const = default;
};
template <class Archive>
void serialize(Archive& ar, by_function& v) {
  ar(cereal::make_nvp("text", v.text));
}
struct by_functions {
  std::string text;
  bool operator==(const by_functions&) const = default;
};
template <class Archive>
void save(Archive& ar, const by_functions& v) {
  ar(v.text + "!");
}
template <class Archive>
void load(Archive& ar, by_functions& v) {
  ar(v.text);
  v.text.pop_back();
}
struct by_minimal {
  std::string text;
  template <class Archive>
  std::string save_minimal(const Archive&) const {
    return text;
  }
  template <class Archive>
  void load_minimal(const Archive&, const std::string& value) {
    text = value;
  }
  bool operator==(const by_minimal&) const = default;
};
struct versioned {
  std::string text;
  std::uint32_t seen = 0;
  template <class Archive>
  void serialize(Archive& ar, const std::uint32_t version) {
    ar(text);
    seen = version;
  }
};
struct derived : by_member {
  std::string more;
  derived() = default;
  derived(by_member base, std::string text) : by_member(std::move(base)), more(std::move(text)) {}
  template <class Archive>
  void serialize(Archive& ar) {
    ar(cereal::base_class<by_member>(this), more);
  }
  bool operator==(const derived&) const = default;
};

}  // namespace
CEREAL_CLASS_VERSION(versioned, 7)
namespace {

// ---- There and back ---------------------------------------------------------------------------

struct written {
  std::vector<std::byte> room;
  std::size_t at = 0;  // offset of the first byte that is aligned to 16
  std::size_t size = 0;
  const std::byte* bytes() const { return room.data() + at; }
};

template <class T>
written write(const T& value) {
  detail::sizer measure;
  detail::save_value(measure, value);
  written w;
  w.size = measure.whole();
  w.room.resize(w.size + 16);
  w.at = detail::padding(reinterpret_cast<std::uintptr_t>(w.room.data()), 16);
  detail::writer to(w.room.data() + w.at, w.size);
  detail::save_value(to, value);
  EXPECT_EQ(to.left(), 0u) << "measured and written differ";
  return w;
}

template <class T>
T read(const written& w) {
  detail::reader from(w.bytes(), w.size);
  T value = detail::make_value<T>(from);
  from.expect_end();
  return value;
}

template <class T>
void expect_same(const T& value) {
  EXPECT_TRUE(read<T>(write(value)) == value);
}

TEST(marshal, values_of_each_type_come_back) {
  expect_same(7);
  expect_same(true);
  expect_same(point{1, 2});
  expect_same(empty());
  expect_same(std::string("text"));
  expect_same(std::string(100'000, 'x'));
  expect_same(std::u16string(u"wide"));
  expect_same(std::vector<int>{1, 2, 3});
  expect_same(std::vector<int>());
  expect_same(std::vector<bool>{true, false, true, true, false, false, true, true, true});
  expect_same(std::vector<point>{{1, 2}, {3, 4}});
  expect_same(std::vector<std::string>{"a", "", "ccc"});
  expect_same(std::vector<std::vector<std::vector<int>>>{{{1}, {}}, {}, {{2, 3}}});
  expect_same(std::array<std::string, 2>{"a", "b"});
  expect_same(std::list<int>{1, 2});
  expect_same(std::deque<std::string>{"x", "y"});
  expect_same(std::map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  expect_same(std::multimap<int, int>{{1, 2}, {1, 3}});
  expect_same(std::unordered_map<std::string, point>{{"a", {1, 2}}, {"b", {3, 4}}});
  expect_same(std::set<std::string>{"a", "b"});
  expect_same(std::multiset<int>{1, 1, 2});
  expect_same(std::unordered_set<int>{5, 6, 7});
  expect_same(std::optional<std::string>("here"));
  expect_same(std::optional<std::string>());
  expect_same(std::optional<int>(3));
  expect_same(std::variant<int, std::string, point>(std::string("second")));
  expect_same(std::variant<int, std::string, point>(point{1, 2}));
  expect_same(std::tuple<int, std::string, std::optional<bool>>(1, "two", true));
  expect_same(std::pair<std::string, int>("a", 1));
  expect_same(person{"Ada", 36, {"x", "y"}});
  expect_same(with_arrays{{1, 2, 3}, {"a", "b"}, person{"B", 1, {}}, 'z'});
  expect_same(tree{1, {{2, {{3, {}}}}, {4, {}}}});
  expect_same(std::tuple<std::optional<std::string>, std::tuple<>, empty>("beside", {}, {}));
  expect_same(of_no_default{no_default(3), "x"});
  expect_same(std::vector<no_default>{no_default(1), no_default(2)});
  expect_same(std::optional<no_default>(no_default(4)));
  expect_same(std::tuple<no_default, std::string>(no_default(1), "x"));
}

TEST(marshal, what_a_unique_ptr_owns_comes_back) {
  list_of chain{1, std::make_unique<list_of>(list_of{2, nullptr})};
  auto back = read<list_of>(write(chain));
  EXPECT_EQ(back.value, 1);
  ASSERT_NE(back.next, nullptr);
  EXPECT_EQ(back.next->value, 2);
  EXPECT_EQ(back.next->next, nullptr);
  auto one = read<std::unique_ptr<no_default>>(write(std::make_unique<no_default>(5)));
  EXPECT_TRUE(*one == no_default(5));
}

TEST(marshal, types_annotated_for_cereal_come_back_unchanged) {
  expect_same(by_member("text", {{"a", 1}}));
  expect_same(by_private_member("private"));
  expect_same(by_save_and_load{{1, 2, 3}});
  expect_same(by_function{"free"});
  expect_same(by_functions{"two"});
  expect_same(by_minimal{"small"});
  expect_same(derived(by_member("base", {}), "more"));
  expect_same(std::vector<by_member>{{"a", {}}, {"b", {{"c", 2}}}});
  expect_same(std::map<std::string, by_functions>{{"k", {"v"}}});
}

TEST(marshal, versions_given_for_cereal_are_seen) {
  auto back = read<versioned>(write(versioned{"text", 0}));
  EXPECT_EQ(back.text, "text");
  EXPECT_EQ(back.seen, 7u);
}

TEST(marshal, functions_of_cereals_headers_serve_types_unknown_here) {
  static_assert(detail::form_of<std::valarray<double>>() == detail::form::user);
  std::valarray<double> numbers{1, 2, 3};
  auto back = read<std::valarray<double>>(write(numbers));
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back[2], 3);
  std::queue<std::string> queue;
  queue.push("first");
  queue.push("second");
  EXPECT_TRUE(read<std::queue<std::string>>(write(queue)) == queue);
}

TEST(marshal, views_are_read_where_they_lie) {
  std::vector<double> numbers{1, 2, 3};
  auto w = write(std::tuple<char, view<double>>('x', numbers));
  auto [c, v] = read<std::tuple<char, view<double>>>(w);
  EXPECT_EQ(c, 'x');
  ASSERT_EQ(v.size(), 3u);
  EXPECT_EQ(v[2], 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(v.data()) % alignof(double), 0u);
  EXPECT_GE(reinterpret_cast<const std::byte*>(v.data()), w.bytes());
  EXPECT_LT(reinterpret_cast<const std::byte*>(v.data()), w.bytes() + w.size);
  EXPECT_EQ(read<std::string_view>(write(std::string("also"))), "also");
  EXPECT_EQ(read<std::vector<double>>(write(std::span<const double>(numbers))), numbers);
}

struct labelled {
  std::string_view label;
  double value;
};
struct of_labelled {
  labelled first;
  int more;
};
struct labelled_vector {
  std::string_view label;
  std::vector<int> values;
};

TEST(marshal, a_view_in_a_plain_struct_is_no_bytes) {
  static_assert(!travels<labelled> && !travels<of_labelled>);
  static_assert(travels<point> && marshals<labelled>);
  // A value that is read in place is valid only during the call.
  static_assert(detail::marshals_to_stay<point> && !detail::marshals_to_stay<labelled>);
  static_assert(marshals<labelled_vector> && !detail::marshals_to_stay<labelled_vector>);
  static_assert(!detail::marshals_to_stay<std::optional<std::vector<std::string_view>>>);
  static_assert(!detail::marshals_to_stay<std::map<int, std::string_view>>);
  static_assert(!detail::marshals_to_stay<std::unique_ptr<labelled>>);
  static_assert(detail::marshals_to_stay<std::map<int, std::vector<std::string>>>);
  auto w = write(labelled{"text", 2});
  auto back = read<labelled>(w);
  EXPECT_EQ(back.label, "text");
  EXPECT_EQ(back.value, 2);
  EXPECT_GE(reinterpret_cast<const std::byte*>(back.label.data()), w.bytes());
}

// ---- Random values --------------------------------------------------------------------------

template <class T>
T any(std::mt19937& r, int depth = 0);

std::size_t few(std::mt19937& r, int depth) { return depth > 3 ? r() % 2 : r() % 6; }

template <class T>
T any(std::mt19937& r, int depth) {
  using detail::is_a;
  if constexpr (std::is_same_v<T, bool>) {
    return r() % 2 == 0;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(r());
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string s(r() % 40, ' ');
    for (char& c : s) c = static_cast<char>(r());
    return s;
  } else if constexpr (is_a<T, std::pair>) {
    auto a = any<std::remove_const_t<typename T::first_type>>(r, depth + 1);
    return T(std::move(a), any<typename T::second_type>(r, depth + 1));
  } else if constexpr (is_a<T, std::optional>) {
    if (r() % 2) return std::nullopt;
    return any<typename T::value_type>(r, depth + 1);
  } else if constexpr (is_a<T, std::variant>) {
    std::size_t which = r() % std::variant_size_v<T>;
    T v;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == which
            ? void(v.template emplace<I>(any<std::variant_alternative_t<I, T>>(r, depth + 1)))
            : void()),
       ...);
    }(std::make_index_sequence<std::variant_size_v<T>>());
    return v;
  } else if constexpr (is_a<T, std::tuple>) {
    T v;
    std::apply([&]<class... E>(E&... e) { ((e = any<E>(r, depth + 1)), ...); }, v);
    return v;
  } else if constexpr (std::is_same_v<T, person>) {
    return {any<std::string>(r, depth), any<int>(r), any<std::vector<std::string>>(r, depth + 1)};
  } else if constexpr (std::is_same_v<T, tree>) {
    tree t{any<int>(r), {}};
    if (depth < 5)
      for (std::size_t n = few(r, depth); n > 0; --n) t.children.push_back(any<tree>(r, depth + 1));
    return t;
  } else if constexpr (std::is_same_v<T, by_member>) {
    return {any<std::string>(r, depth), any<std::map<std::string, int>>(r, depth + 1)};
  } else {
    T v;
    for (std::size_t n = few(r, depth); n > 0; --n) {
      v.insert(v.end(), any<typename T::value_type>(r, depth + 1));
    }
    return v;
  }
}

template <class T>
void random_values_come_back(unsigned seed) {
  std::mt19937 r(seed);
  for (int i = 0; i < 200; ++i) {
    T value = any<T>(r);
    auto w = write(value);
    ASSERT_TRUE(read<T>(w) == value) << "seed " << seed << ", value " << i;
    // No proper prefix of the message passes for a whole message.
    for (std::size_t cut : {w.size - 1, w.size / 2, std::size_t{0}}) {
      if (w.size == 0) break;
      written part = w;
      part.size = cut;
      EXPECT_THROW((void)read<T>(part), malformed_message);
    }
  }
}

TEST(marshal, random_nested_values_come_back) {
  using std::map, std::vector, std::string, std::optional, std::variant, std::tuple, std::pair;
  random_values_come_back<vector<vector<string>>>(1);
  random_values_come_back<map<string, vector<optional<int>>>>(2);
  random_values_come_back<variant<int, string, vector<pair<string, double>>>>(3);
  random_values_come_back<tuple<optional<string>, vector<bool>, map<int, map<int, string>>>>(4);
  random_values_come_back<vector<person>>(5);
  random_values_come_back<tree>(6);
  random_values_come_back<std::unordered_map<string, std::set<string>>>(7);
  random_values_come_back<std::list<variant<std::monostate, std::deque<short>, bool>>>(8);
  random_values_come_back<vector<by_member>>(9);
  random_values_come_back<optional<variant<tree, person, vector<optional<string>>>>>(10);
}

// ---- What is refused ----------------------------------------------------------------------------

struct has_pointer {
  std::string name;
  int* where;
};
struct has_shared {
  std::shared_ptr<int> p;
};
struct virtual_one {
  virtual ~virtual_one() = default;
  std::string s;
};

TEST(marshal, what_refers_to_private_memory_is_no_argument) {
  static_assert(!marshals<int*> && !marshals<const char*> && !marshals<int&>);
  static_assert(!marshals<std::shared_ptr<int>> && !marshals<std::weak_ptr<int>>);
  static_assert(!marshals<has_pointer> && !marshals<has_shared>);
  static_assert(!marshals<std::vector<int*>> && !marshals<std::map<int, const char*>>);
  static_assert(!marshals<std::optional<std::tuple<int, std::string, int*>>>);
  static_assert(!marshals<std::unique_ptr<virtual_one>> && !marshals<std::unique_ptr<int[]>>);
  static_assert(!marshals<std::span<int>>);
  static_assert(marshals<std::span<const int>> && marshals<view<int>> && marshals<tree>);
  static_assert(!travels<std::string_view> && travels<std::pair<int, double>>);
}

/// A message of these words, padded with zeros.
written of_words(std::initializer_list<std::uint64_t> words, std::size_t more = 0) {
  written w;
  w.size = words.size() * 8 + more;
  w.room.resize(w.size + 16);
  w.at = detail::padding(reinterpret_cast<std::uintptr_t>(w.room.data()), 16);
  std::memcpy(w.room.data() + w.at, std::data(words), words.size() * 8);
  return w;
}

TEST(marshal, a_count_beyond_the_message_is_refused_before_memory_is_taken) {
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  for (std::uint64_t n : {std::uint64_t{9}, huge, huge / 8 + 2, std::uint64_t{1} << 40}) {
    EXPECT_THROW((void)read<std::string>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::vector<double>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::vector<std::string>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::vector<by_function>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::list<empty>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::vector<std::tuple<>>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW(((void)read<std::map<int, int>>(of_words({n}, 8))), malformed_message);
    EXPECT_THROW((void)read<view<int>>(of_words({n}, 8)), malformed_message);
    EXPECT_THROW((void)read<std::vector<bool>>(of_words({n + 64 < n ? n : n + 64}, 8)),
                 malformed_message);
  }
}

TEST(marshal, bytes_that_are_of_no_value_are_refused) {
  EXPECT_THROW((void)read<bool>(written{{16, std::byte{2}}, 0, 1}), malformed_message);
  using choice = std::variant<int, std::string>;
  EXPECT_THROW((void)read<choice>(of_words({2}, 8)), malformed_message);
  EXPECT_THROW((void)read<std::optional<int>>(of_words({0x102})), malformed_message);
  auto w = write(by_function{"text"});
  w.room[w.at + w.size - 1] ^= std::byte{1};
  EXPECT_THROW((void)read<by_function>(w), malformed_message);
  EXPECT_THROW((void)read<int>(of_words({1})), malformed_message);  // bytes are left over
}

TEST(marshal, values_nested_too_deep_are_refused_at_both_ends) {
  auto chain = [](int length) {
    list_of first{0, nullptr};
    list_of* last = &first;
    for (int i = 1; i < length; ++i) {
      last->next = std::make_unique<list_of>(list_of{i, nullptr});
      last = last->next.get();
    }
    return first;
  };
  EXPECT_EQ(read<list_of>(write(chain(30))).next->value, 1);
  EXPECT_THROW((void)write(chain(1000)), error);
  std::vector<std::uint32_t> words;
  written w;
  for (int i = 0; i < 1000; ++i) w.room.insert(w.room.end(), {{}, {}, {}, {}, std::byte{1}});
  w.size = w.room.size();
  EXPECT_THROW((void)read<list_of>(w), malformed_message);
}

struct changes {
  mutable int saves = 0;
  std::string text;  // so that the type is not copied as bytes
  template <class Archive>
  void save(Archive& ar) const {
    ar(std::string(static_cast<std::size_t>(++saves), 'x'));
  }
  template <class Archive>
  void load(Archive& ar) {
    std::string s;
    ar(s);
  }
};

TEST(marshal, a_save_that_writes_more_the_second_time_is_told) {
  EXPECT_THROW((void)write(changes()), error);
}

}  // namespace
