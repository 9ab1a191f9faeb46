// SPDX-License-Identifier: Apache-2.0
//
// The programs of Table 3 of Plevyak, Karamcheti, Zhang and Chien (1995), each as one source for
// everything that can fork. A `Way` says what a fork is:
//
//   Way::group                     lives in a frame that forks
//   Way::child<T>(group, f, a...)  begins f(a...); get() is its result, after group.join()
//
// Each call that has something to run beside it is a fork; the last one in a frame is a call.
// Nothing is cut off by hand. Knows nothing of Sojourn, so that the peers can share it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/timing.hpp"

// No inlining, no cloning, no knowledge of what it clobbers: g++ -O2 unrolls recursions into
// themselves, and what it unrolls differs with each form.
#if defined(__GNUC__) && !defined(__clang__)
#define BENCH_OPAQUE [[gnu::noipa]]
#else
#define BENCH_OPAQUE [[gnu::noinline]]
#endif

namespace bench::kernels {

/// A result that a last call in a frame gave: the frame is still there then, so that no form's call
/// is a jump, or turned into a loop. (g++ makes a loop of the second call in `fib`.)
template <class T>
[[gnu::always_inline]] inline T kept(T value) {
  asm volatile("" : "+r"(value));
  return value;
}
/// The same after a call without a result.
[[gnu::always_inline]] inline void keep_frame() { asm volatile(""); }

template <class Way>
BENCH_OPAQUE long fib(long n) {
  if (n < 2) return n;
  typename Way::group here;
  typename Way::template child<long> older(here, [](long m) { return fib<Way>(m); }, n - 1);
  const long younger = kept(fib<Way>(n - 2));
  here.join();
  return older.get() + younger;
}

/// The same with a fork for each call.
template <class Way>
BENCH_OPAQUE long fib_both(long n) {
  if (n < 2) return n;
  typename Way::group here;
  const auto again = [](long m) { return fib_both<Way>(m); };
  typename Way::template child<long> older(here, again, n - 1);
  typename Way::template child<long> younger(here, again, n - 2);
  here.join();
  return older.get() + younger.get();
}

template <class Way>
BENCH_OPAQUE long tak(long x, long y, long z) {
  if (y >= x) return z;
  typename Way::group here;
  const auto again = [](long a, long b, long c) { return tak<Way>(a, b, c); };
  typename Way::template child<long> first(here, again, x - 1, y, z);
  typename Way::template child<long> second(here, again, y - 1, z, x);
  const long third = tak<Way>(z - 1, x, y);
  here.join();
  return kept(tak<Way>(first.get(), second.get(), third));
}

/// Hoare's partition around the middle element: what lies before the pointer is not greater than
/// what lies from it on. Requires: two elements or more.
inline int* partition(int* first, int* last) {
  const int pivot = first[(last - first - 1) / 2];
  int* low = first;
  int* high = last - 1;
  for (;;) {
    while (*low < pivot) ++low;
    while (*high > pivot) --high;
    if (low >= high) return high + 1;
    std::swap(*low++, *high--);
  }
}

template <class Way>
BENCH_OPAQUE void quicksort(int* first, int* last) {
  if (last - first < 2) return;
  int* const middle = partition(first, last);
  typename Way::group here;
  typename Way::template child<void> older(
      here, [](int* f, int* l) { quicksort<Way>(f, l); }, first, middle);
  quicksort<Way>(middle, last);
  keep_frame();
  here.join();
  older.get();
}

/// Children of a frame, as many as come up.
template <class Child, std::size_t Most>
class few {
 public:
  few() = default;
  few(const few&) = delete;
  few& operator=(const few&) = delete;
  ~few() { std::destroy(begin(), end()); }
  template <class... A>
  [[gnu::always_inline]] void add(A&&... arguments) {
    ::new (static_cast<void*>(end())) Child(std::forward<A>(arguments)...);
    ++count_;
  }
  Child* begin() { return reinterpret_cast<Child*>(bytes_); }
  Child* end() { return begin() + count_; }

