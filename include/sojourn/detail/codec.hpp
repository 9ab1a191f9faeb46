// SPDX-License-Identifier: Apache-2.0
// How a value of each type is written and read. The program is the same at both ends, so only
// values are written: bytes as they are, counts before elements, and a check byte (user_mark)
// after what a user's function wrote. The forms of types are in forms.hpp; here is what each form
// does: save() writes a value, load() reads one into a value that is there, make() reads a new one,
// and least() is the least number of bytes that a value takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/cereal.hpp"
#include "sojourn/detail/fields.hpp"
#include "sojourn/detail/forms.hpp"

namespace sojourn::detail {

template <form F>
struct form_traits;

/// The least bytes that a value of type T takes in a message. A reader believes no count of
/// elements that would take more bytes than are left.
template <class T>
consteval std::size_t least_bytes() {
  return form_traits<form_of<T>()>::template least<T>();
}
template <class T>
inline constexpr std::size_t least = least_bytes<T>() == 0 ? 1 : least_bytes<T>();

template <class T>
consteval form checked_form() {
  constexpr form f = form_of<T>();
  static_assert(
      f != form::none,
      "sojourn: a value of this type cannot be marshalled: see sojourn/calls/marshal.hpp");
  return f;
}

template <class Archive, class T>
void save_value(Archive& ar, const T& v) {
  form_traits<checked_form<T>()>::save(ar, v);
}
template <class T>
void load_value(reader& ar, T& v) {
  form_traits<checked_form<T>()>::load(ar, v);
}
/// A value without a default constructor is built from its parts.
template <class T>
T make_value(reader& ar) {
  return form_traits<checked_form<T>()>::template make<T>(ar);
}

template <class Archive>
struct nested {
  explicit nested(Archive& archive) : ar(archive) { ar.enter(); }
  ~nested() { ar.leave(); }
  Archive& ar;
};
template <class Archive>
struct nested_user {
  explicit nested_user(Archive& archive) : ar(archive) { ar.enter_user(); }
  ~nested_user() { ar.leave_user(); }
  Archive& ar;
};

inline constexpr std::uint8_t user_mark = 0xa5;

// ---- The forms ------------------------------------------------------------------------------

/// What forms have in common, unless they say otherwise.
struct usual_form {
  template <class T>
  static consteval std::size_t least() {
    return 1;
  }
  template <class T>
  static T make(reader& ar) {
    T v{};
    load_value(ar, v);
    return v;
  }
};
/// Forms whose values begin with a count.
struct counted_form : usual_form {
  template <class T>
  static consteval std::size_t least() {
    return sizeof(std::uint64_t);
  }
};

template <>
struct form_traits<form::bytes> : usual_form {
  template <class T>
  static consteval std::size_t least() {
    return sizeof(T);  // 1 for an empty type
  }
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    if constexpr (std::is_empty_v<T>) {
      constexpr std::byte one{};
      ar.put(&one, 1);
    } else {
      ar.put(&v, sizeof v);
    }
  }
  template <class T>
  static void load(reader& ar, T& v) {
    if constexpr (std::is_empty_v<T>) {
      (void)
          ar.template get<std::byte>();  // not into `v`, which may share its address with a member
    } else {
      ar.get(static_cast<void*>(&v), sizeof v);
    }
  }
  template <class T>
  static T make(reader& ar) {
    if constexpr (std::is_default_constructible_v<T>) {
      return usual_form::make<T>(ar);
    } else {
      union storage {
        storage() {}
        ~storage() {}
        T value;
      } s;
      ar.get(static_cast<void*>(&s.value), sizeof(T));
      return std::move(s.value);
    }
  }
};

inline bool load_flag(reader& ar) {
  auto byte = ar.get<std::uint8_t>();
  if (byte > 1) [[unlikely]]
    malformed("a bool is neither true nor false");
  return byte != 0;
}

