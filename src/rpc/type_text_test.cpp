// SPDX-License-Identifier: Apache-2.0
// The texts of types, which errors show and of which the keys of names are made, are the same in
// gcc and clang.
#include "sojourn/detail/type_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "sojourn/calls/mpmd.hpp"

namespace outer {
struct point {
  int x;
};
template <class T>
struct box {
  struct inner {};
  T value;
};
template <int N>
struct sized {};
enum class colour { red };
struct unknown;
}  // namespace outer

namespace {

using namespace sojourn;
using detail::type_text;

template <class T>
std::string text() {
  return std::string(type_text<T>().view());
}

TEST(type_text, numbers_are_spelt_as_they_are_declared) {
  EXPECT_EQ(text<long>(), "long");
  EXPECT_EQ(text<unsigned long>(), "unsigned long");
  EXPECT_EQ(text<long long>(), "long long");
  EXPECT_EQ(text<unsigned long long>(), "unsigned long long");
  EXPECT_EQ(text<short>(), "short");
  EXPECT_EQ(text<unsigned short>(), "unsigned short");
  EXPECT_EQ(text<unsigned>(), "unsigned int");
  EXPECT_EQ(text<unsigned char>(), "unsigned char");
  EXPECT_EQ(text<bool>(), "bool");
  EXPECT_EQ(text<void>(), "void");
  EXPECT_EQ(text<std::size_t>(), text<unsigned long>());
  EXPECT_EQ(text<long double>(), "long double");
}

TEST(type_text, classes_are_spelt_the_same_whichever_the_compiler) {
  EXPECT_EQ(text<outer::point>(), "outer::point");
  EXPECT_EQ(text<outer::unknown>(), "outer::unknown");
  EXPECT_EQ(text<outer::colour>(), "outer::colour");
  EXPECT_EQ(text<outer::box<long>>(), "outer::box<long>");
  EXPECT_EQ(text<outer::box<long>::inner>(), "outer::box<long>::inner");
  EXPECT_EQ(text<outer::sized<3>>(), "outer::sized<3>");
  EXPECT_EQ(text<std::string>(), "std::string");
  EXPECT_EQ(text<std::vector<std::string>>(), "std::vector<std::string>");
  EXPECT_EQ((text<std::map<std::string, unsigned long>>()), "std::map<std::string, unsigned long>");
  EXPECT_EQ((text<std::map<int, int, std::greater<int>>>()),
            "std::map<int, int, std::greater<int>>");
  EXPECT_EQ((text<std::array<unsigned long, 12>>()), "std::array<unsigned long, 12>");
  EXPECT_EQ((text<std::variant<int, std::optional<long>>>()),
            "std::variant<int, std::optional<long>>");
  EXPECT_EQ(text<std::unique_ptr<outer::point>>(), "std::unique_ptr<outer::point>");
  EXPECT_EQ(text<global_ptr<outer::unknown>>(), "sojourn::global_ptr<outer::unknown>");
}

TEST(type_text, qualifiers_and_arrays_are_spelt) {
  EXPECT_EQ(text<const std::vector<long>&>(), "const std::vector<long>&");
  EXPECT_EQ(text<outer::point&&>(), "outer::point&&");
  EXPECT_EQ(text<long[4]>(), "long[4]");
}

using function = method<"a.function", long(int, const std::array<unsigned long, 3>&)>;
struct interface : remote_class<outer::unknown, "thing"> {
  using create = constructor<long>;
  using change = method<"change", void(unsigned)>;
  using look = method<"look", outer::point() const>;
};

TEST(method, shows_its_name_and_signature) {
  EXPECT_EQ(function::name(), "a.function");
  EXPECT_EQ(function::signature(), "long(int, const std::array<unsigned long, 3>&)");
  EXPECT_EQ(interface::create::name(), "thing");
  EXPECT_EQ(interface::create::signature(), "sojourn::global_ptr<outer::unknown>(long)");
  EXPECT_EQ(interface::change::name(), "thing.change");
  EXPECT_EQ(interface::change::signature(), "void outer::unknown::(unsigned int)");
  EXPECT_EQ(interface::look::signature(), "outer::point outer::unknown::() const");
  EXPECT_EQ(interface::destroy::name(), "thing.~");
  EXPECT_TRUE((std::is_same_v<interface::destroy, interface::create::destroy>));
}

TEST(method, has_the_same_key_for_the_same_name_and_signature_only) {
  auto key = []<class M>(M) { return M::named::key; };
  EXPECT_EQ(key(method<"f", void(int)>()), key(method<"f", void(std::int32_t)>()));
  EXPECT_NE(key(method<"f", void(int)>()), key(method<"g", void(int)>()));
  EXPECT_NE(key(method<"f", void(int)>()), key(method<"f", void(unsigned)>()));
  EXPECT_NE(key(method<"f", void(int)>()), key(method<"f", int(int)>()));
  EXPECT_NE(key(method<"f", void(int, int)>()), key(method<"f", void(int)>()));
  EXPECT_NE((key(method<"f", int (outer::unknown::*)()>())),
            (key(method<"f", int (outer::unknown::*)() const>())));
}

}  // namespace
