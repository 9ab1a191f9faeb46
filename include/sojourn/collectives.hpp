// SPDX-License-Identifier: Apache-2.0
// Operations that all ranks take part in. Each rank calls them from one fiber at a time, in the
// same order. They suspend the fiber, never the rank.
#pragma once

#include <cstddef>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/detail/result.hpp"
#include "sojourn/marshal.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/travels.hpp"

namespace sojourn {

namespace detail {

/// Combines `other` into `into`, both `bytes` long.
using combine_function = void (*)(void* into, const void* other);

/// Values go up a tree to rank 0, combined in rank order, and the result goes down again to all
/// ranks.
void reduce_bytes(void* value, std::size_t bytes, combine_function combine);
void broadcast_bytes(void* value, std::size_t bytes, int root);
/// `all` has room for one value of each rank, at `root` (or everywhere when root is -1).
void gather_bytes(const void* value, std::size_t bytes, void* all, int root);

/// Marshalled values, whose lengths differ from rank to rank. `failed`: this rank could not marshal
/// its value, and takes part nevertheless, so that no rank waits for it.
using value_bytes = std::vector<std::byte>;
value_bytes broadcast_values(value_bytes mine, bool failed, int root);
std::vector<value_bytes> gather_values(const value_bytes& mine, bool failed, int root);

template <class T>
value_bytes bytes_of_value(const T& value) {
  value_bytes bytes(measure(value).whole);
  writer to(bytes.data(), bytes.size());
  save_value(to, value);
  return bytes;
}
template <class T>
T value_of_bytes(const value_bytes& bytes) {
  reader from(bytes.data(), bytes.size());
  T value = make_value<T>(from);
  from.expect_end();
  return value;
}
/// Calls op(bytes, failed) with the bytes of `value`; after that throws what making the bytes
/// threw.
template <class T, class Op>
auto with_bytes_of_value(const T& value, Op op) {
  std::exception_ptr failure;
  value_bytes bytes;
  try {
    bytes = bytes_of_value(value);
  } catch (...) {
    failure = std::current_exception();
  }
  stays_here stays;
  auto result = op(std::move(bytes), failure != nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  return result;
}
template <class T>
inline constexpr bool is_gathered = marshals_to_stay<T>;

}  // namespace detail

/// Returns when every rank has called it. Suspends.
void barrier();

/// Returns the value that rank `root` passes, on every rank. Suspends.
template <class T>
T broadcast(T value, rank_t root = 0) {
  static_assert(detail::is_gathered<T>, "sojourn: a value that is broadcast must travel");
  if constexpr (travels<T>) {
    detail::broadcast_bytes(&value, sizeof(T), root);
    return value;
  } else if (rank_me() == root) {
    detail::with_bytes_of_value(value, [root](detail::value_bytes bytes, bool failed) {
      return detail::broadcast_values(std::move(bytes), failed, root);
    });
    return value;
  } else {
    return detail::value_of_bytes<T>(detail::broadcast_values({}, false, root));
  }
}

/// op(op(v0, v1), v2)… over the values of ranks 0, 1, 2, …; returned on every rank. `op` is
/// associative and has no captures, such as std::plus<>{}. Suspends.
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
std::vector<T> gather_as_bytes(T value, int root) {
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
template <class T>
std::vector<T> gather_any(T value, int root) {
  static_assert(is_gathered<T>, "sojourn: a value that is gathered must travel");
  if constexpr (travels<T>) {
    return gather_as_bytes(std::move(value), root);
  } else {
    auto all = with_bytes_of_value(value, [root](value_bytes bytes, bool failed) {
      return gather_values(bytes, failed, root);
    });
    std::vector<T> values;
    for (const value_bytes& bytes : all) values.push_back(value_of_bytes<T>(bytes));
    return values;
  }
}
}  // namespace detail

/// Returns the values of all ranks, in order, on rank `root`, and an empty vector elsewhere.
/// Suspends.
template <class T>
std::vector<T> gather(T value, rank_t root = 0) {
  return detail::gather_any(std::move(value), root);
}

/// Returns the values of all ranks, in order, on every rank. Suspends.
template <class T>
std::vector<T> all_gather(T value) {
  return detail::gather_any(std::move(value), -1);
}

}  // namespace sojourn
