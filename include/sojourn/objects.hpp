// SPDX-License-Identifier: Apache-2.0
// Making objects anywhere in the job, destroying them, and reaching their bytes without a method.
//
// An object on the last rank (docs/examples/account.cpp):
//
//     auto a = make<account>(rank_count() - 1, 500L);  // on the last rank
//     a.call<&account::deposit>(via::rpc, 250L);
//     std::printf("balance %ld\n", a.call<&account::balance>(via::rpc));
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "sojourn/detail/leaving.hpp"
#include "sojourn/detail/moves.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

namespace detail {

/// Memory from this rank's part of the global heap. Throws std::bad_alloc.
void* heap_allocate(std::size_t bytes, std::size_t alignment);
void heap_free(void* object, std::size_t bytes, std::size_t alignment);

/// Copies between this rank's memory and any rank's heap: one copy where the heap is shared or the
/// system lets one rank read another's memory, otherwise through messages.
void bulk_get(std::uint64_t from, void* to, std::size_t bytes);
void bulk_put(const void* from, std::uint64_t to, std::size_t bytes);

/// Plain loads and stores reach these bytes.
[[gnu::always_inline]] inline bool in_reach(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t offset = address - job.reach;
  return offset < job.reach_bytes && bytes <= job.reach_bytes - offset;
}

/// The object, which is on this rank and does not move any more.
template <class T>
T* object_at(global_ptr<T> p) {
  return reinterpret_cast<T*>(p.address());
}

template <class T, class... A>
global_ptr<T> make_here(A... arguments) {
  void* room = heap_allocate(sizeof(T), alignof(T));
  if (checked()) [[unlikely]]
    record_object(room, sizeof(T), kind_of_object<T>());
  try {
    const T* const made = ::new (room) T(std::move(arguments)...);
    return global_ptr<T>::at(reinterpret_cast<std::uint64_t>(made));
  } catch (...) {
    if (checked()) forget_object(room);
    heap_free(room, sizeof(T), alignof(T));
    throw;
  }
}
template <class T>
void destroy_here(global_ptr<T> p) {
  if (job.has_copied) give_up_copies(p.address(), sizeof(T));
  object_at(p)->~T();
  heap_free(const_cast<std::remove_cv_t<T>*>(object_at(p)), sizeof(T), alignof(T));
}
/// In checked mode: names a second destroy and a wrong type, and keeps the memory for a while.
template <class T>
void destroy_checked_here(global_ptr<T> p, std::size_t bytes, code_site site) {
  if (job.has_copied) give_up_copies(p.address(), bytes);
  begin_destroy(p.address(), bytes, kind_of_object<T>(), site);
  for (std::size_t i = bytes / sizeof(T); i > 0; --i) object_at(p)[i - 1].~T();
  end_destroy(p.address(), alignof(T));
}
/// Not inlined, so that its return address is in the function that destroys.
template <class T>
[[gnu::noinline]] void destroy_checked(global_ptr<T> p, std::size_t bytes) {
  code_site site = site_of(__builtin_return_address(0));
  if (p.is_local()) return destroy_checked_here(p, bytes, site);
  rpc(
      p.home(), [](global_ptr<T> q, std::size_t n, code_site s) { destroy_checked_here(q, n, s); },
      p, bytes, site)
      .get();
}
/// Room for `count` elements, whose lifetime begins when they are written.
template <class T>
global_ptr<T> array_memory_here(std::size_t count) {
  if (count > (std::size_t{1} << 48) / sizeof(T)) throw std::bad_array_new_length();
  std::size_t bytes = count * sizeof(T);
  T* first = static_cast<T*>(heap_allocate(bytes == 0 ? 1 : bytes, alignof(T)));
  if (checked()) [[unlikely]]
    record_object(first, bytes == 0 ? 1 : bytes, kind_of_object<T>());
  return global_ptr<T>::at(reinterpret_cast<std::uint64_t>(first));
}
template <class T>
global_ptr<T> make_array_here(std::size_t count) {
  const global_ptr<T> array = array_memory_here<T>(count);
  T* first = object_at(array);
  std::size_t made = 0;
  try {
    for (; made < count; ++made) ::new (static_cast<void*>(first + made)) T();
  } catch (...) {
    while (made > 0) first[--made].~T();
    if (checked()) forget_object(first);
    const std::size_t bytes = count * sizeof(T);
    heap_free(first, bytes == 0 ? 1 : bytes, alignof(T));
    throw;
  }
  return array;
}
template <class T>
void destroy_array_here(global_ptr<T> p, std::size_t count) {
  if (job.has_copied) give_up_copies(p.address(), count * sizeof(T));
  for (std::size_t i = count; i > 0; --i) object_at(p)[i - 1].~T();
  std::size_t bytes = count * sizeof(T);
  heap_free(const_cast<std::remove_cv_t<T>*>(object_at(p)), bytes == 0 ? 1 : bytes, alignof(T));
}

/// In checked mode: compares a copy with what the owner knows of its objects. Not inlined, so that
/// its return address is in the function that copies.
template <class T>
[[gnu::noinline]] void check_copy_of(global_ptr<T> p, std::size_t count) {
  check_copy(p.address(), count, kind_of_object<T>(), site_of(__builtin_return_address(0)));
  asm volatile("");  // no tail call
}
template <class T>
[[gnu::always_inline]] inline void before_copy(global_ptr<T> p, std::size_t count) {
  (void)&notes_raw_pointers<T>;  // what is copied like this does not move
  if (checked()) [[unlikely]] {
    check_copy_of(p, count);
    asm volatile("");  // no tail call: it returns to here
  }
}

}  // namespace detail

