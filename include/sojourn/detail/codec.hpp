// SPDX-License-Identifier: Apache-2.0
// How a value of each type is written and read. The program is the same at both ends, so only
// values are written: bytes as they are, counts before elements, and a check byte (user_mark)
// behind what a user's function wrote.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/fields.hpp"
#include "sojourn/travels.hpp"
#include "sojourn/view.hpp"

// Wrappers that functions written for cereal hand to an archive. Only named here: a program that
// uses them includes cereal.
namespace cereal {
template <class T>
class NameValuePair;
template <class T>
struct BinaryData;
template <class T>
class DeferredData;
template <class T>
class SizeTag;
template <class Key, class Value>
struct MapItem;
template <class Base>
struct base_class;
template <class Base>
struct virtual_base_class;
namespace detail {
namespace {
struct version_binding_tag;
}
template <class T, class Tag>
struct Version;
}  // namespace detail
}  // namespace cereal

namespace sojourn::detail {

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... A>
inline constexpr bool is_a<Template<A...>, Template> = true;

/// A range that is read in place: a view, a span of constant elements or a string_view.
template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<view<T>> = true;
template <class T>
inline constexpr bool is_view<std::span<const T>> = true;
template <class C>
inline constexpr bool is_view<std::basic_string_view<C>> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;

// ---- What users and cereal's headers define for a type --------------------------------------

enum class annotation : std::uint8_t {
  none,
  serialize,
  serialize_version,
  save_load,
  save_load_version,
  minimal,
  free_serialize,
  free_serialize_version,
  free_save_load,
  free_save_load_version,
  free_minimal
};

/// Member functions are preferred to free functions. Members that only cereal::access may call are
/// found through it, if the program includes cereal.
template <class W, class R, class T, class Access = cereal::access>
consteval annotation annotated() {
  constexpr std::uint32_t v = 0;
  if constexpr (!std::is_class_v<T> && !std::is_union_v<T>) {
    return annotation::none;
  } else if constexpr (
      requires(W& w, T& t) { t.serialize(w); } ||
      requires(W& w, T& t) { Access::member_serialize(w, t); }) {
    return annotation::serialize;
  } else if constexpr (
      requires(W& w, T& t) { t.serialize(w, v); } ||
      requires(W& w, T& t) { Access::member_serialize(w, t, v); }) {
    return annotation::serialize_version;
  } else if constexpr ((requires(W& w, const T& t) { t.save(w); } &&
                        requires(R& r, T& t) { t.load(r); }) ||
                       (requires(W& w, const T& t) { Access::member_save(w, t); } &&
                        requires(R& r, T& t) { Access::member_load(r, t); })) {
    return annotation::save_load;
  } else if constexpr ((requires(W& w, const T& t) { t.save(w, v); } &&
                        requires(R& r, T& t) { t.load(r, v); }) ||
                       (requires(W& w, const T& t) { Access::member_save(w, t, v); } &&
                        requires(R& r, T& t) { Access::member_load(r, t, v); })) {
    return annotation::save_load_version;
  } else if constexpr (
      requires(const W& w, const T& t) { t.save_minimal(w); } ||
      requires(const W& w, const T& t) { Access::member_save_minimal(w, t); }) {
    return annotation::minimal;
  } else if constexpr (requires(W& w, T& t) { serialize(w, t); }) {
    return annotation::free_serialize;
  } else if constexpr (requires(W& w, T& t) { serialize(w, t, v); }) {
    return annotation::free_serialize_version;
  } else if constexpr (requires(W& w, R& r, const T& c, T& t) {
                         save(w, c);
                         load(r, t);
                       }) {
    return annotation::free_save_load;
  } else if constexpr (requires(W& w, R& r, const T& c, T& t) {
                         save(w, c, v);
                         load(r, t, v);
                       }) {
    return annotation::free_save_load_version;
  } else if constexpr (requires(const W& w, const T& t) { save_minimal(w, t); }) {
    return annotation::free_minimal;
  } else {
    return annotation::none;
  }
}

// ---- The form of a type ---------------------------------------------------------------------

enum class form : std::uint8_t {
  none,  ///< It cannot be marshalled.
  view,
  bytes,
  boolean,
  contiguous,  ///< A count, and the elements: in one block when they are bytes.
  sequence,
  map,
  set,
  optional,
  variant,
  tuple,
  array,
  owner,  ///< unique_ptr.
  user,
  fields
};

/// Containers are recognised by their members, not by name, so that containers of other libraries
/// than the standard one work, too.
template <class T>
concept map_like = requires(T& t, typename T::key_type& k, typename T::mapped_type& m) {
  typename T::allocator_type;
  requires std::is_same_v<typename T::value_type,
                          std::pair<const typename T::key_type, typename T::mapped_type>>;
  t.emplace_hint(t.end(), std::move(k), std::move(m));
};
template <class T>
concept set_like = requires(T& t, typename T::key_type& k) {
  typename T::allocator_type;
  requires std::is_same_v<typename T::value_type, typename T::key_type>;
  t.emplace_hint(t.end(), std::move(k));
};
template <class T>
concept sequence_like = requires(T& t, typename T::value_type& v) {
  typename T::allocator_type;
  requires !std::is_same_v<typename T::value_type, T>;
  t.push_back(std::move(v));
  t.size();
  t.clear();
};

template <class T>
inline constexpr bool is_contiguous = is_a<T, std::vector> || is_a<T, std::basic_string>;

/// True for values that are a right: no copy with the same right may stay behind. They are moved
/// into a message, or saved once it is certain that the message goes.
template <class T>
inline constexpr bool leaves_by_move = false;

/// True for types that are written as their bytes. Not for bool, optional and variant: bytes that
/// arrive might be no value of such a type.
template <class T>
inline constexpr bool is_bytes = travels<T> && !leaves_by_move<T> && !is_a<T, std::optional> &&
                                 !is_a<T, std::variant> && !std::is_same_v<T, bool>;
template <class A, class B>
inline constexpr bool is_bytes<std::pair<A, B>> = is_bytes<A> && is_bytes<B>;
template <class... T>
inline constexpr bool is_bytes<std::tuple<T...>> = (is_bytes<T> && ...);
template <class T, std::size_t N>
inline constexpr bool is_bytes<std::array<T, N>> = is_bytes<T>;
template <class T, std::size_t N>
inline constexpr bool is_bytes<T[N]> = is_bytes<T>;

template <class T>
consteval form form_of() {
  if constexpr (is_view<T>) {
    return form::view;
  } else if constexpr (std::is_same_v<T, bool>) {
    return form::boolean;
  } else if constexpr (is_bytes<T>) {
    return form::bytes;
  } else if constexpr (is_a<T, std::optional>) {
    return form::optional;
  } else if constexpr (is_a<T, std::variant>) {
    return form::variant;
  } else if constexpr (is_a<T, std::pair> || is_a<T, std::tuple> || is_std_array<T>) {
    return form::tuple;
  } else if constexpr (std::is_bounded_array_v<T>) {
    return form::array;
  } else if constexpr (is_a<T, std::unique_ptr>) {
    return form::owner;
  } else if constexpr (is_a<T, std::shared_ptr> || is_a<T, std::weak_ptr> ||
                       (!std::is_class_v<T> && !std::is_union_v<T>)) {
    return form::none;
  } else if constexpr (is_contiguous<T>) {
    return form::contiguous;
  } else if constexpr (constexpr annotation a = annotated<writer, reader, T>();
                       a != annotation::none && a < annotation::free_serialize) {
    return form::user;
  } else if constexpr (map_like<T>) {
    // Asked before free functions: cereal's headers have some for containers, and a program may
    // include these headers in some of its sources only.
    return form::map;
  } else if constexpr (set_like<T>) {
    return form::set;
  } else if constexpr (sequence_like<T>) {
    return form::sequence;
  } else if constexpr (annotated<writer, reader, T>() != annotation::none) {
    return form::user;
  } else if constexpr (std::is_aggregate_v<T>) {
    if constexpr (has_base<T> || field_count<T>() == 0) {
      return form::none;
    } else {
      return form::fields;
    }
  } else {
    return form::none;
  }
}

template <bool Views, class T, class... Seen>
consteval bool can_marshal();

template <bool Views, class... Seen>
struct all_marshal {
  template <class... T>
  static consteval bool of(type_list<T...>*) {
    return (can_marshal<Views, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class... T>
  static consteval bool of_variant(const std::variant<T...>*) {
    return (can_marshal<Views, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class... T>
  static consteval bool of_tuple(const std::tuple<T...>*) {
    return (can_marshal<Views, std::remove_cv_t<T>, Seen...>() && ...);
  }
  template <class A, class B>
  static consteval bool of_tuple(const std::pair<A, B>*) {
    return can_marshal<Views, std::remove_cv_t<A>, Seen...>() &&
           can_marshal<Views, std::remove_cv_t<B>, Seen...>();
  }
  template <class T, std::size_t N>
  static consteval bool of_tuple(const std::array<T, N>*) {
    return can_marshal<Views, T, Seen...>();
  }
};

/// True when values of type T can be marshalled. `Views`: ranges that are read in place may be,
/// too; they are valid only during a call. `Seen`: the types that contain T, which may be
/// recursive.
template <bool Views, class T, class... Seen>
consteval bool can_marshal() {
  if constexpr ((std::is_same_v<T, Seen> || ...)) {
    return true;
  } else {
    constexpr form f = form_of<T>();
    using inner = all_marshal<Views, T, Seen...>;
    if constexpr (f == form::none) {
      return false;
    } else if constexpr (f == form::bytes || f == form::boolean) {
      return true;
    } else if constexpr (f == form::view) {
      return Views && is_bytes<std::remove_cv_t<typename T::value_type>> &&
             alignof(typename T::value_type) <= 16;
    } else if constexpr (f == form::map) {
      return can_marshal<Views, typename T::key_type, T, Seen...>() &&
             can_marshal<Views, typename T::mapped_type, T, Seen...>();
    } else if constexpr (f == form::contiguous || f == form::sequence || f == form::set ||
                         f == form::optional) {
      return can_marshal<Views, typename T::value_type, T, Seen...>();
    } else if constexpr (f == form::variant) {
      return inner::of_variant(static_cast<const T*>(nullptr));
    } else if constexpr (f == form::tuple) {
      return inner::of_tuple(static_cast<const T*>(nullptr));
    } else if constexpr (f == form::array) {
      return can_marshal<Views, std::remove_extent_t<T>, Seen...>();
    } else if constexpr (f == form::owner) {
      using element = typename T::element_type;
      return std::is_same_v<T, std::unique_ptr<element>> && !std::is_array_v<element> &&
             (!std::is_polymorphic_v<element> || std::is_final_v<element>) &&
             can_marshal<Views, std::remove_const_t<element>, T, Seen...>();
    } else if constexpr (f == form::user) {
      return std::is_default_constructible_v<T>;
    } else {
      return inner::of(static_cast<field_types<T>*>(nullptr));
    }
  }
}

/// The least number of bytes that a value takes: it limits which counts are believed.
template <class T>
consteval std::size_t least_bytes() {
  constexpr form f = form_of<T>();
  if constexpr (f == form::bytes) {
    return sizeof(T);  // 1 for an empty type
  } else if constexpr (f == form::contiguous || f == form::sequence || f == form::map ||
                       f == form::set || f == form::view) {
    return sizeof(std::uint64_t);
  } else if constexpr (f == form::tuple) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<std::tuple_element_t<I, T>>>());
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (f == form::fields) {
    return []<class... M>(type_list<M...>*) {
      return (std::size_t{0} + ... + least_bytes<std::remove_cv_t<M>>());
    }(static_cast<field_types<T>*>(nullptr));
  } else if constexpr (f == form::array) {
    return std::extent_v<T> * least_bytes<std::remove_extent_t<T>>();
  } else {
    return 1;
  }
}
template <class T>
inline constexpr std::size_t least = least_bytes<T>() == 0 ? 1 : least_bytes<T>();

// ---- Versions of annotated types --------------------------------------------------------------

/// The version that CEREAL_CLASS_VERSION gives to a type; 0 when it gives none.
template <class T>
std::uint32_t version_of() {
  using version = cereal::detail::Version<T, cereal::detail::version_binding_tag>;
  if constexpr (requires { sizeof(version); }) {
    return version::version;
  } else {
    return 0;
  }
}

// ---- Writing --------------------------------------------------------------------------------

inline constexpr std::uint8_t user_mark = 0xa5;

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

template <class Archive>
void save_count(Archive& ar, std::size_t n) {
  auto count = static_cast<std::uint64_t>(n);
  ar.put(&count, sizeof count);
}

template <class Archive, class T>
void save_value(Archive& ar, const T& v);

/// Calls a user's function that both saves and loads. It takes the value as not const in both
/// cases.
template <annotation How, class Access = cereal::access, class Archive, class T>
void call_both_ways(Archive& ar, T& v) {
  if constexpr (How == annotation::serialize) {
    if constexpr (requires { v.serialize(ar); }) {
      v.serialize(ar);
    } else {
      Access::member_serialize(ar, v);
    }
  } else if constexpr (How == annotation::serialize_version) {
    if constexpr (requires { v.serialize(ar, version_of<T>()); }) {
      v.serialize(ar, version_of<T>());
    } else {
      Access::member_serialize(ar, v, version_of<T>());
    }
  } else if constexpr (How == annotation::free_serialize) {
    serialize(ar, v);
  } else {
    static_assert(How == annotation::free_serialize_version);
    serialize(ar, v, version_of<T>());
  }
}

template <class Archive, class T, class Access = cereal::access>
void save_user(Archive& ar, const T& v) {
  constexpr annotation how = annotated<writer, reader, T>();
  if constexpr (how == annotation::save_load) {
    if constexpr (requires { v.save(ar); }) {
      v.save(ar);
    } else {
      Access::member_save(ar, v);
    }
  } else if constexpr (how == annotation::save_load_version) {
    if constexpr (requires { v.save(ar, version_of<T>()); }) {
      v.save(ar, version_of<T>());
    } else {
      Access::member_save(ar, v, version_of<T>());
    }
  } else if constexpr (how == annotation::minimal) {
    if constexpr (requires { v.save_minimal(ar); }) {
      save_value(ar, v.save_minimal(ar));
    } else {
      save_value(ar, Access::member_save_minimal(ar, v));
    }
  } else if constexpr (how == annotation::free_save_load) {
    save(ar, v);
  } else if constexpr (how == annotation::free_save_load_version) {
    save(ar, v, version_of<T>());
  } else if constexpr (how == annotation::free_minimal) {
    save_value(ar, save_minimal(ar, v));
  } else {
    call_both_ways<how>(ar, const_cast<T&>(v));
  }
}

template <class Archive, class T>
void save_block(Archive& ar, const T* first, std::size_t n, bool borrowed) {
  save_count(ar, n);
  // Elements with a stricter alignment than 16 are never read in place, so they need none.
  ar.block(first, n * sizeof(T), alignof(T) <= 16 ? alignof(T) : 1, borrowed);
}

template <class Archive, class T>
void save_value(Archive& ar, const T& v) {
  constexpr form f = form_of<T>();
  static_assert(f != form::none,
                "sojourn: a value of this type cannot be marshalled: see sojourn/marshal.hpp");
  if constexpr (f == form::bytes && std::is_empty_v<T>) {
    constexpr std::byte one{};
    ar.put(&one, 1);
  } else if constexpr (f == form::bytes) {
    ar.put(&v, sizeof v);
  } else if constexpr (f == form::boolean) {
    std::uint8_t byte = v ? 1 : 0;
    ar.put(&byte, 1);
  } else if constexpr (f == form::view) {
    save_block(ar, v.data(), v.size(), true);
  } else if constexpr (f == form::contiguous) {
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
  } else if constexpr (f == form::sequence || f == form::set) {
    nested guard(ar);
    save_count(ar, v.size());
    for (const auto& e : v) save_value(ar, e);
  } else if constexpr (f == form::map) {
    nested guard(ar);
    save_count(ar, v.size());
    for (const auto& [key, value] : v) {
      save_value(ar, key);
      save_value(ar, value);
    }
  } else if constexpr (f == form::optional || f == form::owner) {
    nested guard(ar);
    save_value(ar, static_cast<bool>(v));
    if (v) save_value(ar, *v);
  } else if constexpr (f == form::variant) {
    nested guard(ar);
    if (v.valueless_by_exception()) cannot_be_saved("a variant of it is without a value");
    static_assert(std::variant_size_v<T> < 256);
    auto index = static_cast<std::uint8_t>(v.index());
    ar.put(&index, 1);
    std::visit([&](const auto& e) { save_value(ar, e); }, v);
  } else if constexpr (f == form::tuple) {
    nested guard(ar);
    std::apply([&](const auto&... e) { (save_value(ar, e), ...); }, v);
  } else if constexpr (f == form::array) {
    nested guard(ar);
    for (const auto& e : v) save_value(ar, e);
  } else if constexpr (f == form::fields) {
    nested guard(ar);
    with_fields(v, [&](const auto&... e) { (save_value(ar, e), ...); });
  } else if constexpr (f == form::user) {
    {
      nested_user guard(ar);
      save_user(ar, v);
    }
    ar.put(&user_mark, 1);
  }
}

// ---- Reading --------------------------------------------------------------------------------

template <class T>
T make_value(reader& ar);
template <class T>
void load_value(reader& ar, T& v);

template <class T, class Access = cereal::access>
void load_user(reader& ar, T& v) {
  constexpr annotation how = annotated<writer, reader, T>();
  if constexpr (how == annotation::save_load) {
    if constexpr (requires { v.load(ar); }) {
      v.load(ar);
    } else {
      Access::member_load(ar, v);
    }
  } else if constexpr (how == annotation::save_load_version) {
    if constexpr (requires { v.load(ar, version_of<T>()); }) {
      v.load(ar, version_of<T>());
    } else {
      Access::member_load(ar, v, version_of<T>());
    }
  } else if constexpr (how == annotation::minimal) {
    const reader& unchanged = ar;
    if constexpr (requires(const writer& w) { v.save_minimal(w); }) {
      using value = std::remove_cvref_t<decltype(v.save_minimal(std::declval<const writer&>()))>;
      v.load_minimal(unchanged, make_value<value>(ar));
    } else {
      using value = std::remove_cvref_t<decltype(Access::member_save_minimal(
          std::declval<const writer&>(), v))>;
      Access::member_load_minimal(unchanged, v, make_value<value>(ar));
    }
  } else if constexpr (how == annotation::free_save_load) {
    load(ar, v);
  } else if constexpr (how == annotation::free_save_load_version) {
    load(ar, v, version_of<T>());
  } else if constexpr (how == annotation::free_minimal) {
    const reader& unchanged = ar;
    using value = std::remove_cvref_t<decltype(save_minimal(std::declval<const writer&>(), v))>;
    load_minimal(unchanged, v, make_value<value>(ar));
  } else {
    call_both_ways<how>(ar, v);
  }
}

inline bool load_flag(reader& ar) {
  auto byte = ar.get<std::uint8_t>();
  if (byte > 1) [[unlikely]]
    malformed("a truth value is neither true nor false");
  return byte != 0;
}

/// Reserves no more than the message can hold: so a short message with a large count makes no large
/// container, which grows as its elements are read.
template <class T>
void reserve_elements(reader& ar, T& v, std::size_t n) {
  if constexpr (requires { v.reserve(n); }) {
    std::size_t likely = ar.left() / sizeof(typename T::value_type) + 1;
    v.reserve(n < likely ? n : likely);
  }
}

template <class T, std::size_t I = 0>
void load_alternative(reader& ar, T& v, std::size_t index) {
  if constexpr (I < std::variant_size_v<T>) {
    if (index == I) {
      v.template emplace<I>(make_value<std::variant_alternative_t<I, T>>(ar));
    } else {
      load_alternative<T, I + 1>(ar, v, index);
    }
  } else {
    malformed("a variant has no such alternative");
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
    malformed("a variant has no such alternative");
  }
}

template <class T>
void load_contiguous(reader& ar, T& v) {
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
    if constexpr (alignof(element) <= 16) {
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
    std::size_t n = ar.count(least<element>);
    reserve_elements(ar, v, n);
    for (; n > 0; --n) v.push_back(make_value<element>(ar));
  }
}

template <class T>
void load_value(reader& ar, T& v) {
  constexpr form f = form_of<T>();
  static_assert(f != form::none,
                "sojourn: a value of this type cannot be marshalled: see sojourn/marshal.hpp");
  if constexpr (f == form::bytes && std::is_empty_v<T>) {
    (void)ar.template get<std::byte>();  // not into `v`, which may share its address with a member
  } else if constexpr (f == form::bytes) {
    ar.get(static_cast<void*>(&v), sizeof v);
  } else if constexpr (f == form::boolean) {
    v = load_flag(ar);
  } else if constexpr (f == form::view) {
    using element = std::remove_cv_t<typename T::value_type>;
    std::size_t n = ar.block_count(sizeof(element));
    v = T(reinterpret_cast<const element*>(ar.in_place(n * sizeof(element), alignof(element))), n);
  } else if constexpr (f == form::contiguous) {
    load_contiguous(ar, v);
  } else if constexpr (f == form::sequence) {
    nested guard(ar);
    v.clear();
    std::size_t n = ar.count(least<typename T::value_type>);
    for (; n > 0; --n) v.push_back(make_value<typename T::value_type>(ar));
  } else if constexpr (f == form::set) {
    nested guard(ar);
    v.clear();
    std::size_t n = ar.count(least<typename T::key_type>);
    reserve_elements(ar, v, n);
    for (; n > 0; --n) v.emplace_hint(v.end(), make_value<typename T::key_type>(ar));
  } else if constexpr (f == form::map) {
    nested guard(ar);
    v.clear();
    std::size_t n = ar.count(least<typename T::key_type> + least<typename T::mapped_type>);
    reserve_elements(ar, v, n);
    for (; n > 0; --n) {
      auto key = make_value<typename T::key_type>(ar);
      v.emplace_hint(v.end(), std::move(key), make_value<typename T::mapped_type>(ar));
    }
  } else if constexpr (f == form::optional) {
    nested guard(ar);
    v.reset();
    if (load_flag(ar)) v.emplace(make_value<typename T::value_type>(ar));
  } else if constexpr (f == form::owner) {
    nested guard(ar);
    v.reset();
    using element = std::remove_const_t<typename T::element_type>;
    if (load_flag(ar)) v.reset(new element(make_value<element>(ar)));
  } else if constexpr (f == form::variant) {
    nested guard(ar);
    load_alternative(ar, v, ar.get<std::uint8_t>());
  } else if constexpr (f == form::tuple) {
    nested guard(ar);
    std::apply([&](auto&... e) { (load_value(ar, e), ...); }, v);
  } else if constexpr (f == form::array) {
    nested guard(ar);
    for (auto& e : v) load_value(ar, e);
  } else if constexpr (f == form::fields) {
    nested guard(ar);
    with_fields(v, [&](auto&... e) { (load_value(ar, e), ...); });
  } else if constexpr (f == form::user) {
    {
      nested_user guard(ar);
      load_user(ar, v);
    }
    if (ar.get<std::uint8_t>() != user_mark) [[unlikely]]
      malformed("a user's type was read other than it was written");
  }
}

template <class T, class... M>
T make_of_fields(reader& ar, type_list<M...>*) {
  nested guard(ar);
  return T{make_value<std::remove_cv_t<M>>(ar)...};  // braces: from the left to the right
}
template <class... M>
consteval bool any_array(type_list<M...>*) {
  return (std::is_array_v<M> || ...);
}

/// What make_value builds a tuple or a pair from, element by element and in order.
template <class T, std::size_t... I>
T make_tuple_value(reader& ar, std::index_sequence<I...>) {
  nested guard(ar);
  return T{make_value<std::remove_cv_t<std::tuple_element_t<I, T>>>(ar)...};
}

/// A value without a default constructor is built from its parts.
template <class T>
T make_value(reader& ar) {
  constexpr form f = form_of<T>();
  if constexpr (f == form::boolean) {
    return load_flag(ar);
  } else if constexpr (f == form::bytes && !std::is_default_constructible_v<T>) {
    union storage {
      storage() {}
      ~storage() {}
      T value;
    } s;
    ar.get(static_cast<void*>(&s.value), sizeof(T));
    return std::move(s.value);
  } else if constexpr (f == form::tuple && !std::is_default_constructible_v<T>) {
    return make_tuple_value<T>(ar, std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (f == form::variant && !std::is_default_constructible_v<T>) {
    nested guard(ar);
    return make_alternative<T>(ar, ar.get<std::uint8_t>());
  } else if constexpr (f == form::fields) {
    using members = field_types<T>;
    if constexpr (any_array(static_cast<members*>(nullptr))) {
      T v{};
      load_value(ar, v);
      return v;
    } else {
      return make_of_fields<T>(ar, static_cast<members*>(nullptr));
    }
  } else {
    T v{};
    load_value(ar, v);
    return v;
  }
}

// ---- Archives as users' functions see them -----------------------------------------------------

template <class Archive, class T>
void save_wrapped(Archive& ar, const T& v) {
  if constexpr (is_a<T, cereal::NameValuePair> || is_a<T, cereal::DeferredData>) {
    save_wrapped(ar, v.value);
  } else if constexpr (is_a<T, cereal::SizeTag>) {
    save_count(ar, static_cast<std::size_t>(v.size));
  } else if constexpr (is_a<T, cereal::BinaryData>) {
    save_count(ar, static_cast<std::size_t>(v.size));
    ar.put(v.data, static_cast<std::size_t>(v.size));
  } else if constexpr (is_a<T, cereal::MapItem>) {
    save_wrapped(ar, v.key);
    save_wrapped(ar, v.value);
  } else if constexpr (is_a<T, cereal::base_class> || is_a<T, cereal::virtual_base_class>) {
    save_value(ar, *v.base_ptr);
  } else {
    save_value(ar, v);
  }
}

template <class T>
void load_wrapped(reader& ar, T& v) {
  if constexpr (is_a<std::remove_const_t<T>, cereal::NameValuePair> ||
                is_a<std::remove_const_t<T>, cereal::DeferredData>) {
    load_wrapped(ar, v.value);
  } else if constexpr (is_a<std::remove_const_t<T>, cereal::SizeTag>) {
    // Each element takes at least one byte, as everything that is written does.
    v.size = static_cast<std::remove_reference_t<decltype(v.size)>>(ar.count(1));
  } else if constexpr (is_a<std::remove_const_t<T>, cereal::BinaryData>) {
    if (ar.get<std::uint64_t>() != v.size) malformed("binary data has another length");
    ar.get(v.data, static_cast<std::size_t>(v.size));
  } else if constexpr (is_a<std::remove_const_t<T>, cereal::MapItem>) {
    load_wrapped(ar, v.key);
    load_wrapped(ar, v.value);
  } else if constexpr (is_a<std::remove_const_t<T>, cereal::base_class> ||
                       is_a<std::remove_const_t<T>, cereal::virtual_base_class>) {
    load_value(ar, *v.base_ptr);
  } else {
    load_value(ar, v);
  }
}

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
