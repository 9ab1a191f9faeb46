// SPDX-License-Identifier: Apache-2.0
// Copies of objects of other ranks, on which const methods run here (via::cache), and what the
// owner of an object does before a method changes an object that has copies. The protocol behind it
// is src/object/coherence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/object_type.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/wire.hpp"

namespace sojourn::detail {

/// A copy, which lies behind this header.
struct alignas(16) copy_block {
  std::uint64_t address = 0;  ///< Of the object.
  std::uint32_t bytes = 0;
  bool is_good = false;              ///< It is as the object is.
  bool is_object = false;            ///< It is the object itself, which has moved here.
  std::uint16_t away_from_home = 0;  ///< Calls that the object's home has sent here since then.
  copy_block* older = nullptr;  ///< In the list of good copies, in the order in which they came.
  copy_block* newer = nullptr;
  copy_block* next = nullptr;  ///< Of good ones with the same place.
  std::uint32_t uses = 0;      ///< Calls of this rank that ran on it.
  std::uint32_t asked_at = 0;  ///< The call by which it came: the end of call_place::code, or 0.
  // Of an object whose type has a number (register_object_type):
  std::uint64_t read_from = 0;    ///< A hash of the message that it was read from.
  std::uint32_t read_length = 0;  ///< The length of that message.
  std::uint16_t type = 0;
  bool is_made = false;  ///< There is an object, which has to be destroyed.
  bool is_old = false;   ///< It was good once.

  void* object() { return this + 1; }
};
/// Calls of this rank that ran on objects which were made elsewhere and are here.
extern std::uint64_t calls_of_guests;
/// Stands for a copy where there is none. It has no bytes, so no object is taken for it.
extern copy_block no_copy;
inline constexpr std::size_t longest_copy = 65536;
/// Longer objects are not marshalled to have them elsewhere.
inline constexpr std::size_t longest_marshalled_copy = whole_max;

/// What ranks tell each other of an object's type.
struct object_shape {
  std::size_t bytes;       ///< Of the object itself.
  std::uint16_t type = 0;  ///< Its type's number; 0 when its bytes are all there is to it.
};

/// The good copies, by the addresses of their objects.
struct copy_places {
  copy_block** places;
  unsigned shift;  ///< 64 less the logarithm of how many there are.
};
extern copy_places copies;

[[gnu::always_inline]] inline copy_block*& place_of_copy(std::uint64_t address) {
  return copies.places[(address * 0x9e3779b97f4a7c15u) >> copies.shift];
}
/// A good copy of the object, or null: then there may be one behind another (copy_memory::find).
[[gnu::always_inline]] inline copy_block* copy_at_hand(std::uint64_t address, std::size_t bytes) {
  copy_block* const first = place_of_copy(address);
  return first->address == address && first->bytes == bytes ? first : nullptr;
}
/// The same, of a T. An object that is marshalled is not used as one of a class that adds to its
/// own, and has the same length.
template <class T>
[[gnu::always_inline]] inline copy_block* copy_at_hand(std::uint64_t address);

/// Lives while a method runs on a copy. The copy stays as long; and when the method goes on that
/// was suspended, the copy is first made as the object is (fiber_hooks::copies).
class use_of_copy : private hold {
 public:
  [[gnu::always_inline]] explicit use_of_copy(copy_block* block)
      : hold{running.holds, kind::copy, block} {
    running.holds = this;
  }
  [[gnu::always_inline]] ~use_of_copy() { running.holds = outer; }
  use_of_copy(const use_of_copy&) = delete;
  use_of_copy& operator=(const use_of_copy&) = delete;
};

/// A call that wants a copy of an object of another rank, in the frame of the fiber that makes it.
class asks_for_copy {
 public:
  /// How the call goes on. (The runtime's part of it is in src/object/copies.cpp.)
  enum class then : std::uint8_t {
    on_copy,    ///< On copy().
    send,       ///< It is sent by begin() and commit(), and then waits.
    wait,       ///< Another call has asked for the same copy, or the object is on its way.
    on_object,  ///< The object itself was here a moment ago.
    by_result   ///< It is made as an rpc.
  };