/// Constructs a T from copies of the arguments in the heap of `rank`. What the constructor throws
/// is thrown here. Suspends: when remote. Errors: std::bad_alloc.
template <class T, class... A>
global_ptr<T> make(rank_t rank, A... arguments) {
  static_assert(std::is_constructible_v<T, A...>,
                "sojourn: T cannot be constructed from these arguments");
  if (rank == rank_me()) return detail::make_here<T, A...>(std::move(arguments)...);
  return rpc(
             rank, [](A... a) { return detail::make_here<T, A...>(std::move(a)...); },
             std::move(arguments)...)
      .get();
}

/// Destroys an object that `make` made; null is allowed. Suspends: when remote.
template <class T>
[[gnu::always_inline]] inline void destroy(global_ptr<T> p) {
  if (!p) return;
  if (detail::checked()) [[unlikely]] {
    detail::destroy_checked(p, sizeof(T));
    asm volatile("");  // no tail call: it returns to here
    return;
  }
  if (p.is_local()) return detail::destroy_here(p);
  rpc(p.home(), [](global_ptr<T> q) { detail::destroy_here(q); }, p).get();
}

/// Makes `count` value-initialised elements in the heap of `rank`. Suspends: when remote. Errors:
/// std::bad_alloc; what a constructor throws.
template <class T>
global_ptr<T> make_array(rank_t rank, std::size_t count) {
  if (rank == rank_me()) return detail::make_array_here<T>(count);
  return rpc(rank, [](std::size_t n) { return detail::make_array_here<T>(n); }, count).get();
}

/// Keeps the object on the rank where it is, whoever fetches it (via::fetch), until unfix(). It
/// goes home all the same when it is destroyed, and when a method of a whole that it is a part of,
/// or of a part of it, is called; then it is not fixed any more. Suspends. Errors: rank_lost.
template <class T>
void fix(global_ptr<T> p) {
  detail::fix_object(p.address(), true);
}
template <class T>
void unfix(global_ptr<T> p) {
  detail::fix_object(p.address(), false);
}

/// From now on `object` follows `to`: whenever that one has been fetched to a rank (via::fetch),
/// the runtime fetches `object` there, too, in the background, and what is attached to it in turn,
/// up to 256 objects. One that is fixed, or in which a method is suspended, stays where it is. It
/// does not follow when `to` is only cached; and `to` does not follow `object`. The end of either
/// object detaches them. Suspends. Errors: rank_lost; sojourn::error when objects of these types do
/// not move. Source: the attached variables of Emerald (Jul et al., 1988).
template <class T, class U>
void attach(global_ptr<T> to, global_ptr<U> object) {
  using leader = std::remove_const_t<T>;
  using follower = std::remove_const_t<U>;
  static_assert(detail::can_move<leader> && detail::can_move<follower>,
                "sojourn: attach: objects of both types must be able to move (docs/policies.md)");
  if (detail::never_moves<leader>(nullptr)) detail::refuse_to_attach(typeid(leader).name());
  if (detail::never_moves<follower>(nullptr)) detail::refuse_to_attach(typeid(follower).name());
  detail::attach_objects(to.address(), object.address(), detail::shape_of<follower>());
}
/// Ends what attach() has begun. Suspends. Errors: rank_lost.
template <class T, class U>
void detach(global_ptr<T> to, global_ptr<U> object) {
  detail::detach_objects(to.address(), object.address());
}

