// SPDX-License-Identifier: Apache-2.0
// A fork is a call until its child waits, and is found then by the tables of the C++ runtime
// (src/fiber/boundary.hpp): whatever it returns and is given, whatever its caller keeps in
// registers, and whatever lies between the fork and where the child waits.
#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "check.hpp"

using namespace sojourn;

namespace {

int global = 7;

/// Waits, or not; then what it was given.
template <class T>
T given(T value, bool waits) {
  if (waits) yield();
  return value;
}
template <class T>
void comes_back(const T& value) {
  for (const bool waits : {false, true}) {
    auto child = fork(given<T>, value, waits);
    CHECK(child.get() == value);
    auto capturing = fork([&] { return given<T>(value, waits); });
    CHECK(capturing.get() == value);
  }
}

enum class colour : std::uint8_t { red, green };
struct pair_of_words {
  std::uint64_t a, b;
  friend bool operator==(pair_of_words, pair_of_words) = default;
};
struct many_words {
  std::array<std::uint64_t, 9> words;
  friend bool operator==(const many_words&, const many_words&) = default;
};

void results_of_every_kind_come_back() {
  comes_back(true);
  comes_back('x');
  comes_back<std::int8_t>(-5);
  comes_back<std::int16_t>(-512);
  comes_back<std::uint16_t>(65000);
  comes_back(-70'000);
  comes_back(0xfedcba9876543210u);
  comes_back(colour::green);
  comes_back(2.5F);
  comes_back(-1e300);
  comes_back(3.25L);
  comes_back(&global);
  comes_back(pair_of_words{1, 2});
  comes_back(many_words{{1, 2, 3, 4, 5, 6, 7, 8, 9}});
  comes_back(std::string("longer than what a string has room for in itself"));
  for (const bool waits : {false, true}) {
    int called = 0;
    auto nothing = fork([&] {
      if (waits) yield();
      ++called;
    });
    nothing.get();
    CHECK_EQUAL(called, 1);
  }
}

long six(long a, int b, short c, bool d, char e, unsigned long f) {
  yield();
  return a + b + c + static_cast<long>(d) + e + static_cast<long>(f);
}
long seven(long a, long b, long c, long d, long e, long f, long g) {
  yield();
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g;
}
double mixed(double a, const std::string& b, pair_of_words c, float d) {
  yield();
  return a + static_cast<double>(b.size()) + static_cast<double>(c.a + c.b) + d;
}
long unstoppable(long x) noexcept {
  yield();
  return x + 1;
}

void arguments_of_every_kind_arrive() {
  CHECK_EQUAL(fork(six, 1L, 2, short{3}, true, char{5}, 6ul).get(), 18);
  CHECK_EQUAL(fork(seven, 1L, 2L, 3L, 4L, 5L, 6L, 7L).get(), 140);
  CHECK_EQUAL(fork(mixed, 0.5, std::string(40, 'x'), pair_of_words{1, 2}, 0.25F).get(), 43.75);
  CHECK_EQUAL(fork(unstoppable, 1L).get(), 2);
  CHECK_EQUAL(fork(
                  [](long a, long b) {
                    yield();
                    return a * b;
                  },
                  6L, 7L)
                  .get(),
              42);
}

template <std::size_t Bytes>
struct some_bytes {
  std::array<std::uint8_t, Bytes> all;
  long sum() const { return std::accumulate(all.begin(), all.end(), 0L); }
};
struct [[gnu::packed]] packed {
  char first;
  double second;
  short third;
};

[[gnu::noinline]] std::uint64_t last_of(many_words passed_in_memory) {
  asm volatile("" : : "r"(&passed_in_memory) : "memory");
  return passed_in_memory.words.back();
}
/// The child waits, and its caller overwrites the stack where arguments of calls lie.
template <class F, class... A>
[[gnu::noinline]] long sum_after_caller_went_on(F fn, A... arguments) {
  auto child = fork(fn, arguments...);
  CHECK_EQUAL(last_of({{1, 1, 1, 1, 1, 1, 1, 1, 1}}), 1u);
  return child.get();
}
template <std::size_t Bytes>
void bytes_arrive() {
  some_bytes<Bytes> value{};
  std::iota(value.all.begin(), value.all.end(), std::uint8_t{200});
  const auto as_argument = [](some_bytes<Bytes> v, float f, short s) {
    yield();
    return v.sum() + static_cast<long>(f) + s;
  };
  CHECK_EQUAL(sum_after_caller_went_on(as_argument, value, 1024.0F, short{-3}), value.sum() + 1021);
  const auto as_capture = [value](double d) {
    yield();
    return value.sum() + static_cast<long>(d);
  };
  CHECK_EQUAL(sum_after_caller_went_on(as_capture, 4096.0), value.sum() + 4096);
}
template <std::size_t... Bytes>
void bytes_of_all_sizes_arrive(std::index_sequence<Bytes...>) {
  (bytes_arrive<Bytes>(), ...);
}
void arguments_of_every_size_arrive() {
#ifdef SOJOURN_TEST_FULL
  [&]<std::size_t... Less>(std::index_sequence<Less...>) {
    bytes_of_all_sizes_arrive(std::index_sequence<(Less + 1)...>());
  }(std::make_index_sequence<50>());
#else  // Each size is compiled for a second: those around whole words and what goes in registers.
  bytes_of_all_sizes_arrive(
      std::index_sequence<1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 50>());
#endif
  const auto unaligned = [](packed p, bool b) {
    yield();
    return static_cast<long>(p.first + p.second + p.third) + (b ? 1 : 0);
  };
  CHECK_EQUAL(sum_after_caller_went_on(unaligned, packed{1, 2.0, -4000}, true), -3996);
}

/// Its address is another's.
struct elsewhere {
  long value;
  static long nobodys;
  long* operator&() { return &nobodys; }              // NOLINT(google-runtime-operator)
  const long* operator&() const { return &nobodys; }  // NOLINT(google-runtime-operator)
};
long elsewhere::nobodys = -1;

void unusual_arguments_arrive() {
  volatile int changes = 6;
  const auto plus_one = [](int v) {
    yield();
    return v + 1;
  };
  CHECK_EQUAL(fork(plus_one, changes).get(), 7);
  const auto value_of = [](elsewhere e) {
    yield();
    return e.value;
  };
  CHECK_EQUAL(fork(value_of, elsewhere{8}).get(), 8);
}

/// Counts those of its kind that live.
class counted {
 public:
  explicit counted(int value) : value_(value) { ++alive; }
  counted(const counted& other) : value_(other.value_) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
  int value() const { return value_; }
  static int alive;

 private:
  int value_;
};
int counted::alive = 0;

void results_are_destroyed() {
  for (const bool waits : {false, true}) {
    for (const bool is_read : {false, true}) {
      auto child = fork([waits] {
        if (waits) yield();
        return counted(3);
      });
      if (is_read) CHECK_EQUAL(std::move(child).get().value(), 3);
      child = {};
      yield();  // the child may have to end first
      yield();
      CHECK_EQUAL(counted::alive, 0);
      CHECK_EQUAL(activate([waits] {
                    if (waits) yield();
                    return counted(4);
                  }).value(),
                  4);
      CHECK_EQUAL(counted::alive, 0);
    }
  }
}

/// More values that live across the fork than registers that a callee preserves.
[[gnu::noinline]] long many_live(long a, long b, long c, long d, long e) {
  const long f = a * b;
  const long g = c * d;
  const long h = d * e;
  auto child = fork(given<long>, e, true);
  const long here = a + 2 * b + 3 * c + 4 * d + 5 * f + 7 * g + 11 * h;
  return here + child.get();
}
void a_caller_goes_on_with_its_registers() {
  for (long i = 0; i < 100; ++i) {
    const long a = i, b = i + 1, c = i + 2, d = i + 3, e = i + 4;
    CHECK_EQUAL(many_live(a, b, c, d, e),
                a + 2 * b + 3 * c + 4 * d + 5 * a * b + 7 * c * d + 11 * d * e + e);
  }
}

/// The frame's end is known to itself alone.
[[gnu::noinline]] long on_a_realigned_stack(long n) {
  alignas(128) volatile long values[16];
  for (long i = 0; i < 16; ++i) values[i] = n * i;
  auto child = fork(given<long>, n, true);
  auto* room = static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(n)));
  for (long i = 0; i < n; ++i) room[i] = static_cast<char>(i);
  auto other = fork(given<long>, n + 1, true);
  long sum = 0;
  for (long i = 0; i < 16; ++i) sum += values[i];
  for (long i = 0; i < n; ++i) sum += room[i] == static_cast<char>(i) ? 0 : 1;
  return sum + child.get() + other.get();
}
[[gnu::noinline]] long deep(long depth) {
  if (depth == 0) {
    yield();
    return 0;
  }
  return deep(depth - 1) + 1;
}
void frames_of_every_kind_are_left() {
  for (long n = 1; n < 40; ++n) CHECK_EQUAL(on_a_realigned_stack(n), n * 120 + n + n + 1);
  CHECK_EQUAL(fork(deep, 1000L).get(), 1000);
}

