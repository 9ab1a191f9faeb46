// SPDX-License-Identifier: Apache-2.0
// Requests of a rank to itself: threads that start here, and calls whose object turns out to be
// here. They bypass the transport, which would look for messages of other ranks each time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

/// A queue. Requests are delivered in the order of their commits, each consumed before the next is
/// looked at.
class own_requests {
 public:
  /// Requires: the region is mapped.
  void attach(int rank, std::size_t payload_max) {
    rank_ = rank;
    // Pages that are never used take no memory.
    memory_ = static_cast<std::byte*>(runtime_memory(room_bytes + need(payload_max)));
  }

  bool empty() const { return first_ == end_; }
  /// False: the request must wait until all requests before it have been delivered.
  bool has_room(std::size_t bytes) const { return empty() || end_ + need(bytes) <= room_bytes; }

  /// Room for a payload, 16-byte aligned; null when there is none now. Valid until commit.
  std::byte* reserve(std::size_t bytes) {
    if (empty()) first_ = end_ = 0;
    if (end_ != 0 && end_ + need(bytes) > room_bytes) [[unlikely]]
      return nullptr;
    header_at(end_)->bytes = bytes;
    is_reserved_ = true;
    return payload_at(end_);
  }
  void commit(std::uint16_t handler, std::uint16_t flags, std::uint64_t ticket) {
    header* h = header_at(end_);
    h->ticket = ticket;
    h->handler = handler;
    h->flags = flags;
    end_ += need(h->bytes);
    is_reserved_ = false;
  }
  /// True between reserve() and commit().
  bool is_reserved() const { return is_reserved_; }

  /// The oldest request. Requires: there is one.
  arrival next() const {
    const header* h = header_at(first_);
    return {rank_,     message_class::request, h->handler, h->flags,
            h->ticket, payload_at(first_),     h->bytes,   h};
  }
  /// Frees the room of the oldest request.
  void consume() { first_ += need(header_at(first_)->bytes); }

 private:
  static constexpr std::size_t room_bytes = 64 << 10;

  struct alignas(16) header {
    std::size_t bytes;
    std::uint64_t ticket;
    std::uint16_t handler;
    std::uint16_t flags;
  };
  static constexpr std::size_t need(std::size_t payload) {
    return sizeof(header) + (payload + 15) / 16 * 16;
  }
  header* header_at(std::size_t at) const { return reinterpret_cast<header*>(memory_ + at); }
  std::byte* payload_at(std::size_t at) const { return memory_ + at + sizeof(header); }

  std::byte* memory_ = nullptr;
  std::size_t first_ = 0;  // offset of the oldest request
  std::size_t end_ = 0;    // offset of the next request
  int rank_ = 0;
  bool is_reserved_ = false;
};

}  // namespace sojourn::detail
