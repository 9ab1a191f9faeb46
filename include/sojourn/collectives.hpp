// SPDX-License-Identifier: Apache-2.0
// Operations that all ranks take part in. Each rank calls them from one fiber at a time, in the
// same order. They suspend the fiber, never the rank.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "sojourn/detail/result.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/travels.hpp"

namespace sojourn {

namespace detail {

/// Combines `other` into `into`, both `bytes` long.
using combine_function = void (*)(void* into, const void* other);

/// Up a tree to rank 0 and, with `to_all`, down again. Values are combined in rank order.
void reduce_bytes(void* value, std::size_t bytes, combine_function combine);
void broadcast_bytes(void* value, std::size_t bytes, int root);
/// `all` has room for one value of each rank, at `root` (or everywhere when root is -1).
void gather_bytes(const void* value, std::size_t bytes, void* all, int root);

}  // namespace detail

/// Returns once every rank has called it. Suspends.
void barrier();

/// The value of `root`, on every rank. Suspends.
template <class T>
T broadcast(T value, rank_t root = 0) {
  static_assert(travels<T>, "sojourn: a value that is broadcast must travel");
  detail::broadcast_bytes(&value, sizeof(T), root);
  return value;
}

/// op(op(v0, v1), v2)… over the values of ranks 0, 1, 2, …, on every rank. `op` is associative and
/// has no captures, such as std::plus<>{}. Suspends.
template <class T, class Op>
T reduce(T value, Op) {
  static_assert(travels<T>, "sojourn: a value that is reduced must travel");
  static_assert(std::is_empty_v<Op>, "sojourn: the operation of a reduce cannot capture");
  detail::reduce_bytes(&value, sizeof(T), [](void* into, const void* other) {
    alignas(Op) unsigned char storage[sizeof(Op)] = {};
    T& a = *static_cast<T*>(into);
    detail::room<T> b;
    std::memcpy(static_cast<void*>(&b.value), other, sizeof(T));
    a = (*reinterpret_cast<Op*>(storage))(a, b.value);
  });
  return value;
}

namespace detail {
template <class T>
std::vector<T> gather_values(T value, int root) {
  static_assert(travels<T>, "sojourn: a value that is gathered must travel");
  static_assert(std::is_default_constructible_v<T>,
                "sojourn: a value that is gathered must be default-constructible");
  bool mine = root < 0 || root == rank_me();
  std::size_t count = mine ? static_cast<std::size_t>(rank_count()) : 0;
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no elements to copy to
    std::vector<char> all(count);
    gather_bytes(&value, sizeof(T), all.data(), root);
    return {all.begin(), all.end()};
  } else {
    std::vector<T> all(count);
    gather_bytes(&value, sizeof(T), all.data(), root);
    return all;
  }
}
}  // namespace detail

/// At `root` the values of all ranks, in order; elsewhere nothing. Suspends.
template <class T>
std::vector<T> gather(T value, rank_t root = 0) {
  return detail::gather_values(value, root);
}

/// The values of all ranks, in order, on every rank. Suspends.
template <class T>
std::vector<T> gather_all(T value) {
  return detail::gather_values(value, -1);
}

}  // namespace sojourn