template <>
struct form_traits<form::boolean> : usual_form {
  template <class Archive>
  static void save(Archive& ar, bool v) {
    std::uint8_t byte = v ? 1 : 0;
    ar.put(&byte, 1);
  }
  static void load(reader& ar, bool& v) { v = load_flag(ar); }
  template <class T>
  static bool make(reader& ar) {
    return load_flag(ar);
  }
};

template <class Archive, class T>
void save_block(Archive& ar, const T* first, std::size_t n, bool borrowed) {
  save_count(ar, n);
  // Elements with a stricter alignment than 16 are never read in place, so they need none.
  ar.block(first, n * sizeof(T), alignof(T) <= 16 ? alignof(T) : 1, borrowed);
}

template <>
struct form_traits<form::view> : counted_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    save_block(ar, v.data(), v.size(), true);
  }
  template <class T>
  static void load(reader& ar, T& v) {
    using element = std::remove_cv_t<typename T::value_type>;
    std::size_t n = ar.block_count(sizeof(element));
    v = T(reinterpret_cast<const element*>(ar.in_place(n * sizeof(element), alignof(element))), n);
  }
};

/// Reserves no more than the message can hold: so a short message with a large count makes no large
/// container, which grows as its elements are read.
template <class T>
void reserve_elements(reader& ar, T& v, std::size_t n) {
  if constexpr (requires { v.reserve(n); }) {
    std::size_t likely = ar.left() / sizeof(typename T::value_type) + 1;
    v.reserve(n < likely ? n : likely);
  }
}

template <>
struct form_traits<form::contiguous> : counted_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    using element = typename T::value_type;
    if constexpr (std::is_same_v<element, bool>) {
      save_count(ar, v.size());
      std::uint8_t byte = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        byte = static_cast<std::uint8_t>(byte | (v[i] ? 1u : 0u) << i % 8);
        if (i % 8 == 7 || i + 1 == v.size()) {
          ar.put(&byte, 1);
          byte = 0;
        }
      }
    } else if constexpr (is_bytes<element>) {
      save_block(ar, v.data(), v.size(), false);
    } else {
      nested guard(ar);
      save_count(ar, v.size());
      for (const auto& e : v) save_value(ar, e);
    }
  }
  template <class T>
  static void load(reader& ar, T& v) {
    using element = typename T::value_type;
    v.clear();
    if constexpr (std::is_same_v<element, bool>) {
      auto n = ar.get<std::uint64_t>();
      if (n > ar.left() * 8) malformed_count(n, ar.left());
      v.reserve(n);
      std::uint8_t byte = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (i % 8 == 0) byte = ar.get<std::uint8_t>();
        v.push_back((byte >> i % 8 & 1) != 0);
      }
    } else if constexpr (is_bytes<element>) {
      std::size_t n = ar.block_count(sizeof(element));
      constexpr std::size_t alignment = alignof(element) <= 16 ? alignof(element) : 1;
      // The values of a bundled call begin at a multiple of 8, and of no more. (What cannot be made
      // before it is read is read there all the same.)
      if constexpr (alignof(element) <= 8 ||
                    (alignof(element) <= 16 && !std::is_default_constructible_v<element>)) {
        // assign copies the elements once, into memory that is not cleared first.
        if (const std::byte* here = ar.block_here(n * sizeof(element), alignment)) {
          const auto* first = reinterpret_cast<const element*>(here);
          v.assign(first, first + n);
          return;
        }
      }
      if constexpr (std::is_default_constructible_v<element>) {
        const std::size_t bytes = n * sizeof(element);
        ar.expect_block(bytes);
        if (v.capacity() < n) {
          v.reserve(n);
          want_large_pages(v.data(), bytes);
        }
        constexpr std::size_t part =
            sizeof(element) * (sizeof(element) < block_part ? block_part / sizeof(element) : 1);
        const auto grow = [&v](std::size_t until) {
          v.resize(until / sizeof(element));
          return reinterpret_cast<std::byte*>(v.data());
        };
        if (ar.block_in_parts(bytes, part, grow)) return;
        v.resize(n);
        ar.block(v.data(), bytes, alignment);
      } else {
        malformed("elements without a default value are too long for a message");
      }
    } else {
      nested guard(ar);
      std::size_t n = ar.count(detail::least<element>);
      reserve_elements(ar, v, n);
      for (; n > 0; --n) v.push_back(make_value<element>(ar));
    }
  }
};