#if defined(__x86_64__)
extern "C" long sojourn_test_without_tables(long (*fn)(long), long argument);
asm(R"(
    .pushsection .text
    .type sojourn_test_without_tables, @function
sojourn_test_without_tables:
    sub $8, %rsp
    mov %rdi, %rax
    mov %rsi, %rdi
    call *%rax
    add $8, %rsp
    ret
    .size sojourn_test_without_tables, . - sojourn_test_without_tables
    .popsection
)");
long below_no_tables(long x) {
  return sojourn_test_without_tables(
      [](long y) {
        yield();
        return y + 1;
      },
      x);
}
/// It is right, and does not overlap: the child waits with its caller.
void a_child_below_code_without_tables_waits_with_its_caller() {
  const counters before = counters_now();
  auto child = fork(below_no_tables, 1L);
  const bool was_cut = (counters_now() - before).cuts != 0;
  CHECK_EQUAL(child.get(), 2);
  // In checked mode, and on the heap, forks have marks in frames or stacks of their own.
  if ((counters_now() - before).forks_on_heap == 0 && !detail::checked()) {
    CHECK(!was_cut || rank_count() > 1);
  }
}
#else
void a_child_below_code_without_tables_waits_with_its_caller() {}
#endif

/// Waits while it becomes a number.
struct late_number {
  long value;
  operator long() const {  // NOLINT(google-explicit-constructor)
    yield();
    return value;
  }
};
long one_more(long x) { return x + 1; }
void an_argument_may_wait_while_it_is_converted() {
  CHECK_EQUAL(fork(one_more, late_number{6}).get(), 7);
}

