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

/// Where code was when it asked for something: equal in all ranks, for they run one program.
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
/// Its constructor threw.
void forget_object(const void* object);

/// Ends the job when the object of this rank at `address` cannot be accessed so: it was destroyed,
/// there is none, or it has another type. `method`: the compiler's name of it; null when the object
/// is read or written as a whole.
void check_access(std::uint64_t address, object_kind as, const char* method, code_site site);

/// The same for a copy of `count` elements to or from memory of any rank. Parts of objects may be
/// copied as what they are. Never suspends: the owner of remote memory looks later, and knows what
/// was destroyed since.
void check_copy(std::uint64_t address, std::size_t count, object_kind element, code_site site);

/// True at the start of an object of this rank that was destroyed lately.
bool is_destroyed(std::uint64_t address);

/// Ends the job when there is no such object of this rank; it is destroyed from here on.
void begin_destroy(std::uint64_t address, std::size_t bytes, object_kind element, code_site site);
/// Its destructor has run: the memory is overwritten, and used again after some time only.
void end_destroy(std::uint64_t address, std::size_t alignment);

enum class watched_kind : std::uint8_t { non_blocking, mutex };
/// Something that must be over before the running fiber waits or migrates. It belongs to the frame
/// at `frame`; `code`: in the function that began it.
void watch(watched_kind kind, const void* what, std::uint64_t frame, std::uint64_t code);
void unwatch(watched_kind kind, const void* what);

}  // namespace sojourn::detail