/// Sequences and sets: their elements, one after the other.
struct elements_form : counted_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    save_count(ar, v.size());
    for (const auto& e : v) save_value(ar, e);
  }
};

template <>
struct form_traits<form::sequence> : elements_form {
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    v.clear();
    std::size_t n = ar.count(detail::least<typename T::value_type>);
    for (; n > 0; --n) v.push_back(make_value<typename T::value_type>(ar));
  }
};

template <>
struct form_traits<form::set> : elements_form {
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    v.clear();
    std::size_t n = ar.count(detail::least<typename T::key_type>);
    reserve_elements(ar, v, n);
    for (; n > 0; --n) v.emplace_hint(v.end(), make_value<typename T::key_type>(ar));
  }
};

template <>
struct form_traits<form::map> : counted_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    save_count(ar, v.size());
    for (const auto& [key, value] : v) {
      save_value(ar, key);
      save_value(ar, value);
    }
  }
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    v.clear();
    std::size_t n =
        ar.count(detail::least<typename T::key_type> + detail::least<typename T::mapped_type>);
    reserve_elements(ar, v, n);
    for (; n > 0; --n) {
      auto key = make_value<typename T::key_type>(ar);
      v.emplace_hint(v.end(), std::move(key), make_value<typename T::mapped_type>(ar));
    }
  }
};

/// A bool, and the value if there is one.
struct perhaps_form : usual_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    save_value(ar, static_cast<bool>(v));
    if (v) save_value(ar, *v);
  }
};

template <>
struct form_traits<form::optional> : perhaps_form {
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    v.reset();
    if (load_flag(ar)) v.emplace(make_value<typename T::value_type>(ar));
  }
};

template <>
struct form_traits<form::owner> : perhaps_form {
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    v.reset();
    using element = std::remove_const_t<typename T::element_type>;
    if (load_flag(ar)) v.reset(new element(make_value<element>(ar)));
  }
};

template <class T, std::size_t I = 0>
void load_alternative(reader& ar, T& v, std::size_t index) {
  if constexpr (I < std::variant_size_v<T>) {
    if (index == I) {
      v.template emplace<I>(make_value<std::variant_alternative_t<I, T>>(ar));
    } else {
      load_alternative<T, I + 1>(ar, v, index);
    }
  } else {
    malformed("a variant has an alternative that its type lacks");
  }
}
template <class T, std::size_t I = 0>
T make_alternative(reader& ar, std::size_t index) {
  if constexpr (I < std::variant_size_v<T>) {
    if (index == I) {
      return T(std::in_place_index<I>, make_value<std::variant_alternative_t<I, T>>(ar));
    }
    return make_alternative<T, I + 1>(ar, index);
  } else {
    malformed("a variant has an alternative that its type lacks");
  }
}

template <>
struct form_traits<form::variant> : usual_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    if (v.valueless_by_exception()) cannot_be_saved("it contains a variant without a value");
    static_assert(std::variant_size_v<T> < 256);
    auto index = static_cast<std::uint8_t>(v.index());
    ar.put(&index, 1);
    std::visit([&](const auto& e) { save_value(ar, e); }, v);
  }
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    load_alternative(ar, v, ar.get<std::uint8_t>());
  }
  template <class T>
  static T make(reader& ar) {
    if constexpr (std::is_default_constructible_v<T>) {
      return usual_form::make<T>(ar);
    } else {
      nested guard(ar);
      return make_alternative<T>(ar, ar.get<std::uint8_t>());
    }
  }
};

