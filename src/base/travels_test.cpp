// SPDX-License-Identifier: Apache-2.0
#include "sojourn/calls/travels.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sojourn/calls/view.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/local_ptr.hpp"

namespace {

struct plain {
  int a;
  double b[3];
};
struct with_copy_constructor {
  with_copy_constructor(const with_copy_constructor&) {}
};
struct declared {
  declared(const declared&) {}
};
enum class colour { red };

}  // namespace

template <>
inline constexpr bool sojourn::travels<declared> = true;

namespace {

using sojourn::travels;

TEST(travels, values_do) {
  static_assert(travels<void> && travels<int> && travels<double> && travels<colour>);
  static_assert(travels<const int> && travels<plain> && travels<const plain> && travels<plain[4]>);
}

TEST(travels, addresses_do_not) {
  static_assert(!travels<int*> && !travels<const char*> && !travels<int&> && !travels<int&&>);
  static_assert(!travels<int* const> && !travels<void (*)()> && !travels<std::nullptr_t>);
  static_assert(!travels<int plain::*>);
  static_assert(!travels<std::string> && !travels<std::vector<int>>);
  static_assert(!travels<std::unique_ptr<int>> && !travels<std::shared_ptr<int>>);
}

struct row {
  int length;
  const double* values;
};
struct rows {
  long number;
  row first[2];
};
struct word {
  std::string_view text;
};
struct walk {
  std::vector<int>::iterator at;
  int steps;
};
struct calls {
  int (*function)(int);
};
class closed {
 public:
  explicit closed(const int* p) : p_(p) {}
  const int* get() const { return p_; }

 private:
  const int* p_;
};
// A string literal has the same address on every rank.
struct named_by_literal {
  const char* name;
};
struct holds_declared {
  named_by_literal name;
  int x;
};
struct refers {
  int& r;
};
struct refers_to_const {
  long before;
  const plain& r;
};
struct kind_and_value {
  const int kind;
  double value;
};
struct metres {
  template <class N>
  constexpr metres(N n) : value(n) {}
  double value;
};
struct leg {
  metres length;
  int steps;
};

}  // namespace

template <>
inline constexpr bool sojourn::travels<named_by_literal> = true;

namespace {

TEST(travels, views_and_structs_that_hold_addresses_do_not) {
  static_assert(!travels<std::span<int>> && !travels<std::span<const int, 3>>);
  static_assert(!travels<std::string_view> && !travels<sojourn::view<int>>);
  static_assert(!travels<std::reference_wrapper<int>> && !travels<std::initializer_list<int>>);
  static_assert(!travels<std::vector<int>::iterator>);
  static_assert(!travels<row> && !travels<rows> && !travels<word> && !travels<walk>);
  static_assert(!travels<std::pair<int, row>> && !travels<std::optional<word>>);
  static_assert(!travels<std::array<rows, 2>> && !travels<const row>);
  static_assert(!travels<refers> && !travels<refers_to_const>);
  static_assert(travels<named_by_literal> && travels<holds_declared> && travels<calls>);
  static_assert(travels<kind_and_value> && travels<leg>);
  // The check does not see private members.
  static_assert(travels<closed>);
}

struct node_and_steps {
  std::set<int>::iterator at;
  int steps;
};
// Its elements are made when they are asked for, and lie nowhere.
class evens {
 public:
  using value_type = int;
  using difference_type = std::ptrdiff_t;
  int operator*() const { return at_; }
  evens& operator++() { return at_ += 2, *this; }
  evens operator++(int) { return std::exchange(*this, {}); }

 private:
  int at_ = 0;
};
// A class of the program, over elements that lie somewhere.
class cursor {
 public:
  using value_type = int;
  using difference_type = std::ptrdiff_t;
  int& operator*() const { return *at_; }
  cursor& operator++() { return ++at_, *this; }
  cursor operator++(int) { return {}; }

 private:
  int* at_ = nullptr;
};

TEST(travels, iterators_do_not) {
  static_assert(!travels<std::set<int>::iterator> && !travels<std::multiset<int>::const_iterator>);
  static_assert(!travels<std::map<int, long>::iterator> && !travels<std::list<int>::iterator>);
  static_assert(!travels<std::unordered_map<int, int>::iterator>);
  static_assert(!travels<std::deque<int>::iterator> && !travels<std::vector<bool>::iterator>);
  static_assert(!travels<std::vector<bool>::const_iterator>);
  static_assert(!travels<std::vector<bool>::reference>);
  static_assert(!travels<std::reverse_iterator<std::set<int>::iterator>>);
  static_assert(!travels<std::move_iterator<std::list<int>::iterator>>);
  static_assert(!travels<std::back_insert_iterator<std::vector<int>>>);
  static_assert(!travels<std::istreambuf_iterator<char>>);
  static_assert(!travels<node_and_steps> && !travels<std::pair<int, std::set<int>::iterator>>);
  static_assert(!travels<cursor>);
  static_assert(travels<evens> && travels<std::ranges::iterator_t<std::ranges::iota_view<int>>>);
}

TEST(travels, views_of_ranges_do_not) {
  using numbers = std::vector<int>;
  static_assert(!travels<std::ranges::ref_view<numbers>>);
  static_assert(!travels<std::ranges::subrange<std::set<int>::iterator>>);
  static_assert(!travels<std::ranges::take_view<std::ranges::ref_view<numbers>>>);
  static_assert(!travels<decltype(std::declval<numbers&>() |
                                  std::views::transform([](int i) { return i + 1; }))>);
  static_assert(travels<std::ranges::iota_view<int, int>>);
}

TEST(travels, pointers_of_the_job_do) {
  static_assert(travels<sojourn::global_ptr<int>> && travels<sojourn::global_ptr<void>>);
  static_assert(travels<sojourn::local_ptr<int>>);
  static_assert(travels<std::pair<sojourn::global_ptr<int>, int>>);
  static_assert(travels<std::chrono::nanoseconds>);
}

TEST(travels, what_has_a_copy_constructor_does_when_declared) {
  static_assert(!travels<with_copy_constructor> && travels<declared> && travels<const declared>);
}

TEST(travels, what_is_made_of_parts_does_when_all_parts_do) {
  static_assert(travels<std::pair<int, plain>> && !travels<std::pair<int, char*>>);
  static_assert(travels<std::tuple<>> && travels<std::tuple<int, declared>>);
  static_assert(!travels<std::tuple<int, std::string>>);
  static_assert(travels<std::array<std::pair<int, int>, 3>> && !travels<std::array<int*, 3>>);
  static_assert(travels<std::optional<declared>> && !travels<std::optional<int*>>);
  static_assert(travels<std::variant<int, plain>> && !travels<std::variant<int, const char*>>);
  static_assert(travels<std::pair<std::optional<int>, std::tuple<std::array<plain, 2>>>>);
  static_assert(!travels<std::pair<std::optional<int>, std::tuple<std::array<int*, 2>>>>);
  static_assert(!travels<int* [2]>);
}

}  // namespace
