// SPDX-License-Identifier: Apache-2.0
// The memory of copies of objects that are here, and how the copy of an object is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "object/copy_rooms.hpp"
#include "sojourn/detail/copies.hpp"

namespace sojourn::detail {

class copy_memory {
 public:
  /// Good copies and their headers are to take at most `most` bytes.
  explicit copy_memory(std::size_t most);
  ~copy_memory();
  copy_memory(const copy_memory&) = delete;
  copy_memory& operator=(const copy_memory&) = delete;

  /// Room for the copy of an object, which is not good yet; null when there is none.
  copy_block* take(std::uint64_t address, object_shape shape);
  /// Gives room back that never was a good copy.
  void give_back(copy_block* block);

  /// Makes the object in `block` as it is in a message. One that is marshalled, and is there
  /// already, is left alone if it came from a message of the same bytes: a suspended method may
  /// have addresses of what it owns. Errors: what reading the message throws; then there is none.
  /// Requires: `from` is aligned to 16.
  void fill(copy_block* block, const std::byte* from, std::size_t bytes);
  /// Both have come from the same message.
  static bool are_alike(const copy_block& one, const copy_block& other);
  /// fill() has been called: the object is found from now on.
  void make_good(copy_block* block);
  /// The object itself has moved here, into `block`. It is found as a good copy is, and not
  /// evicted.
  void make_object(copy_block* block);
  /// What such objects and their headers take. (What an object owns counts by the length of the
  /// message in which it came.)
  std::size_t object_bytes() const { return object_bytes_; }
  /// The good copy of an object, or the object, or null.
  copy_block* find(std::uint64_t address);
  /// The copy is not as the object is any more. It stays until free_old().
  void make_old(copy_block* block);
  /// An object is about to leave, as it is in the message: what is left of it here is as that says.
  void note_sent(copy_block* block, const std::byte* written, std::size_t bytes);
  std::size_t old_ones() const { return old_.size(); }
  std::size_t old_bytes() const { return old_bytes_; }
  /// Frees the old copies but those in `used`.
  void free_old(std::span<const copy_block* const> used);

  /// Good copies take more than they should: those that came first should be evicted.
  bool is_over() const { return good_bytes_ > most_; }
  /// The good copy that came first, or null; and the one that came after it.
  copy_block* oldest() const { return oldest_; }

  /// The object, or the part of one, whose copy lies at `address`.
  std::uint64_t original(std::uint64_t address) const;

  std::uint64_t first_address() const { return rooms_.first_address(); }
  std::size_t address_bytes() const { return rooms_.address_bytes(); }

 private:
  void destroy(copy_block* block);
  void free(copy_block* block);
  void put_first(copy_block* block);
  void take_out(copy_block* block);
  void enter(copy_block* block);
  void use_more_places();

  std::size_t most_;
  std::size_t good_bytes_ = 0;
  std::size_t old_bytes_ = 0;
  std::size_t object_bytes_ = 0;
  std::size_t good_count_ = 0;
  copy_rooms rooms_;
  copy_block* oldest_ = nullptr;
  copy_block* newest_ = nullptr;
  std::vector<copy_block*> old_;
  std::size_t place_count_;
  std::unique_ptr<copy_block*[]> places_;
};

}  // namespace sojourn::detail
