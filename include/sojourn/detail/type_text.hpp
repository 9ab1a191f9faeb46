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

/// "… [with T = node]" (gcc), "… [T = node]" (clang).
template <class T>
constexpr const char* pretty_type() {
  return __PRETTY_FUNCTION__;
}

constexpr void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// What the compilers write differently: inline namespaces, blanks, whole numbers.
constexpr std::string same_spelling(std::string_view written) {
  std::string text(written);
  replace_all(text, "__cxx11::", "");
  replace_all(text, "__1::", "");
  replace_all(text, "{anonymous}", "(anonymous namespace)");
  replace_all(text, "long long unsigned int", "unsigned long long");
  replace_all(text, "long unsigned int", "unsigned long");
  replace_all(text, "short unsigned int", "unsigned short");
  replace_all(text, "long int", "long");
  replace_all(text, "short int", "short");
  replace_all(text, " >", ">");
  replace_all(text, " *", "*");
  replace_all(text, " &", "&");
  replace_all(text, " (", "(");
  replace_all(text, "(anonymous", " (anonymous");
  replace_all(text, ":: (anonymous", "::(anonymous");
  replace_all(text, ", ", ",");
  replace_all(text, ",", ", ");
  if (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

/// As the compiler writes it.
template <class T>
constexpr std::string_view written_type() {
  std::string_view all = pretty_type<T>();
  all.remove_prefix(all.find("T = ") + 4);
  return all.substr(0, all.rfind(']'));
}

template <class T>
constexpr std::string type_text();

/// Template arguments that only say how the type does its work.
constexpr bool is_shown_argument(std::string_view text) {
  for (std::string_view usual :
       {"std::allocator<", "std::char_traits<", "std::default_delete<", "std::less<", "std::hash<",
        "std::equal_to<"}) {
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

template <class T>
struct class_text {
  static constexpr std::string of() { return same_spelling(written_type<T>()); }
};
template <template <class...> class X, class... A>
struct class_text<X<A...>> {
  static constexpr std::string of() {
    std::string text = same_spelling(template_name(written_type<X<A...>>())) + '<';
    auto append = [&](const std::string& argument) {
      if (!is_shown_argument(argument)) return;
      if (!text.ends_with('<')) text += ", ";
      text += argument;
    };
    (append(type_text<A>()), ...);
    return text + '>';
  }
};
template <class T, std::size_t N>
struct class_text<std::array<T, N>> {
  static constexpr std::string of();
};
template <>
struct class_text<std::string> {
  static constexpr std::string of() { return "std::string"; }
};
template <>
struct class_text<std::string_view> {
  static constexpr std::string of() { return "std::string_view"; }
};

constexpr std::string decimal(std::size_t n) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + n % 10));
    n /= 10;
  } while (n != 0);
  return text;
}

template <class T, std::size_t N>
constexpr std::string class_text<std::array<T, N>>::of() {
  return "std::array<" + type_text<T>() + ", " + decimal(N) + ">";
}

/// "unsigned long", "const std::string&", "std::vector<point>": equal for equal types.
template <class T>
constexpr std::string type_text() {
  if constexpr (std::is_lvalue_reference_v<T>) {
    return type_text<std::remove_reference_t<T>>() + '&';
  } else if constexpr (std::is_rvalue_reference_v<T>) {
    return type_text<std::remove_reference_t<T>>() + "&&";
  } else if constexpr (std::is_const_v<T>) {
    return "const " + type_text<std::remove_const_t<T>>();
  } else if constexpr (std::is_bounded_array_v<T>) {
    return type_text<std::remove_extent_t<T>>() + '[' + decimal(std::extent_v<T>) + ']';
  } else if constexpr (std::is_class_v<T>) {
    return class_text<T>::of();
  } else {
    return same_spelling(written_type<T>());
  }
}

}  // namespace sojourn::detail