 private:
  alignas(Child) unsigned char bytes_[Most * sizeof(Child)];
  std::size_t count_ = 0;
};

inline constexpr unsigned board = 8;

/// Ways to place a queen in each further row, where the columns and diagonals of these are taken.
template <class Way>
BENCH_OPAQUE long queens(unsigned columns, unsigned left, unsigned right) {
  constexpr unsigned all = (1u << board) - 1;
  if (columns == all) return 1;
  typename Way::group here;
  few<typename Way::template child<long>, board> rows;
  for (unsigned open = all & ~(columns | left | right); open != 0; open &= open - 1) {
    const unsigned place = open & -open;
    rows.add(
        here, [](unsigned c, unsigned l, unsigned r) { return queens<Way>(c, l, r); },
        columns | place, (left | place) << 1, (right | place) >> 1);
  }
  here.join();
  long found = 0;
  for (auto& row : rows) found += row.get();
  return found;
}

struct node {
  long value;
  const node* next;
};

template <class Way>
BENCH_OPAQUE long traverse(const node* at) {
  if (at->next == nullptr) return at->value;
  typename Way::group here;
  typename Way::template child<long> rest(
      here, [](const node* n) { return traverse<Way>(n); }, at->next);
  const long value = at->value;
  here.join();
  return kept(rest.get() + value);
}

/// The same, with what was found so far passed on: the last one knows the answer.
template <class Way>
BENCH_OPAQUE long forward(const node* at, long before) {
  const long sum = before + at->value;
  if (at->next == nullptr) return sum;
  return kept(forward<Way>(at->next, sum));
}

/// A fork that is a call: the same call tree with the forks removed.
struct plain {
  struct group {
    void join() {}
  };
  template <class T>
  struct child {
    T value;
    template <class F, class... A>
    [[gnu::always_inline]] child(group&, F f, A... arguments) : value(f(arguments...)) {}
    T get() { return value; }
  };
};
template <>
struct plain::child<void> {
  template <class F, class... A>
  [[gnu::always_inline]] child(group&, F f, A... arguments) {
    f(arguments...);
  }
  void get() {}
};

/// As one would write them in C++, for the compiler to do with what it likes.
namespace by_hand {
inline long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
inline long tak(long x, long y, long z) {
  return y >= x ? z : tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
}
inline void quicksort(int* first, int* last) {
  while (last - first > 1) {
    int* const middle = partition(first, last);
    quicksort(first, middle);
    first = middle;
  }
}
inline long queens(unsigned columns, unsigned left, unsigned right) {
  constexpr unsigned all = (1u << board) - 1;
  if (columns == all) return 1;
  long found = 0;
  for (unsigned open = all & ~(columns | left | right); open != 0; open &= open - 1) {
    const unsigned place = open & -open;
    found += queens(columns | place, (left | place) << 1, (right | place) >> 1);
  }
  return found;
}
inline long traverse(const node* at) {
  long sum = 0;
  for (; at != nullptr; at = at->next) sum += at->value;
  return sum;
}
}  // namespace by_hand

/// What the kernels work on, and what must come out.
class inputs {
 public:
  static constexpr std::size_t sorted = 10'000;
  static constexpr std::size_t listed = 128;

  inputs() : unsorted_(sorted), work_(sorted), list_(listed) {
    std::uint64_t state = 4;
    for (int& value : unsorted_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<int>(state >> 33);
    }
    for (std::size_t i = 0; i < listed; ++i) {
      list_[i] = {static_cast<long>(i), i + 1 < listed ? &list_[i + 1] : nullptr};
    }
  }

  template <class Sort>
  void sort(Sort how) {
    std::copy(unsorted_.begin(), unsorted_.end(), work_.begin());
    how(work_.data(), work_.data() + work_.size());
  }
  const node* list() const { return list_.data(); }

