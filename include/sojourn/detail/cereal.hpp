// SPDX-License-Identifier: Apache-2.0
// Functions for a type that users wrote, or that cereal's headers define: which there are, and how
// they are called. Values that these functions hand to an archive come back to codec.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/is_a.hpp"

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

// How a value of any type is written and read (codec.hpp).
template <class Archive, class T>
void save_value(Archive& ar, const T& v);
template <class T>
void load_value(reader& ar, T& v);
template <class T>
T make_value(reader& ar);

template <class Archive>
void save_count(Archive& ar, std::size_t n) {
  auto count = static_cast<std::uint64_t>(n);
  ar.put(&count, sizeof count);
}

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
    if (ar.get<std::uint64_t>() != v.size)
      malformed("binary data has a different length than its receiver expects");
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

}  // namespace sojourn::detail
