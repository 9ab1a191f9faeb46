// SPDX-License-Identifier: Apache-2.0
// Combining values of all threads of shared::run_threads(), in each rank first: a part of
// sojourn/shared.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/collectives.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/waiting/sync.hpp"

namespace sojourn::shared {

namespace detail {

/// Where a thread of run_threads() stands among those that begin on its rank.
struct thread_place {
  rank_t rank;        ///< The rank where it began.
  std::size_t place;  ///< Its number among the threads that began there, from 0.
  std::size_t of;     ///< How many began there; 0 for a main fiber outside of run_threads().
};
/// The place of the running thread. Suspends if the thread has moved. Errors: sojourn::error when
/// the fiber takes no part in barriers.
thread_place place_of_thread();

/// A reduction, in which the threads of this rank combine their values.
struct reduction {
  const void* type;
  std::size_t missing;
  latch over{1};
  std::exception_ptr failure;
};
/// The reduction that threads of this rank are joining, or null.
std::shared_ptr<reduction>& open_reduction();
[[noreturn]] void refuse_types_in_reduction();
[[noreturn]] void failed_elsewhere();

template <class T>
inline constexpr char type_of_reduction = 0;

template <class T>
struct reduction_of : reduction {
  explicit reduction_of(std::size_t threads)
      : reduction{&type_of_reduction<T>, threads, latch(1), nullptr}, values(threads) {}
  std::vector<std::optional<T>> values;  ///< The values of the threads, by their places.
  std::optional<T> result;
};

/// Combines the values of two ranks. A rank whose threads could not combine their values still
/// takes part, without a value.
template <class Op>
struct of_those_there {
  template <class T>
  std::optional<T> operator()(std::optional<T> a, std::optional<T> b) const {
    if (!a || !b) return std::nullopt;
    return Op{}(std::move(*a), std::move(*b));
  }
};

template <class T, class Op>
void combine(reduction_of<T>& all) {
  std::optional<T> of_rank;
  try {
    of_rank = std::move(all.values.front());
    for (std::size_t i = 1; i < all.values.size(); ++i)
      of_rank = Op{}(std::move(*of_rank), std::move(*all.values[i]));
  } catch (...) {
    all.failure = std::current_exception();
    of_rank.reset();
  }
  try {
    all.result = reduce(std::move(of_rank), of_those_there<Op>{});
    if (!all.result && all.failure == nullptr) failed_elsewhere();
  } catch (...) {
    if (all.failure == nullptr) all.failure = std::current_exception();
  }
}

/// A thread's part in a reduction. Runs on the rank where the thread began.
template <class T, class Op>
T reduce_in_rank(std::size_t place, std::size_t threads, T value) {
  std::shared_ptr<reduction>& open = open_reduction();
  if (open == nullptr) open = std::make_shared<reduction_of<T>>(threads);
  if (open->type != &type_of_reduction<T>) refuse_types_in_reduction();
  const auto all = std::static_pointer_cast<reduction_of<T>>(open);
  all->values[place] = std::move(value);
  if (--all->missing == 0) {
    open.reset();
    combine<T, Op>(*all);
    all->over.count_down();
  } else {
    all->over.wait();
  }
  if (all->failure != nullptr) std::rethrow_exception(all->failure);
  return *all->result;
}

}  // namespace detail

/// op(op(v0, v1), v2)… over the values of all threads of run_threads(), in the order of their
/// numbers; returned to each of them. Outside of run_threads(): over the values of the main fibers.
/// The values of a rank's threads are combined on that rank, and then one thread sends the result
/// (sojourn::reduce), so this takes as many messages as with one thread on each rank. All threads
/// call it, with the same types and operation, and no other collective operation of all ranks at
/// the same time. `op` is associative and has no captures, such as std::plus<>{}; values travel, or
/// are marshalled. It orders as barrier() does. A thread that has moved takes part where it began,
/// by a call.
///
/// Suspends. Errors: what `op` throws, on the rank where it does, and sojourn::error on others;
/// sojourn::error in fibers that take no part, and when the threads of a rank combine different
/// types; rank_lost.
template <class T, class Op>
T reduce_all(T value, Op) {
  static_assert(std::is_empty_v<Op> && std::default_initializable<Op>,
                "sojourn: the operation of shared::reduce_all cannot capture");
  const detail::thread_place here = detail::place_of_thread();
  if (here.of == 0) return reduce(std::move(value), Op{});
  if (here.rank == rank_me())
    return detail::reduce_in_rank<T, Op>(here.place, here.of, std::move(value));
  return rpc(
             here.rank,
             [](std::size_t place, std::size_t of, T moved) {
               return detail::reduce_in_rank<T, Op>(place, of, std::move(moved));
             },
             here.place, here.of, std::move(value))
      .get();
}

}  // namespace sojourn::shared