/// Tells `make_array` that the elements need no value, because the caller writes each before it is
/// read.
struct uncleared_t {};
inline constexpr uncleared_t uncleared;

/// The same, but the values of the elements are undefined. Suspends: when remote.
template <class T>
global_ptr<T> make_array(rank_t rank, std::size_t count, uncleared_t) {
  static_assert(std::is_trivially_default_constructible_v<T>,
                "only elements whose constructor does nothing can be left without a value");
  if (rank == rank_me()) return detail::array_memory_here<T>(count);
  return rpc(rank, [](std::size_t n) { return detail::array_memory_here<T>(n); }, count).get();
}

/// Destroys an array that `make_array` made with this `count`; null is allowed. Suspends: when
/// remote.
template <class T>
[[gnu::always_inline]] inline void destroy_array(global_ptr<T> p, std::size_t count) {
  if (!p) return;
  if (detail::checked()) [[unlikely]] {
    detail::destroy_checked(p, count * sizeof(T));
    asm volatile("");
    return;
  }
  if (p.is_local()) return detail::destroy_array_here(p, count);
  rpc(
      p.home(), [](global_ptr<T> q, std::size_t n) { detail::destroy_array_here(q, n); }, p, count)
      .get();
}

/// Copies elements from any rank's heap to this rank's memory, one-sided: no method runs at the
/// owner. It races with a method that uses the same words at the same time.
/// Requires: the elements lie in one object or array. Suspends: when the heap is not shared.
template <class T>
[[gnu::always_inline]] inline void get(global_ptr<const T> from, std::span<T> to) {
  static_assert(travels<T>, "sojourn: the elements of a get must travel");
  detail::before_copy(from, to.size());
  detail::bulk_get(from.address(), to.data(), to.size_bytes());
}
template <class T>
[[gnu::always_inline]] inline void get(global_ptr<T> from, std::span<T> to) {
  get(global_ptr<const T>(from), to);
}
/// The same, from this rank's memory to any rank's heap. When it returns, the bytes are there.
template <class T>
[[gnu::always_inline]] inline void put(std::span<const T> from, global_ptr<T> to) {
  static_assert(travels<T>, "sojourn: the elements of a put must travel");
  detail::before_copy(to, from.size());
  detail::check_leaving(detail::leaves_as::copy, to.home(), from.data(), from.size());
  detail::bulk_put(from.data(), to.address(), from.size_bytes());
}
template <class T>
[[gnu::always_inline]] inline void put(std::span<T> from, global_ptr<T> to) {
  put(std::span<const T>(from), to);
}

/// get and put of one element. Suspend: when the heap is not shared.
template <class T>
[[gnu::always_inline]] inline std::remove_const_t<T> load(global_ptr<T> from) {
  using value = std::remove_const_t<T>;
  static_assert(travels<value>, "sojourn: what is loaded must travel");
  detail::before_copy(global_ptr<const value>(from), 1);
  detail::room<value> r;
  if (detail::in_reach(from.address(), sizeof(value))) [[likely]] {
    std::memcpy(static_cast<void*>(&r.value), reinterpret_cast<const void*>(from.address()),
                sizeof(value));
    detail::counts.bulk_bytes += sizeof(value);
    detail::counts.bulk_copies += sizeof(value);
  } else {
    detail::bulk_get(from.address(), &r.value, sizeof(value));
  }
  return r.value;
}
template <class T>
[[gnu::always_inline]] inline void store(global_ptr<T> to, const std::type_identity_t<T>& value) {
  static_assert(travels<T>, "sojourn: what is stored must travel");
  detail::before_copy(to, 1);
  detail::check_leaving(detail::leaves_as::copy, to.home(), &value);
  if (detail::in_reach(to.address(), sizeof(T))) [[likely]] {
    std::memcpy(reinterpret_cast<void*>(to.address()), &value, sizeof(T));
    detail::counts.bulk_bytes += sizeof(T);
    detail::counts.bulk_copies += sizeof(T);
  } else {
    detail::bulk_put(&value, to.address(), sizeof(T));
  }
}

}  // namespace sojourn
