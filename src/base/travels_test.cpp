// SPDX-License-Identifier: Apache-2.0
#include "sojourn/travels.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sojourn/view.hpp"

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
