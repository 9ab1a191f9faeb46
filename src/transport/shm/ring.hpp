// SPDX-License-Identifier: Apache-2.0
// A ring of messages between two ranks on one host: one writer, one reader.
//
// A message takes whole cache lines, header and first payload bytes in the first, so that a small
// one costs one line transfer. The reader knows a message by a non-zero length in its header; it
// never writes to the ring's lines, which would cost the writer another transfer. Instead the
// writer zeroes the header behind a message before publishing it. How far the reader is, it tells
// in a line of its own, a quarter of the ring at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/transport.hpp"

namespace sojourn::detail::shm {

inline constexpr std::size_t line = 64;
inline constexpr std::size_t lines_prepared_max = 16;
inline constexpr std::uint32_t wrap_length = ~0u;  // the next message is at the ring's start

/// The shared part, followed by `capacity` bytes. Zeroed memory is an empty ring.
struct alignas(line) ring_memory {
  std::atomic<std::uint64_t> consumed;  // bytes the reader has freed, ever; written by it alone
  char pad[line - sizeof(std::uint64_t)];

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

constexpr std::size_t lines_of(std::size_t bytes) { return (bytes + line - 1) / line * line; }

inline message_header* header_at(std::byte* where) {
  return reinterpret_cast<message_header*>(where);
}

inline void prefetch_for_writing(const void* where) {
#if defined(__x86_64__)
  // The builtin gives a prefetch for reading unless told of a processor that has this one; those
  // without it ignore it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(where)));
#else
  __builtin_prefetch(where, 1, 3);
#endif
}

/// The writer's end. The ring's capacity is a power of two, at least 16 lines.
class ring_writer {
 public:
  void attach(ring_memory* memory, std::size_t capacity) {
    memory_ = memory;
    capacity_ = capacity;
  }

  /// Room for `bytes` of header and payload; null when there is none. Requires: bytes <=
  /// capacity/4.
  std::byte* reserve(std::size_t bytes) {
    std::size_t need = lines_of(bytes);
    std::size_t at = position_ & (capacity_ - 1);
    std::size_t skip = at + need > capacity_ ? capacity_ - at : 0;
    // One line more: the header behind the message is zeroed.
    if (position_ + skip + need + line - consumed_seen_ > capacity_) [[unlikely]] {
      consumed_seen_ = memory_->consumed.load(std::memory_order_acquire);
      if (position_ + skip + need + line - consumed_seen_ > capacity_) return nullptr;
    }
    reserved_ = bytes;
    if (need <= sizeof composed_) return composed_;
    return memory_->data() + (skip > 0 ? 0 : at);
  }

  /// Publishes the message reserved last.
  void commit(std::uint16_t handler, std::uint16_t flags, std::uint64_t ticket) {
    std::size_t need = lines_of(reserved_);
    std::size_t at = position_ & (capacity_ - 1);
    std::byte* data = memory_->data();
    message_header* wrap = nullptr;
    if (at + need > capacity_) [[unlikely]] {
      wrap = header_at(data + at);
      position_ += capacity_ - at;
      at = 0;
    }
    position_ += need;
    header_at(data + (position_ & (capacity_ - 1)))->length.store(0, std::memory_order_relaxed);
    message_header* header = header_at(data + at);
    if (need <= sizeof composed_) {
      // The reader looks at the first line all the time. It is written last and at one go: a store
      // to another line in between would wait for that line, while this one goes to the reader and
      // must be fetched back.
      if (need > line) std::memcpy(data + at + line, composed_ + line, line);
      std::memcpy(static_cast<void*>(data + at + sizeof(message_header)),
                  composed_ + sizeof(message_header), line - sizeof(message_header));
    }
    header->handler = handler;
    header->flags = flags;
    header->ticket = ticket;
    // Publishes the message: pairs with the acquire load in ring_reader::next.
    header->length.store(static_cast<std::uint32_t>(reserved_), std::memory_order_release);
    if (wrap != nullptr) [[unlikely]] {
      wrap->length.store(wrap_length, std::memory_order_release);
    }
    prepare_next(need);
  }

  /// Asks for the lines of a next message of as many bytes, and for the header behind it, to be
  /// this core's, so that stores do not wait for them one message later. Not for its first line:
  /// the reader looks at that one all the time.
  [[gnu::always_inline]] void prepare_next(std::size_t bytes) {
    std::size_t most = bytes < lines_prepared_max * line ? bytes : lines_prepared_max * line;
    if (position_ + most + line - consumed_seen_ > capacity_) return;  // still being read
    for (std::size_t ahead = line; ahead <= most; ahead += line) {
      prefetch_for_writing(memory_->data() + ((position_ + ahead) & (capacity_ - 1)));
    }
  }

  /// True when reserve(bytes) would succeed. Looks at the reader's line.
  bool has_room(std::size_t bytes) const {
    std::size_t need = lines_of(bytes);
    std::size_t at = position_ & (capacity_ - 1);
    std::size_t skip = at + need > capacity_ ? capacity_ - at : 0;
    return position_ + skip + need + line - memory_->consumed.load(std::memory_order_acquire) <=
           capacity_;
  }

 private:
  ring_memory* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t position_ = 0;       // bytes written, ever
  std::uint64_t consumed_seen_ = 0;  // what the reader said last
  std::size_t reserved_ = 0;
  alignas(line) std::byte composed_[2 * line];  // a message of one or two lines, until its commit
};

/// The reader's end.
class ring_reader {
 public:
  void attach(ring_memory* memory, std::size_t capacity) {
    memory_ = memory;
    capacity_ = capacity;
  }

  /// The next message, or null. The same one until it is consumed.
  [[gnu::always_inline]] message_header* next() {
    message_header* header = header_at(memory_->data() + (position_ & (capacity_ - 1)));
    std::uint32_t length = header->length.load(std::memory_order_acquire);
    if (length == 0) return nullptr;
    if (length == wrap_length) [[unlikely]] {
      position_ += capacity_ - (position_ & (capacity_ - 1));
      return next_after_wrap();
    }
    return header;
  }

  bool has_message() const {
    std::byte* at = memory_->data() + (position_ & (capacity_ - 1));
    // Messages are often as long as the last: its second line is asked for along with the first,
    // not one transfer later.
    if (two_lines_) __builtin_prefetch(memory_->data() + ((position_ + line) & (capacity_ - 1)));
    return header_at(at)->length.load(std::memory_order_acquire) != 0;
  }

  /// Frees the message that next() returned. True when the writer was told.
  bool consume(std::size_t length) {
    position_ += lines_of(length);
    two_lines_ = length > line && length <= 2 * line;
    if (position_ - told_ < capacity_ / 4) return false;
    return tell();
  }

  /// Tells the writer how far this end is; true when that is news.
  bool tell() {
    if (told_ == position_) return false;
    told_ = position_;
    memory_->consumed.store(position_, std::memory_order_release);
    return true;
  }

 private:
  message_header* next_after_wrap() {
    message_header* header = header_at(memory_->data());
    return header->length.load(std::memory_order_acquire) != 0 ? header : nullptr;
  }

  ring_memory* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t position_ = 0;  // bytes read, ever
  std::uint64_t told_ = 0;
  bool two_lines_ = false;
};

}  // namespace sojourn::detail::shm
