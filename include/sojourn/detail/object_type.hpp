// SPDX-License-Identifier: Apache-2.0
// What the runtime does with objects whose type it does not know: versions of replicated objects
// (replicas.hpp), copies, and objects that move (copies.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "sojourn/calls/marshal.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

struct object_type {
  std::size_t bytes;
  std::size_t alignment;
  bool is_plain;  ///< Its bytes travel; otherwise it is marshalled.
  const std::type_info* type;
  void (*destroy)(void* object);  ///< Its destructor must not wait.
  // Of types that are marshalled. They throw what marshalling throws.
  std::size_t (*length)(const void* object);  ///< How many bytes write() makes.
  std::vector<std::byte> (*write)(const void* object);
  /// Makes an object at `to`. Requires: `from` is aligned to 16.
  void (*read)(void* to, const std::byte* from, std::size_t bytes);
};

template <class T>
std::size_t length_of_object(const void* object) {
  return measure(*static_cast<const T*>(object)).whole;
}
template <class T>
std::vector<std::byte> write_object(const void* object) {
  const T& value = *static_cast<const T*>(object);
  std::vector<std::byte> bytes(measure(value).whole);
  writer to(bytes.data(), bytes.size());
  save_value(to, value);
  if (to.left() != 0) cannot_be_saved("its `save` writes less the second time");
  return bytes;
}
template <class T>
void read_object(void* to, const std::byte* from, std::size_t bytes) {
  const nonblocking<> promise;
  reader values(from, bytes);
  ::new (to) T(make_value<T>(values));
  values.expect_end();
}

template <class T>
constexpr object_type make_object_type() {
  object_type type{.bytes = sizeof(T),
                   .alignment = alignof(T),
                   .is_plain = travels<T>,
                   .type = &typeid(T),
                   .destroy =
                       [](void* object) {
                         const nonblocking<> promise;
                         std::destroy_at(static_cast<T*>(object));
                       },
                   .length = nullptr,
                   .write = nullptr,
                   .read = nullptr};
  if constexpr (!travels<T>) {
    type.length = length_of_object<T>;
    type.write = write_object<T>;
    type.read = read_object<T>;
  }
  return type;
}
template <class T>
inline constexpr object_type object_type_of = make_object_type<T>();

/// Gives a type whose objects are marshalled a number that is the same on all ranks which run this
/// program. 0 stands for all others. To be called before main begins.
std::uint16_t register_object_type(const object_type& type);
/// Null when no type has the number.
const object_type* object_type_at(std::uint16_t number);

}  // namespace sojourn::detail
