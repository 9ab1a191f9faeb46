// SPDX-License-Identifier: Apache-2.0
// Claims that a job's ranks check together. A claim that does not hold prints where, on which rank
// and with which values; the program then ends with status 1. A claim that hangs says so.
#pragma once

#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>

namespace check {

// Of this rank. A claim whose frames migrate counts where it fails.
inline int failures = 0;
inline char current[128] = "start";

/// Seconds a claim may take before it counts as hung; ctest's own limit lies above.
inline constexpr unsigned patience_seconds = 60;

/// Whether the system copies from one process to another, as Linux does and emulators do not. There
/// bulk data that is not shared goes in messages.
inline bool system_copies() {
  if (!sojourn::is_near(0) || !sojourn::is_near(sojourn::rank_count() - 1)) return false;
  const char* asked = std::getenv("SOJOURN_READ_MEMORY");
  if (asked != nullptr && std::strcmp(asked, "off") == 0) return false;
  char from = 1;
  char to = 0;
  iovec local{&to, 1};
  iovec remote{&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/// Messages that have arrived are left where they are for a while (SOJOURN_DELAY).
inline bool messages_are_delayed() {
  const char* seed = std::getenv("SOJOURN_DELAY");
  return seed != nullptr && *seed != '\0';
}

template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_enum_v<T>) {
    out << static_cast<long long>(value);
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << "(" << sizeof(T) << " bytes)";
  }
  return out.str();
}

[[gnu::noinline]] inline void fail(const char* file, int line, const char* what,
                                   const std::string& values) {
  ++failures;
  std::fprintf(stderr, "%s:%d: rank %d: claim `%s`: %s%s%s\n", file, line, sojourn::rank_me(),
               current, what, values.empty() ? "" : ": ", values.c_str());
}

template <class A, class B>
void equal(const A& a, const B& b, const char* what, const char* file, int line) {
  bool same;
  if constexpr (std::integral<A> && std::integral<B> && !std::same_as<A, bool> &&
                !std::same_as<B, bool> && !std::same_as<A, char> && !std::same_as<B, char>) {
    same = std::cmp_equal(a, b);
  } else {
    same = a == b;
  }
  if (!same) fail(file, line, what, show(a) + " and " + show(b));
}

namespace detail {
inline void give_up(int) {
  char text[256];
  int n = std::snprintf(text, sizeof text, "rank %d: claim `%s` does not end\n", sojourn::rank_me(),
                        current);
  if (n > 0) (void)!write(2, text, static_cast<std::size_t>(n));
  _exit(3);
}
}  // namespace detail

/// Runs `body` on every rank between two barriers. SOJOURN_TEST_ONLY=text runs only the claims
/// whose name has it: the way to look at one that fails.
template <class Body>
void claim(const char* name, Body body) {
  const char* only = std::getenv("SOJOURN_TEST_ONLY");
  if (only != nullptr && std::strstr(name, only) == nullptr) return;
  std::snprintf(current, sizeof current, "%s", name);
  struct sigaction action{};
  action.sa_handler = detail::give_up;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGALRM, &action, nullptr);
  alarm(patience_seconds);
  sojourn::barrier();
  try {
    body();
  } catch (const std::exception& e) {
    fail(name, 0, "an exception left the claim", e.what());
  }
  sojourn::barrier();
  alarm(0);
}

/// What the program's body returns.
inline int verdict() { return failures == 0 ? 0 : 1; }

}  // namespace check

/// Under the address sanitizer frames and memory are larger than the figures that hold otherwise.
inline constexpr bool sanitized = SOJOURN_ASAN != 0;

#define CHECK(condition) ((condition) ? void() : ::check::fail(__FILE__, __LINE__, #condition, ""))
#define CHECK_EQUAL(a, b) ::check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
/// `expression` throws an exception of exactly type `E`; evaluates to nothing.
#define CHECK_THROWS(E, expression)                                                           \
  do {                                                                                        \
    try {                                                                                     \
      (void)(expression);                                                                     \
      ::check::fail(__FILE__, __LINE__, #expression " throws " #E, "nothing was thrown");     \
    } catch (const E& thrown_) {                                                              \
      if (typeid(thrown_) != typeid(E))                                                       \
        ::check::fail(__FILE__, __LINE__, #expression " throws " #E, typeid(thrown_).name()); \
    } catch (...) {                                                                           \
      ::check::fail(__FILE__, __LINE__, #expression " throws " #E, "something else");         \
    }                                                                                         \
  } while (false)
