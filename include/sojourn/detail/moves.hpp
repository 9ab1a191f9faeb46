// SPDX-License-Identifier: Apache-2.0
// Objects that move (via::fetch): where an object is, for a call of this rank. The protocol behind
// it is src/object/coherence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/waiting/monitor.hpp"

namespace sojourn::detail {

/// False: it was made on this rank, and it is here.
[[gnu::always_inline]] inline bool may_have_moved(std::uint64_t address, std::size_t bytes) {
  return !is_here(address) || !has_no_copies_near(address, bytes);
}

/// Where a call finds its object.
struct object_place {
  void* here;         ///< The object, on this rank; otherwise null, …
  copy_block* block;  ///< … in this block, if it was made elsewhere.
  int rank;           ///< Where else it probably is.
};

/// Looks for the object. One that was made here, and of which a part is away, is first brought
/// together here. Suspends. Errors: rank_lost.
object_place find_object(std::uint64_t address, object_shape shape);
/// Brings back what has moved of an object that is here and does not move itself, or what it is a
/// part of. Suspends. Errors: rank_lost.
void bring_parts_home(std::uint64_t address, std::size_t bytes);
template <class T>
void bring_parts_home(T& object) {
  if (job.has_moved) [[unlikely]]
    bring_parts_home(reinterpret_cast<std::uint64_t>(&object), sizeof(T));
}
/// Has the object moved to this rank, if no method is in progress in it and there is room. Then it
/// does not leave before the caller has run a method of it, up to where that suspends. `chosen_at`:
/// as asks_for_copy has it. Suspends. Errors: rank_lost.
object_place bring_object(std::uint64_t address, object_shape shape, bool writes,
                          std::uint64_t chosen_at);
/// The rank at which the object probably is.
int probable_place(std::uint64_t address);
/// find_object() for a call that has come from the rank `caller`, which is told where else the
/// object is.
object_place find_object_for(int caller, std::uint64_t address, object_shape shape);

/// Forbids the object to leave the rank where it is, or allows it again. Suspends.
void fix_object(std::uint64_t address, bool fixed);

/// Has an object follow another wherever that is fetched, or no longer. Suspend.
void attach_objects(std::uint64_t to, std::uint64_t object, object_shape shape);
void detach_objects(std::uint64_t to, std::uint64_t object);
/// Throws sojourn::error. `type`: its name in type_info.
[[noreturn]] void refuse_to_attach(const char* type);

/// Throws sojourn::error when an object of this rank that shares a byte with this one is elsewhere.
void refuse_if_away(std::uint64_t address, std::size_t bytes);
template <class T>
consteval std::size_t known_size() {
  if constexpr (requires { sizeof(T); }) return sizeof(T);
  return 1;
}

/// The program uses objects of type T through pointers (global_ptr::local), which do not know that
/// an object has moved: so none moves. The same on all ranks.
template <class T>
inline bool has_raw_pointers = false;
/// The same, and may change the objects through them, of which copies would know nothing: so none
/// is copied.
template <class T>
inline bool is_changed_by_pointers = false;
template <class T>
inline const bool notes_raw_pointers = [] {
  has_raw_pointers<std::remove_const_t<T>> = true;
  if constexpr (!std::is_const_v<T>) is_changed_by_pointers<T> = true;
  return true;
}();
/// The program has made a global_ptr from the address of a T, which it may use as such, too. The
/// same on all ranks.
template <class T>
inline bool has_known_address = false;
template <class T>
inline const bool notes_known_address = [] {
  has_known_address<std::remove_const_t<T>> = true;
  return true;
}();
/// Calls of objects of type T are made in ways that cannot look for them: by the names of exported
/// methods, or by methods that have promised not to wait. The same on all ranks of a program.
template <class T>
inline bool is_called_blindly = false;

/// A program wants to move an object whose type does not move, which says so once.
void warn_of_raw_pointers(const char* method);
/// The same of one that is not copied.
void warn_of_changes_by_pointers(const char* method);
/// True when all ranks of the job run this program.
bool runs_one_program();

/// Objects of type T are not copied, although they could be. `cached`: the method with whose call
/// the program says via::cache, or null.
template <class T>
bool never_copied(const char* cached) {
  if (is_changed_by_pointers<T> && cached != nullptr) warn_of_changes_by_pointers(cached);
  return is_changed_by_pointers<T> || changed_without_waiting<T>;
}

/// Objects of type T can move.
template <class T>
inline constexpr bool can_move = is_copied<T> && !std::is_base_of_v<monitor, T>;
/// But do not. `fetched`: the method with whose call the program says via::fetch, or null.
template <class T>
bool never_moves(const char* fetched) {
  if (has_raw_pointers<T> && fetched != nullptr) warn_of_raw_pointers(fetched);
  return has_raw_pointers<T> || is_called_blindly<T> || changed_without_waiting<T> ||
         !runs_one_program();
}

}  // namespace sojourn::detail
