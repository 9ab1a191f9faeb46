// SPDX-License-Identifier: Apache-2.0
// Names of types as text, the same whichever compiler a program was built with: calls by name
// compare them, and errors show them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace sojourn::detail {

/// A text made at compile time. Not every standard library allows std::string there.
class text_buffer {
 public:
  constexpr text_buffer() = default;
  constexpr text_buffer(std::string_view text) { *this += text; }
  constexpr text_buffer(const char* text) : text_buffer(std::string_view(text)) {}

  constexpr text_buffer& operator+=(std::string_view more) {
    for (char c : more) chars_[size_++] = c;  // beyond the end: no constant expression
    return *this;
  }
  constexpr std::string_view view() const { return {chars_, size_}; }
  constexpr operator std::string_view() const { return view(); }
  constexpr std::size_t size() const { return size_; }

  constexpr void replace_all(std::string_view from, std::string_view to) {
    text_buffer before = *this;
    std::string_view left = before.view();
    size_ = 0;
    for (std::size_t at; (at = left.find(from)) != std::string_view::npos;) {
      *this += left.substr(0, at);
      *this += to;
      left.remove_prefix(at + from.size());
    }
    *this += left;
  }

 private:
  char chars_[2048]{};
  std::size_t size_ = 0;
};
constexpr text_buffer operator+(text_buffer a, std::string_view b) { return a += b; }

/// "… [with T = node]" (gcc), "… [T = node]" (clang).
template <class T>
constexpr const char* pretty_type() {
  return __PRETTY_FUNCTION__;
}

/// Makes the texts of all compilers equal: they differ in inline namespaces, blanks and the names
/// of integer types.
constexpr text_buffer same_spelling(std::string_view written) {
  text_buffer text(written);
  text.replace_all("__cxx11::", "");
  text.replace_all("__1::", "");
  text.replace_all("{anonymous}", "(anonymous namespace)");
  text.replace_all("long long unsigned int", "unsigned long long");
  text.replace_all("long unsigned int", "unsigned long");
  text.replace_all("short unsigned int", "unsigned short");
  text.replace_all("long int", "long");
  text.replace_all("short int", "short");
  for (std::string_view behind_blank : {">", "*", "&", "[", "("}) {
    text.replace_all((text_buffer(" ") + behind_blank).view(), behind_blank);
  }
  text.replace_all(", ", ",");
  text.replace_all(",", ", ");
  return text;
}

/// The name of T as the compiler writes it.
template <class T>
constexpr std::string_view written_type() {
  std::string_view all = pretty_type<T>();
  all.remove_prefix(all.find("T = ") + 4);
  return all.substr(0, all.rfind(']'));
}

template <class T>
constexpr text_buffer type_text();

/// False for template arguments that only say how the type does its work.
constexpr bool is_shown_argument(std::string_view text) {
  for (std::string_view usual : {"std::allocator<", "std::char_traits<", "std::default_delete<",
                                 "std::less<", "std::hash<", "std::equal_to<"}) {
    if (text.starts_with(usual)) return false;
  }
  return true;
}

/// "std::vector" of "std::vector<int>": up to the bracket that the last one closes.
constexpr std::string_view template_name(std::string_view written) {
  int depth = 0;
  for (std::size_t i = written.size(); i-- > 0;) {
    if (written[i] == '>') ++depth;
    if (written[i] == '<' && --depth == 0) return written.substr(0, i);
  }
  return written;
}

/// "a, b" of texts.
class text_list {
 public:
  constexpr void add(const text_buffer& one) {
    if (text_.size() != 0) text_ += ", ";
    text_ += one.view();
  }
  constexpr std::string_view view() const { return text_.view(); }

 private:
  text_buffer text_;
};

template <class T>
struct class_text {
  static constexpr text_buffer of() { return same_spelling(written_type<T>()); }
};
template <template <class...> class X, class... A>
struct class_text<X<A...>> {
  static constexpr text_buffer of() {
    text_list arguments;
    auto add = [&](const text_buffer& argument) {
      if (is_shown_argument(argument.view())) arguments.add(argument);
    };
    (void)add;  // of a template without arguments
    (add(type_text<A>()), ...);
    return same_spelling(template_name(written_type<X<A...>>())) + "<" + arguments.view() + ">";
  }
};
template <class T, std::size_t N>
struct class_text<std::array<T, N>> {
  static constexpr text_buffer of();
};
template <>
struct class_text<std::string> {
  static constexpr text_buffer of() { return "std::string"; }
};
template <>
struct class_text<std::string_view> {
  static constexpr text_buffer of() { return "std::string_view"; }
};

constexpr text_buffer decimal(std::size_t n) {
  char digit[] = {static_cast<char>('0' + n % 10), 0};
  return n < 10 ? text_buffer(digit) : decimal(n / 10) + digit;
}

template <class T, std::size_t N>
constexpr text_buffer class_text<std::array<T, N>>::of() {
  return text_buffer("std::array<") + type_text<T>() + ", " + decimal(N) + ">";
}

/// "unsigned long", "const std::string&", "std::vector<point>": equal for equal types.
template <class T>
constexpr text_buffer type_text() {
  if constexpr (std::is_lvalue_reference_v<T>) {
    return type_text<std::remove_reference_t<T>>() + "&";
  } else if constexpr (std::is_rvalue_reference_v<T>) {
    return type_text<std::remove_reference_t<T>>() + "&&";
  } else if constexpr (std::is_const_v<T>) {
    return text_buffer("const ") + type_text<std::remove_const_t<T>>();
  } else if constexpr (std::is_bounded_array_v<T>) {
    return type_text<std::remove_extent_t<T>>() + "[" + decimal(std::extent_v<T>) + "]";
  } else if constexpr (std::is_class_v<T>) {
    return class_text<T>::of();
  } else {
    return same_spelling(written_type<T>());
  }
}

}  // namespace sojourn::detail