/// True when a value is made first and filled then: not one with constant parts, such as the
/// elements of a map.
template <class T>
inline constexpr bool is_filled = std::is_default_constructible_v<T>;
template <class T>
inline constexpr bool is_filled<const T> = false;
template <class A, class B>
inline constexpr bool is_filled<std::pair<A, B>> = is_filled<A> && is_filled<B>;
template <class... T>
inline constexpr bool is_filled<std::tuple<T...>> = (is_filled<T> && ...);
template <class T, std::size_t N>
inline constexpr bool is_filled<std::array<T, N>> = is_filled<T>;

/// What make() builds a tuple or a pair from, element by element and in order.
template <class T, std::size_t... I>
T make_tuple_value(reader& ar, std::index_sequence<I...>) {
  nested guard(ar);
  return T{make_value<std::remove_cv_t<std::tuple_element_t<I, T>>>(ar)...};
}

template <>
struct form_traits<form::tuple> : usual_form {
  template <class T>
  static consteval std::size_t least() {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<std::tuple_element_t<I, T>>>());
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  }
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    std::apply([&](const auto&... e) { (save_value(ar, e), ...); }, v);
  }
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    std::apply([&](auto&... e) { (load_value(ar, e), ...); }, v);
  }
  template <class T>
  static T make(reader& ar) {
    if constexpr (is_filled<T>) {
      return usual_form::make<T>(ar);
    } else {
      return make_tuple_value<T>(ar, std::make_index_sequence<std::tuple_size_v<T>>());
    }
  }
};

template <>
struct form_traits<form::array> : usual_form {
  template <class T>
  static consteval std::size_t least() {
    return std::extent_v<T> * least_bytes<std::remove_extent_t<T>>();
  }
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    for (const auto& e : v) save_value(ar, e);
  }
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    for (auto& e : v) load_value(ar, e);
  }
};

template <>
struct form_traits<form::user> : usual_form {
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    {
      nested_user guard(ar);
      save_user(ar, v);
    }
    ar.put(&user_mark, 1);
  }
  template <class T>
  static void load(reader& ar, T& v) {
    {
      nested_user guard(ar);
      load_user(ar, v);
    }
    if (ar.get<std::uint8_t>() != user_mark) [[unlikely]]
      malformed("`load` of a user's type reads something else than its `save` wrote");
  }
};

template <class T, class... M>
T make_of_fields(reader& ar, type_list<M...>*) {
  nested guard(ar);
  return T{make_value<std::remove_cv_t<M>>(ar)...};  // braces: from the left to the right
}
template <class... M>
consteval bool any_array(type_list<M...>*) {
  return (std::is_array_v<M> || ...);
}

template <>
struct form_traits<form::fields> : usual_form {
  template <class T>
  static consteval std::size_t least() {
    return []<class... M>(type_list<M...>*) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<M>>());
    }(static_cast<field_types<T>*>(nullptr));
  }
  template <class Archive, class T>
  static void save(Archive& ar, const T& v) {
    nested guard(ar);
    with_fields(v, [&](const auto&... e) { (save_value(ar, e), ...); });
  }
  template <class T>
  static void load(reader& ar, T& v) {
    nested guard(ar);
    with_fields(v, [&](auto&... e) { (load_value(ar, e), ...); });
  }
  template <class T>
  static T make(reader& ar) {
    using members = field_types<T>;
    if constexpr (any_array(static_cast<members*>(nullptr))) {
      return usual_form::make<T>(ar);
    } else {
      return make_of_fields<T>(ar, static_cast<members*>(nullptr));
    }
  }
};

// ---- Archives as users' functions call them --------------------------------------------------

template <class Access>
template <class... T>
basic_sizer<Access>& basic_sizer<Access>::operator()(T&&... values) {
  (save_wrapped(*this, values), ...);
  return *this;
}
template <class Access>
template <class... T>
basic_writer<Access>& basic_writer<Access>::operator()(T&&... values) {
  (save_wrapped(*this, values), ...);
  return *this;
}
template <class Access>
template <class... T>
basic_reader<Access>& basic_reader<Access>::operator()(T&&... values) {
  (load_wrapped(*this, values), ...);
  return *this;
}

}  // namespace sojourn::detail