  /// Errors: std::runtime_error when the array is not what sorting it gives.
  void check_sorted() const {
    std::vector<int> right = unsorted_;
    std::sort(right.begin(), right.end());
    check("qsort", right == work_);
  }
  static void check(std::string_view kernel, bool is_right) {
    if (!is_right) throw std::runtime_error(std::string(kernel) + " came to a wrong result");
  }

 private:
  std::vector<int> unsorted_, work_;
  std::vector<node> list_;
};

/// Nanoseconds one run of the kernel takes, one figure a batch, after one that is not timed.
/// Errors: std::runtime_error when `check(result)` is false.
template <class Kernel, class Check>
std::vector<double> time_kernel(std::string_view name, const batch_plan& plan, Kernel kernel,
                                Check is_right) {
  inputs::check(name, is_right(kernel()));
  std::vector<double> nanoseconds;
  for (std::uint64_t repeat = 0; repeat < plan.repeats; ++repeat) {
    const std::uint64_t start = clock_ns();
    bool all_right = true;
    for (std::uint64_t i = 0; i < plan.iterations; ++i) all_right &= is_right(kernel());
    nanoseconds.push_back(static_cast<double>(clock_ns() - start) /
                          static_cast<double>(plan.iterations));
    inputs::check(name, all_right);
  }
  return nanoseconds;
}

inline long fib_of(long n) {
  long a = 0;
  for (long b = 1; n > 0; --n) a = std::exchange(b, a + b);
  return a;
}

/// A number the compiler does not know.
inline long opaque(long value) { return kept(value); }

/// The kernels by name: `fib` and `fib_both` of plan.bytes, `tak`, `qsort`, `queens`, `list`.
/// Nothing where there is none of that name.
template <class Fib, class FibBoth, class Tak, class Sort, class Queens, class List>
std::optional<std::vector<double>> time_one(std::string_view name, const batch_plan& plan, Fib fib,
                                            FibBoth fib_both, Tak tak, Sort sort, Queens queens,
                                            List list) {
  static inputs data;
  const long n = static_cast<long>(plan.bytes);
  const long right = fib_of(n);
  const auto equals = [](long expected) { return [expected](long r) { return r == expected; }; };
  if (name == "fib") return time_kernel(name, plan, [&] { return fib(opaque(n)); }, equals(right));
  if (name == "fib_both") {
    return time_kernel(name, plan, [&] { return fib_both(opaque(n)); }, equals(right));
  }
  if (name == "tak") {
    return time_kernel(name, plan, [&] { return tak(opaque(18), 12, 6); }, equals(7));
  }
  if (name == "qsort") {
    auto figures =
        time_kernel(name, plan, [&] { return data.sort(sort), 0; }, [](int) { return true; });
    data.check_sorted();
    return figures;
  }
  if (name == "queens") {
    return time_kernel(
        name, plan, [&] { return queens(static_cast<unsigned>(opaque(0)), 0u, 0u); }, equals(92));
  }
  if (name == "list" || name == "forward") {
    return time_kernel(
        name, plan, [&] { return list(data.list()); },
        equals(static_cast<long>(inputs::listed * (inputs::listed - 1) / 2)));
  }
  return std::nullopt;
}

/// All of them in one way.
template <class Way, class List>
std::optional<std::vector<double>> time_way(std::string_view name, const batch_plan& plan,
                                            List list) {
  return time_one(
      name, plan, [](long n) { return fib<Way>(n); }, [](long n) { return fib_both<Way>(n); },
      [](long x, long y, long z) { return tak<Way>(x, y, z); },
      [](int* f, int* l) { quicksort<Way>(f, l); },
      [](unsigned c, unsigned l, unsigned r) { return queens<Way>(c, l, r); }, list);
}
template <class Way>
std::optional<std::vector<double>> time_way(std::string_view name, const batch_plan& plan) {
  return time_way<Way>(name, plan, [](const node* first) { return traverse<Way>(first); });
}

}  // namespace bench::kernels
