// SPDX-License-Identifier: Apache-2.0
// What Sojourn throws, and how exceptions travel between ranks.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

namespace sojourn {

/// The world failed, or a request cannot be carried out; `what()` says which, where and what to do.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The rank that was called runs another program than the caller, and only ranks of one program can
/// do for each other what was asked; what() names both programs. (docs/mpmd.md)
struct different_program : error {
  using error::error;
};

/// A call by a name that the rank's program does not export, or exports with another signature;
/// what() has both signatures. (docs/mpmd.md)
struct not_exported : error {
  using error::error;
};

/// A continuation was destroyed without an answer: the fiber that waits for it gets this error. Or
/// it was called a second time. what() names the function that made it.
struct continuation_error : error {
  using error::error;
};

/// A dist_object is used on a rank where it was destroyed before, or where its constructor threw.
/// (sojourn/dist_object.hpp)
struct dist_object_destroyed : error {
  using error::error;
};

/// A replicated object is used after it was destroyed. (sojourn/replicated.hpp)
struct replicated_destroyed : error {
  using error::error;
};

/// A rank has ended in the middle of the job, and what was waited for needs it: the answer of a
/// call, a thread or object there, a collective operation, a finish. The job is lost: the launcher
/// ends it a moment later (`sojourn run --grace`). Whoever catches this has that long to save what
/// it can; where nobody does, the rank ends without a report, because the launcher reports the rank
/// that was lost first.
class rank_lost : public error {
 public:
  rank_lost(int rank, const std::string& what) : error(what), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

/// An exception of a type that is not registered, thrown on another rank. Standard exceptions and
/// types named in SOJOURN_EXCEPTION arrive as themselves instead; between programs, only types that
/// both programs name there do.
class remote_exception : public error {
 public:
  remote_exception(std::string type_name, const std::string& what, int rank)
      : error(what), type_name_(std::move(type_name)), rank_(rank) {}
  /// Demangled name of the type that was thrown.
  const std::string& type_name() const { return type_name_; }
  /// Rank on which it was thrown.
  int rank() const { return rank_; }

 private:
  std::string type_name_;
  int rank_;
};

namespace detail {

/// How exceptions of one type become bytes and exceptions again.
struct exception_kind {
  const std::type_info* type;
  std::size_t bytes;  ///< How many bytes an exception becomes; 0: their number varies.
  /// Writes at most `room` bytes of the exception in flight, returns how many.
  std::size_t (*encode)(const void* exception, char* bytes, std::size_t room);
  void (*rethrow)(const char* bytes, std::size_t size);
};

/// Writes `text` to the `room` bytes at `to`, without a NUL, and returns how many bytes it wrote.
/// Where the text is longer, "..." stands in place of its end, after a whole character (UTF-8).
std::size_t put_text(char* to, std::size_t room, std::string_view text);

/// Called before main only.
bool register_exception(const exception_kind& kind);

template <class E>
std::size_t encode_exception(const void* exception, char* bytes, std::size_t room) {
  const E& e = *static_cast<const E*>(exception);
  if constexpr (std::is_trivially_copyable_v<E>) {
    static_assert(sizeof(E) <= 512, "sojourn: an exception that travels holds at most 512 bytes");
    __builtin_memcpy(bytes, &e, sizeof(E));
    return sizeof(E);
  } else {
    return put_text(bytes, room, e.what());
  }
}

template <class E>
[[noreturn]] void rethrow_as(const char* bytes, std::size_t size) {
  if constexpr (std::is_trivially_copyable_v<E>) {
    alignas(E) unsigned char copy[sizeof(E)];
    __builtin_memcpy(copy, bytes, sizeof(E));
    throw *reinterpret_cast<E*>(copy);
  } else {
    throw E(std::string(bytes, size));
  }
}

template <class E>
constexpr exception_kind kind_of() {
  static_assert(std::is_trivially_copyable_v<E> || std::is_constructible_v<E, std::string>,
                "sojourn: an exception travels when it is trivially copyable or constructible "
                "from the string that its what() returns");
  return {&typeid(E), std::is_trivially_copyable_v<E> ? sizeof(E) : 0, &encode_exception<E>,
          &rethrow_as<E>};
}

}  // namespace detail
}  // namespace sojourn

/// Lets exceptions of type `T` arrive as themselves when thrown on another rank. At namespace
/// scope, in one source file. `T` is trivially copyable, or constructible from its what(), of which
/// 640 bytes arrive: in place of the end of a longer one stands "...".
#define SOJOURN_EXCEPTION(T)                                                         \
  [[maybe_unused]] static const bool SOJOURN_JOIN(sojourn_exception_, __COUNTER__) = \
      ::sojourn::detail::register_exception(::sojourn::detail::kind_of<T>())
#define SOJOURN_JOIN(a, b) SOJOURN_JOIN_AGAIN(a, b)
#define SOJOURN_JOIN_AGAIN(a, b) a##b