/// The call that began it is over when it answers. A fork has come and gone before it waits.
void answers_late(continuation<int> answer) {
  CHECK(fork(given<bool>, true, false).get());
  yield();
  answer(42);
}
void a_child_may_answer_in_place_of_its_caller() {
  const int answer = call_cc([](continuation<int> c) { (void)fork(answers_late, std::move(c)); });
  CHECK_EQUAL(answer, 42);
}

/// Computations that want to move to another rank, as far as they may.
struct cell {
  long value = 1;
  long read() { return value; }
};
long reads_there(global_ptr<cell> there) { return there.call<&cell::read>(via::migrate.all()); }
/// Its methods run where it is, whatever is forked in them and moves.
struct home {
  int rank = rank_me();
  global_ptr<cell> there;

  bool is_here() const { return rank_me() == rank; }
  bool forks() {
    auto child = fork(reads_there, there);
    const bool stayed = is_here();
    const bool stays = reads_there(there) == 1 && is_here();
    return child.get() == 1 && stayed && stays && is_here();
  }
  bool forks_without_exceptions() noexcept { return forks(); }
  bool forks_twice() {
    auto child = fork(reads_there, there);
    return forks() && child.get() == 1 && is_here();
  }
  bool waits() {
    try {
      return reads_there(there) == 1 && is_here();
    } catch (...) {
      return false;
    }
  }
};
template <auto Method>
bool calls_here(global_ptr<home> h) {
  return h.call<Method>();
}
template <auto Method>
bool calls_in_a_call(global_ptr<home> h) {
  return fork(calls_here<Method>, h).get() && h.call<Method>();
}
template <auto Method>
void stays_with_its_object(global_ptr<home> h) {
  CHECK(h.call<Method>());
  CHECK(calls_in_a_call<Method>(h));
  CHECK(fork(calls_in_a_call<Method>, h).get());
  CHECK(activate(calls_in_a_call<Method>, h));
}
void methods_stay_with_their_object_whatever_they_fork() {
  const int next = (rank_me() + 1) % rank_count();
  const global_ptr<home> h = make<home>(rank_me());
  h.local()->there = make<cell>(next);
  stays_with_its_object<&home::forks>(h);
  stays_with_its_object<&home::forks_without_exceptions>(h);
  stays_with_its_object<&home::forks_twice>(h);
  stays_with_its_object<&home::waits>(h);
  // And what is in no method any more may go.
  const counters before = counters_now();
  (void)fork([](global_ptr<cell> c) { return activate(reads_there, c); }, h.local()->there).get();
  if (rank_count() > 1) CHECK((counters_now() - before).migrations_refused == 0);
  destroy(h.local()->there);
  destroy(h);
  barrier();
}