  /// `chosen_at`: the address of the call that has chosen to ask for a copy, or 0 (choice.hpp).
  asks_for_copy(int owner, std::uint64_t address, object_shape shape, std::uint64_t chosen_at)
      : to(owner), address_(address), shape_(shape), chosen_at_(chosen_at) {}
  ~asks_for_copy();
  asks_for_copy(const asks_for_copy&) = delete;
  asks_for_copy& operator=(const asks_for_copy&) = delete;

  /// Errors: rank_lost.
  then start();
  /// As request_way (request.hpp) has them.
  void must_run() const { must_run_ = true; }
  outgoing begin(std::size_t payload_bytes) const;
  void commit(const outgoing& out, std::uint16_t handler) const;
  /// Suspends until the copy is here, or the result of the call that `ticket` is for; by_result
  /// says that the result is there to be taken. 0: the call was not sent; by_result then says that
  /// it is to be sent. Errors: rank_lost.
  then wait(ticket_id ticket);

  copy_block* copy() const { return copy_; }

  const int to;

 private:
  friend class objects_of_rank;
  std::uint64_t address_;
  object_shape shape_;
  std::uint64_t chosen_at_;
  std::uint64_t number_ = 0;
  bool is_open_ = false;
  mutable bool must_run_ = false;
  copy_block* copy_ = nullptr;
};

/// The object whose bytes are copied here, for an address in a copy; any other address as it is.
std::uint64_t find_original(std::uint64_t address);
[[gnu::always_inline]] inline std::uint64_t original_of(const volatile void* object) {
  const auto address = reinterpret_cast<std::uint64_t>(object);
  if (address - job.copies < job.copies_bytes) [[unlikely]]
    return find_original(address);
  return address;
}

/// A method that changes a T has promised not to wait, or reads its arguments in a message. It
/// could not wait for copies to be given up, so no copies are made. The same on all ranks.
template <class T>
inline bool changed_without_waiting = false;

/// Copies of these objects can be made and used by their bytes, …
template <class T>
consteval bool can_copy_bytes() {
  if constexpr (travels<T> && !stays_on_its_rank<T>) {
    return marshals_copies<T> && sizeof(T) <= longest_copy && alignof(T) <= 16;
  } else {
    return false;
  }
}
template <class T>
inline constexpr bool is_copied_by_bytes = can_copy_bytes<T>();
/// … or by marshalling them, if their class says how: its `serialize` also says that a T which has
/// been read elsewhere is as good. Not those of a class that others may be derived from with
/// virtual functions, because calls have to go to theirs.
template <class T>
consteval bool can_copy_by_marshalling() {
  if constexpr (!std::is_class_v<T> || travels<T> || stays_on_its_rank<T>) {
    return false;
  } else if constexpr (annotated<writer, reader, T>() == annotation::none) {
    return false;
  } else {
    return marshals_copies<T> && (!std::is_polymorphic_v<T> || std::is_final_v<T>) &&
           std::is_move_constructible_v<T> && sizeof(T) <= longest_copy && alignof(T) <= 16;
  }
}
template <class T>
inline constexpr bool is_copied_by_marshalling = can_copy_by_marshalling<T>();
template <class T>
inline constexpr bool is_copied = is_copied_by_bytes<T> || is_copied_by_marshalling<T>;

template <class T>
struct marshalled_type {
  inline static const std::uint16_t number = register_object_type(object_type_of<T>);
};
template <class T>
object_shape shape_of() {
  if constexpr (is_copied_by_marshalling<T>) return {sizeof(T), marshalled_type<T>::number};
  return {sizeof(T), 0};
}
template <class T>
[[gnu::always_inline]] inline copy_block* copy_at_hand(std::uint64_t address) {
  copy_block* const found = copy_at_hand(address, sizeof(T));
  if constexpr (is_copied_by_marshalling<std::remove_const_t<T>>) {
    if (found != nullptr && found->type != shape_of<std::remove_const_t<T>>().type) return nullptr;
  }
  return found;
}

/// Makes the compiler keep the object's address as such, where a method that suspends needs it
/// later, so that it is found in the method's frames: no copies are given of an object in which a
/// method is suspended that nobody has noted. Takes no instruction.
template <class T>
[[gnu::always_inline]] inline void keep_address(T*& object) {
  asm("" : "+r"(object));
}
/// The same until the end of the method, of an object that owns memory: a method that waits while
/// it uses that memory may not need the object's address any more.
class kept_address {
 public:
  [[gnu::always_inline]] explicit kept_address(const volatile void* object) : object_(object) {}
  [[gnu::always_inline]] ~kept_address() { asm volatile("" : : "r"(object_)); }
  kept_address(const kept_address&) = delete;
  kept_address& operator=(const kept_address&) = delete;

