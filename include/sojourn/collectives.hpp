// SPDX-License-Identifier: Apache-2.0
// Operations that all ranks, or all members of a team, take part in: docs/collectives.md. Each
// member begins the same operations of a team in the same order.
//
// The functions that return values suspend the fiber, never the rank, and are called from one fiber
// of a rank at a time. Those whose names end in _async never suspend, unless `op` does: they send
// at once what can be sent, and return a future. Any number of operations may be under way. The
// rank takes part in them whenever it looks at its messages.
//
// A root is a number in the team. Values travel, or are marshalled (marshal.hpp).
//
// Errors: rank_lost when a member has ended. What `op` or the marshalling of a value throws on one
// rank is thrown on every rank that waits for the result. sojourn::error, before anything is sent,
// when there is no such root, or the team has no members.
//
// Each rank has counted words; every rank gets the sums (docs/examples/collectives.cpp):
//
//     using counts = std::map<std::string, int>;
//
//     counts of_all_ranks(const counts& mine) {
//       return reduce(mine, [](counts a, const counts& b) {
//         for (const auto& [word, times] : b) a[word] += times;
//         return a;
//       });
//     }
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/detail/collective.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/team.hpp"

namespace sojourn {

/// Returns when every member has called it. Suspends.
void barrier(const team& among = team::world());
/// Its future is ready when every member has called it.
future<void> barrier_async(const team& among = team::world());

namespace detail {

inline constexpr collective_plan gather_plan{collective::gather, collective_shape::up_to_root};
inline constexpr collective_plan all_gather_plan{collective::all_gather,
                                                 collective_shape::up_and_down};
inline constexpr collective_plan all_to_all_plan{collective::all_to_all,
                                                 collective_shape::exchange};

template <class T>
collective_plan broadcast_plan(rank_t root, const team& among) {
  static_assert(is_gathered<T>, "sojourn: a value that is broadcast must travel");
  return rooted({collective::broadcast, collective_shape::down}, root, among);
}
template <class T>
collective_plan with_gathered(const collective_plan& plan) {
  static_assert(is_gathered<T>, "sojourn: a value that is gathered must travel");
  return plan;
}
template <class T, class Op>
collective_plan with_combined(const collective_plan& plan) {
  static_assert(is_gathered<T>, "sojourn: a value that is reduced must travel");
  static_assert(std::is_empty_v<Op>, "sojourn: the operation of a reduce cannot capture");
  return plan;
}
template <class T, class Op>
collective_plan reduce_plan() {
  return with_combined<T, Op>({collective::reduce, collective_shape::up_and_down});
}
template <class T, class Op>
collective_plan reduce_plan(rank_t root, const team& among) {
  return rooted(with_combined<T, Op>({collective::reduce, collective_shape::up_to_root}), root,
                among);
}
template <class T, class Op>
collective_plan scan_plan(collective which) {
  return with_combined<T, Op>({which, collective_shape::up_and_down});
}

}  // namespace detail

/// Returns the value that `root` passes, on every member. Suspends.
template <class T>
T broadcast(T value, rank_t root = 0, const team& among = team::world()) {
  return detail::do_with<detail::broadcast_value<T>>(detail::broadcast_plan<T>(root, among), among,
                                                     std::move(value));
}
template <class T>
future<T> broadcast_async(T value, rank_t root = 0, const team& among = team::world()) {
  return detail::begin_with<detail::broadcast_value<T>>(detail::broadcast_plan<T>(root, among),
                                                        among, std::move(value));
}

/// op(op(v0, v1), v2)… over the values of members 0, 1, 2, …; returned on every member. `op` is
/// associative and has no captures, such as std::plus<>{}. Suspends.
template <class T, class Op>
T reduce(T value, Op op, const team& among = team::world()) {
  return detail::do_with<detail::reduction<T, Op>>(detail::reduce_plan<T, Op>(), among,
                                                   std::move(value), std::move(op));
}
template <class T, class Op>
future<T> reduce_async(T value, Op op, const team& among = team::world()) {
  return detail::begin_with<detail::reduction<T, Op>>(detail::reduce_plan<T, Op>(), among,
                                                      std::move(value), std::move(op));
}
/// The same, returned on `root` alone, and nothing elsewhere: half of the messages.
template <class T, class Op>
std::optional<T> reduce(T value, Op op, rank_t root, const team& among = team::world()) {
  return detail::do_with<detail::reduction_to_root<T, Op>>(
      detail::reduce_plan<T, Op>(root, among), among, std::move(value), std::move(op), root);
}
template <class T, class Op>
future<std::optional<T>> reduce_async(T value, Op op, rank_t root,
                                      const team& among = team::world()) {
  return detail::begin_with<detail::reduction_to_root<T, Op>>(
      detail::reduce_plan<T, Op>(root, among), among, std::move(value), std::move(op), root);
}

/// op(op(v0, v1), …, vr) on member r: up to its own value. Suspends.
template <class T, class Op>
T inclusive_scan(T value, Op op, const team& among = team::world()) {
  return detail::do_with<detail::inclusive_prefixes<T, Op>>(
      detail::scan_plan<T, Op>(detail::collective::inclusive_scan), among, std::move(value),
      std::move(op));
}
template <class T, class Op>
future<T> inclusive_scan_async(T value, Op op, const team& among = team::world()) {
  return detail::begin_with<detail::inclusive_prefixes<T, Op>>(
      detail::scan_plan<T, Op>(detail::collective::inclusive_scan), among, std::move(value),
      std::move(op));
}

/// op(op(first, v0), …, vr-1) on member r: up to the value before its own, and `first` on member 0.
/// Only the `first` that member 0 passes counts. Suspends.
template <class T, class Op>
T exclusive_scan(T value, std::type_identity_t<T> first, Op op, const team& among = team::world()) {
  return detail::do_with<detail::exclusive_prefixes<T, Op>>(
      detail::scan_plan<T, Op>(detail::collective::exclusive_scan), among, std::move(value),
      std::move(first), std::move(op));
}
template <class T, class Op>
future<T> exclusive_scan_async(T value, std::type_identity_t<T> first, Op op,
                               const team& among = team::world()) {
  return detail::begin_with<detail::exclusive_prefixes<T, Op>>(
      detail::scan_plan<T, Op>(detail::collective::exclusive_scan), among, std::move(value),
      std::move(first), std::move(op));
}

/// Returns the values of all members, in order, on `root`, and an empty vector elsewhere. Suspends.
template <class T>
std::vector<T> gather(T value, rank_t root = 0, const team& among = team::world()) {
  return detail::do_with<detail::gathered_values<T>>(
      detail::rooted(detail::with_gathered<T>(detail::gather_plan), root, among), among,
      std::move(value), root);
}
template <class T>
future<std::vector<T>> gather_async(T value, rank_t root = 0, const team& among = team::world()) {
  return detail::begin_with<detail::gathered_values<T>>(
      detail::rooted(detail::with_gathered<T>(detail::gather_plan), root, among), among,
      std::move(value), root);
}

/// Returns the values of all members, in order, on every member. Suspends.
template <class T>
std::vector<T> all_gather(T value, const team& among = team::world()) {
  return detail::do_with<detail::gathered_values<T>>(
      detail::with_gathered<T>(detail::all_gather_plan), among, std::move(value));
}
template <class T>
future<std::vector<T>> all_gather_async(T value, const team& among = team::world()) {
  return detail::begin_with<detail::gathered_values<T>>(
      detail::with_gathered<T>(detail::all_gather_plan), among, std::move(value));
}

/// The name of all_gather() until version 0.2.
template <class T>
[[deprecated("sojourn: gather_all() is called all_gather() now")]]
std::vector<T> gather_all(T value, const team& among = team::world()) {
  return all_gather(std::move(value), among);
}

/// Sends values[r] to each member r, and returns what each sent to this rank, in order. Vectors of
/// different lengths go as values: T is a vector then. Suspends. Errors: sojourn::error, on all
/// members, when one has not as many values as the team has members.
template <class T>
std::vector<T> all_to_all(std::vector<T> values, const team& among = team::world()) {
  return detail::do_with<detail::exchanged_values<T>>(
      detail::with_gathered<T>(detail::all_to_all_plan), among, std::move(values));
}
template <class T>
future<std::vector<T>> all_to_all_async(std::vector<T> values, const team& among = team::world()) {
  return detail::begin_with<detail::exchanged_values<T>>(
      detail::with_gathered<T>(detail::all_to_all_plan), among, std::move(values));
}

/// Makes of `op` an operation on ranges (vectors, arrays) that combines the first elements of two
/// ranges, their second elements, and so on: reduce(values, elementwise(std::plus<>{})). Errors:
/// sojourn::error when the ranges have different lengths.
template <class Op>
struct elementwise_operation {
  [[no_unique_address]] Op op;

  template <class Range>
  Range operator()(Range a, const Range& b) {
    if (a.size() != b.size()) detail::different_lengths(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = op(std::move(a[i]), b[i]);
    return a;
  }
};
template <class Op>
elementwise_operation<Op> elementwise(Op op) {
  static_assert(std::is_empty_v<Op>, "sojourn: the operation of a reduce cannot capture");
  return {std::move(op)};
}

}  // namespace sojourn
