// SPDX-License-Identifier: Apache-2.0
// Memory for blocks of many lengths that come and go, in one range of addresses, so that the block
// in which an address lies is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sojourn::detail {

/// A range of addresses that takes memory only as far as it is used.
class address_range {
 public:
  explicit address_range(std::size_t bytes);
  ~address_range();
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;
  std::byte* first() const { return first_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* first_;
  std::size_t bytes_;
};

/// The range is divided into chunks of one size. The rooms of a chunk have one length; a chunk
/// without blocks can get rooms of another.
class copy_rooms {
 public:
  static constexpr std::size_t longest = 66 << 10;

  /// For about so many bytes of blocks. Errors: std::bad_alloc.
  explicit copy_rooms(std::size_t most);

  /// Room for a block, at a multiple of 16; null when there is none. Requires: bytes <= longest.
  void* take(std::size_t bytes);
  void give_back(void* room);
  /// The room in which the address lies, or null when there is none.
  void* room_at(std::uint64_t address) const;

  std::uint64_t first_address() const { return reinterpret_cast<std::uint64_t>(range_.first()); }
  std::size_t address_bytes() const { return range_.bytes(); }

 private:
  static constexpr std::size_t chunk_bytes = 128 << 10;
  static constexpr std::uint32_t none = ~0u;
  static constexpr unsigned small_lengths = 64;  // multiples of 16
  static constexpr unsigned lengths = small_lengths + 25;

  struct chunk {
    std::uint32_t room_bytes = 0;
    std::uint32_t used = 0;
    std::uint32_t begun = 0;  ///< Rooms that have been used once.
    std::uint32_t length = 0;
    void* free = nullptr;  ///< Rooms that are free again, each with a pointer to the next.
    std::uint32_t before = none, after = none;  ///< In the list of chunks with room.
  };

  static unsigned length_of(std::size_t bytes);
  static std::size_t bytes_of(unsigned length);
  static bool is_full(const chunk& c);
  void put_in_list(std::uint32_t index);
  void take_from_list(std::uint32_t index);
  std::uint32_t begin_chunk(unsigned length);

  address_range range_;
  std::vector<chunk> chunks_;  ///< Those that have been used.
  std::vector<std::uint32_t> empty_;
  std::uint32_t with_room_[lengths];
};

}  // namespace sojourn::detail
