// SPDX-License-Identifier: Apache-2.0
// Checked mode as the templates see it: objects are recorded with their type, and each access and
// each destroy is compared with the record. Called only when checked() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <typeinfo>

#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

/// The place in the code that asked for something. It means the same on all ranks, because they run
/// one program.
struct code_site {
  std::uint64_t code;
  int rank;
};
inline code_site site_of(const void* return_address) {
  return {reinterpret_cast<std::uint64_t>(return_address), job.me};
}

struct object_kind {
  const std::type_info* type;  ///< Null when the program has no type information (-fno-rtti).
  std::size_t bytes;
};
template <class T>
object_kind kind_of_object() {
#ifdef __cpp_rtti
  return {&typeid(std::remove_cv_t<T>), sizeof(T)};
#else
  return {nullptr, sizeof(T)};
#endif
}

/// An object, or an array of them, of this rank begins to exist.
void record_object(const void* object, std::size_t bytes, object_kind element);
/// Takes the record back, because the object's constructor threw.
void forget_object(const void* object);

/// Ends the job when this rank has no object at `address`, or it was destroyed or has another type
/// than `as`. `method`: the compiler's name of the method; null when the object is read or written
/// as a whole.
void check_access(std::uint64_t address, object_kind as, const char* method, code_site site);

/// The same for a copy of `count` elements to or from memory of any rank. Parts of objects may be
/// copied, as elements of their own type. Never suspends: if the memory is another rank's, its
/// owner checks later, and knows what was destroyed since.
void check_copy(std::uint64_t address, std::size_t count, object_kind element, code_site site);

/// True when a recently destroyed object of this rank began at `address`.
bool is_destroyed(std::uint64_t address);

/// Ends the job when this rank has no such object; from now on the object counts as destroyed.
void begin_destroy(std::uint64_t address, std::size_t bytes, object_kind element, code_site site);
/// Called when the destructor has run: overwrites the memory, which is not used again for some
/// time.
void end_destroy(std::uint64_t address, std::size_t alignment);

enum class leaves_as : std::uint8_t { argument, result, copy, contribution };
inline constexpr int several_ranks = -1;
/// See check_leaving (leaving.hpp). `to`: a rank, or several_ranks.
void check_hidden(leaves_as what, int to, const void* values, std::size_t count, object_kind type);

enum class watched_kind : std::uint8_t { nonblocking, mutex };
/// Notes something that must be over before the running fiber waits or migrates. `frame`: the
/// address of the frame it belongs to; `code`: an address in the function that began it.
void watch(watched_kind kind, const void* what, std::uint64_t frame, std::uint64_t code);
void unwatch(watched_kind kind, const void* what);

}  // namespace sojourn::detail