long fails(long x, bool waits) {
  if (waits) yield();
  if (x > 0) throw std::out_of_range(std::to_string(x));
  return 0;
}
void exceptions_come_out_of_get_before_and_after_a_wait() {
  for (const bool waits : {false, true}) {
    auto child = fork(fails, 5L, waits);
    try {
      child.get();
      CHECK(false);
    } catch (const std::out_of_range& e) {
      CHECK_EQUAL(std::string(e.what()), "5");
    }
  }
}

/// Of its own, whatever its caller handles.
void a_child_sees_no_exception_of_its_callers() {
  for (const bool waits : {false, true}) {
    try {
      throw std::runtime_error("the caller's");
    } catch (const std::runtime_error& e) {
      auto child = fork([&] {
        const bool none = std::current_exception() == nullptr;
        if (waits) yield();
        return none && std::current_exception() == nullptr;
      });
      CHECK(child.get());
      CHECK_EQUAL(std::string(e.what()), "the caller's");
    }
  }
}

std::uint64_t youngest_mark_in_a_frame() {
  return reinterpret_cast<std::uint64_t>(detail::running.youngest);
}
struct onlooker {
  std::uint64_t sees() { return youngest_mark_in_a_frame(); }
};
/// Children, and methods begun by async, run under the marks that their caller runs under.
void a_fork_leaves_no_mark_in_its_callers_frame() {
  // It does without tables, in checked mode, and, at times, where another rank may take frames
  // over; and a child on the heap has no caller.
  const bool on_heap = (detail::counts.at_forks & detail::at_fork::on_heap) != 0;
  if (SOJOURN_FORKS_BY_TABLES == 0 || detail::checked() || rank_count() > 1 || on_heap) return;
  const global_ptr<onlooker> here = make<onlooker>(rank_me());
  const auto check_under = [&](std::uint64_t marks) {
    const counters before = counters_now();
    CHECK_EQUAL(fork(youngest_mark_in_a_frame).get(), marks);
    CHECK_EQUAL(fork([](long) { return youngest_mark_in_a_frame(); }, 1L).get(), marks);
    CHECK_EQUAL(fork([&] { return here.local()->sees(); }).get(), marks);
    CHECK_EQUAL(here.async<&onlooker::sees>().get(), marks);
    CHECK_EQUAL((counters_now() - before).forks, 4u);
  };
  check_under(youngest_mark_in_a_frame());
  activate([&] { check_under(youngest_mark_in_a_frame()); });
  // What does leave a mark there: an activation, and a fork while an exception is handled.
  const std::uint64_t mine = youngest_mark_in_a_frame();
  CHECK(activate(youngest_mark_in_a_frame) != mine);
  try {
    throw std::runtime_error("the caller's");
  } catch (const std::runtime_error&) {
    CHECK(fork(youngest_mark_in_a_frame).get() != mine);
  }
  destroy(here);
}

void a_caller_keeps_its_rounding() {
  auto child = fork([] {
    std::fesetround(FE_UPWARD);
    yield();
    const int mode = std::fegetround();
    std::fesetround(FE_TONEAREST);
    return mode;
  });
  CHECK_EQUAL(std::fegetround(), FE_TONEAREST);
  CHECK_EQUAL(child.get(), FE_UPWARD);
  CHECK_EQUAL(std::fegetround(), FE_TONEAREST);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("results of every kind come back", results_of_every_kind_come_back);
    check::claim("arguments of every kind arrive", arguments_of_every_kind_arrive);
    check::claim("arguments of every size arrive", arguments_of_every_size_arrive);
    check::claim("unusual arguments arrive", unusual_arguments_arrive);
    check::claim("results are destroyed", results_are_destroyed);
    check::claim("a caller goes on with its registers", a_caller_goes_on_with_its_registers);
    check::claim("frames of every kind are left", frames_of_every_kind_are_left);
    check::claim("a child below code without tables waits with its caller",
                 a_child_below_code_without_tables_waits_with_its_caller);
    check::claim("an argument may wait while it is converted",
                 an_argument_may_wait_while_it_is_converted);
    check::claim("a child may answer in place of its caller",
                 a_child_may_answer_in_place_of_its_caller);
    check::claim("methods stay with their object whatever they fork",
                 methods_stay_with_their_object_whatever_they_fork);
    check::claim("exceptions come out of get before and after a wait",
                 exceptions_come_out_of_get_before_and_after_a_wait);
    check::claim("a child sees no exception of its caller's",
                 a_child_sees_no_exception_of_its_callers);
    check::claim("a fork leaves no mark in its caller's frame",
                 a_fork_leaves_no_mark_in_its_callers_frame);
    check::claim("a caller keeps its rounding", a_caller_keeps_its_rounding);
    return check::verdict();
  });
}
