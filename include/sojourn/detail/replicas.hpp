// SPDX-License-Identifier: Apache-2.0
// What replicated.hpp needs: how a rank finds the version of a replicated object that it reads, and
// what the runtime is told about the object's type. The protocol behind it is src/object/replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/object_type.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

/// An entry of the table of this rank: the version that reads here find.
struct replica_place {
  std::uint64_t number;  ///< Of the object; 0: none.
  void* object;
};
/// For each rank that may have made replicated objects, replica_slots entries.
extern replica_place* replica_places;
inline constexpr std::uint64_t replica_slots = std::uint64_t{1} << 16;

/// Names a replicated object in the whole job.
struct replica_name {
  std::uint64_t at = 0;  ///< Where its entry lies in each rank's table, in bytes.
  /// Its maker's count of such objects, because slots are used again. No entry has this first one.
  std::uint64_t number = ~std::uint64_t{0};

  /// The rank that has made it.
  int writer() const { return static_cast<int>(at / (replica_slots * sizeof(replica_place))); }
  friend bool operator==(const replica_name&, const replica_name&) = default;
};
[[gnu::always_inline]] inline replica_place& place_of(const replica_name& name) {
  return *reinterpret_cast<replica_place*>(reinterpret_cast<std::byte*>(replica_places) + name.at);
}

/// What the runtime does with the versions of an object.
struct replica_type : object_type {
  void (*copy)(void* to, const void* from);
};
template <class T>
inline constexpr replica_type replica_type_of{object_type_of<T>, [](void* to, const void* from) {
                                                ::new (to) T(*static_cast<const T*>(from));
                                              }};

/// The rank that has made the object. Errors: sojourn::error when the name is none.
int writer_of(const replica_name& name);
/// A new object whose first version init(memory, context) makes. Errors: sojourn::error when this
/// rank has too many; what init and marshalling throw.
replica_name make_replica(const replica_type& type, void (*init)(void* memory, void* context),
                          void* context);
/// The newest version that is here. Suspends until there is one. Errors: see replicated::read.
void* find_replica(const replica_name& name, const replica_type& type);
/// Suspends until the newest version is here.
void refresh_replica(const replica_name& name, const replica_type& type);
/// Suspends until reads on this rank see version `number`, which an update of this rank has made.
void see_version(const replica_name& name, const replica_type& type, std::uint64_t number);
void drop_replica(const replica_name& name);
std::uint64_t version_here(const replica_name& name);
/// At the writer.
void end_replica(const replica_name& name);

/// An update in progress, at the writer: one at a time for each object.
class replica_update {
 public:
  /// Suspends until it is this update's turn; then next() is a copy of the newest version.
  replica_update(const replica_name& name, const replica_type& type);
  /// Discards the copy if it has not been published.
  ~replica_update();
  replica_update(const replica_update&) = delete;
  replica_update& operator=(const replica_update&) = delete;

  void* next() const;
  /// Makes the copy the newest version, lets the next update go on, and suspends until no
  /// subscriber is more than `behind` versions behind. Returns the version's number.
  std::uint64_t publish(std::uint64_t behind);

 private:
  void end_turn();

  stays_here stays_;
  struct published_object* of_;
  struct version_block* next_;
};

/// Lives while a call reads a version. The runtime frees versions that no frame of a reader has an
/// address of, so the address stays in this frame, or in a register that functions called from it
/// save.
class use_of_version {
 public:
  [[gnu::always_inline]] explicit use_of_version(const void* object) : object_(object) {}
  [[gnu::always_inline]] ~use_of_version() { asm volatile("" : : "r"(object_)); }
  use_of_version(const use_of_version&) = delete;
  use_of_version& operator=(const use_of_version&) = delete;

 private:
  read_guard guard_;
  const void* object_;
};

}  // namespace sojourn::detail