 private:
  const volatile void* object_;
};
struct no_kept_address {
  explicit no_kept_address(const volatile void*) {}
};
template <class T>
using address_kept_of = std::conditional_t<is_copied_by_marshalling<std::remove_cv_t<T>>,
                                           kept_address, no_kept_address>;

// Objects of this rank of which other ranks may have copies are noted by the regions in which they
// lie. Most accesses find nothing in theirs.
struct region_of_copies;
struct region_places {
  region_of_copies** places;
  unsigned shift;  ///< 64 less the logarithm of how many there are.
};
extern region_places regions_with_copies;

inline constexpr std::uint64_t region_of(std::uint64_t address) { return address >> 8; }
[[gnu::always_inline]] inline region_of_copies*& first_in_region(std::uint64_t number) {
  return regions_with_copies.places[(number * 0x9e3779b97f4a7c15u) >> regions_with_copies.shift];
}
/// Changes of longer objects are noted always: one of their parts may be copied meanwhile, and then
/// may_be_in_use() looks for objects that begin little before it.
inline constexpr std::size_t longest_not_noted = 1024;
/// Nobody has a copy of an object that shares a byte with this one. False also when it is not
/// certain.
[[gnu::always_inline]] inline bool has_no_copies_near(std::uint64_t address, std::size_t bytes) {
  if (bytes > longest_not_noted) return false;
  for (std::uint64_t number = region_of(address); number <= region_of(address + bytes - 1);
       ++number) {
    if (first_in_region(number) != nullptr) return false;
  }
  return true;
}

/// To be called by a fiber of the owner before a method changes an object of so many bytes that may
/// have copies. Suspends until all copies have been given up. True when end_change() is to be
/// called after the method, because no copies may be given meanwhile.
bool begin_change(std::uint64_t address, std::size_t bytes);
void end_change(std::uint64_t address, std::size_t bytes);
/// The object is about to be destroyed: nobody has copies of it any more when this returns.
/// Suspends.
void give_up_copies(std::uint64_t address, std::size_t bytes);

/// Lives while a method runs that changes the object, which is here.
class object_change {
 public:
  [[gnu::always_inline]] object_change(const volatile void* object, std::size_t bytes) {
    if (!job.has_copied) return;
    const auto address = reinterpret_cast<std::uint64_t>(object);
    if (has_no_copies_near(address, bytes) || !begin_change(address, bytes)) return;
    of_ = address;
    bytes_ = bytes;
  }
  [[gnu::always_inline]] ~object_change() {
    if (of_ != 0) [[unlikely]]
      end_change(of_, bytes_);
  }
  object_change(const object_change&) = delete;
  object_change& operator=(const object_change&) = delete;

 private:
  std::uint64_t of_ = 0;
  std::size_t bytes_ = 0;
};
struct no_change {
  no_change(const volatile void*, std::size_t) {}
};
/// A change of a T, which may have copies, or parts of which may; of a const T there is none.
template <class T>
using change_of = std::conditional_t<std::is_const_v<T>, no_change, object_change>;
/// The same for the object of a call, if it is one of a method.
template <class... Object>
struct changes_of {};
template <class T>
struct changes_of<T> : change_of<T> {
  explicit changes_of(T& object) : change_of<T>(&object, sizeof(T)) {}
};
template <class Method>
inline constexpr bool is_const_method = false;
template <class R, class C, class... P, bool NoExcept>
inline constexpr bool is_const_method<R (C::*)(P...) const noexcept(NoExcept)> = true;
/// A change of a T by a method of type Method.
template <class Method, class T>
using change_by = std::conditional_t<is_const_method<Method>, no_change, change_of<T>>;

}  // namespace sojourn::detail
