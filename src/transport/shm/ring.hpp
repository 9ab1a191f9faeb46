// SPDX-License-Identifier: Apache-2.0
// A ring of messages between two ranks on one host: one writer, one reader.
//
// A message takes whole cache lines. Its header and the first bytes of its payload are in the first
// line, so that a small message costs one line transfer. Its header holds its number, by which the
// reader knows the next message. The reader looks for it in two places: after the last message, and
// at the ring's start, where the writer begins again whenever it knows that everything has been
// read. So calls that are answered one after the other use the same few lines again and again,
// which stay in the first-level caches: a round trip over a ring of 64 KiB takes a third longer
// than over one line.
//
// Every message that goes the other way says how much the reader has read. For traffic without
// messages the other way, the reader also says it in a line of its own, each time that it has read
// an eighth of the ring. It never writes to the lines of messages, because that would cost the
// writer another transfer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "transport/transport.hpp"

namespace sojourn::detail::shm {

inline constexpr std::size_t line = 64;

/// The shared part, followed by `capacity` bytes. Zeroed memory is an empty ring.
struct alignas(line) ring_memory {
  std::atomic<std::uint64_t>
      consumed;  // bytes that the reader has freed, ever; only the reader writes it
  char pad[line - sizeof(std::uint64_t)];

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

/// First bytes of every message, at the start of a cache line; the payload follows.
struct message_header {
  /// Upper half: number of the message in its ring, from 1, modulo 2^32 without 0. Lower half:
  /// length in bytes, header included. Stored last, with release: this publishes the message.
  std::atomic<std::uint64_t> word;
  std::uint64_t ticket;
  std::uint16_t handler;
  std::uint16_t flags;
  /// How many messages of each class the sender had read from the receiver when it sent this one.
  std::uint32_t heard[2];
  std::uint32_t sent;  ///< The time of sending (delays::stamp), if SOJOURN_DELAY is on.

  std::size_t length() const {
    return static_cast<std::uint32_t>(word.load(std::memory_order_relaxed));
  }
};
static_assert(sizeof(message_header) == header_bytes);

constexpr std::size_t lines_of(std::size_t bytes) { return (bytes + line - 1) / line * line; }
/// The payload of a message of one or two lines follows the header. The payload of a longer message
/// begins with the second line, because writing it takes a while: the reader looks at the first
/// line all the time, and would take that line away from the writer again and again.
constexpr std::size_t payload_offset(std::size_t bytes_in_ring) {
  return bytes_in_ring <= 2 * line ? header_bytes : line;
}
/// How many bytes a message of `bytes`, header included, takes in a ring.
constexpr std::size_t bytes_in_ring(std::size_t bytes) {
  return bytes <= 2 * line ? bytes : bytes + (line - header_bytes);
}

constexpr std::uint32_t number_after(std::uint32_t number) {
  return number + 1 == 0 ? 1 : number + 1;
}

inline message_header* header_at(std::byte* where) {
  return reinterpret_cast<message_header*>(where);
}

template <class Header>
auto* payload_of(Header* header, std::size_t bytes) {
  using byte = std::conditional_t<std::is_const_v<Header>, const std::byte, std::byte>;
  return reinterpret_cast<byte*>(header) + payload_offset(bytes);
}

inline void prefetch_for_writing(const void* where) {
#if defined(__x86_64__)
  // The builtin emits a prefetch for reading unless the compiler is told of a processor that has
  // prefetchw; processors without prefetchw ignore it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(where)));
#else
  __builtin_prefetch(where, 1, 3);
#endif
}

/// The writer's end. The ring's capacity is a power of two, at least 16 lines.
class ring_writer {
 public:
  /// `last_number`: the number of the message before the first, the same at both ends. Tests begin
  /// shortly before the numbers wrap, which otherwise takes four billion messages.
  void attach(ring_memory* memory, std::size_t capacity, std::uint32_t last_number = 0) {
    memory_ = memory;
    capacity_ = capacity;
    number_ = last_number;
  }

  /// Room for a message of `bytes`, header included; null when there is none. Requires: bytes <=
  /// capacity/4.
  [[gnu::always_inline]] message_header* reserve(std::size_t bytes) {
    std::size_t need = lines_of(bytes);
    if (position_ == consumed_seen_ && may_begin_again(need)) [[likely]] {
      begin_again();
    } else if (!make_room(need)) {
      return nullptr;
    }
    reserved_ = bytes;
    return header_at(memory_->data() + at_);
  }

  /// Prefetches lines for the next message, which is likely to be as long as the last one. Useless
  /// for short messages, because the reader fetches all of their lines again and again.
  [[gnu::always_inline]] void prepare() const {
    if (reserved_ <= 2 * lines_prepared_max * line) return;
    const std::byte* next = memory_->data() + (position_ == consumed_seen_ ? 0 : at_);
    for (std::size_t i = 1; i < lines_prepared_max; ++i) prefetch_for_writing(next + i * line);
  }

  /// Publishes the message reserved last; the caller has filled in the rest of its header.
  [[gnu::always_inline]] void commit(message_header* header) {
    std::size_t need = lines_of(reserved_);
    number_ = number_after(number_);
    position_ += need;
    std::size_t behind = at_ + need;
    if (behind == capacity_) behind = 0;
    // The reader will look behind this message. What it finds there must not look like the next
    // message.
    keep_unlike_headers(behind, need);
    header->word.store(static_cast<std::uint64_t>(number_) << 32 | reserved_,
                       std::memory_order_release);
    at_ = behind;
  }

  /// Where the next message is written, or is being written.
  const message_header* next() const { return header_at(memory_->data() + at_); }

  /// The reader says that it has read all messages up to number `count`.
  [[gnu::always_inline]] void heard(std::uint32_t count) {
    if (count == number_) consumed_seen_ = position_;
  }

  /// True when reserve(bytes) would succeed. Looks at the reader's line.
  bool has_room(std::size_t bytes) const {
    std::size_t need = lines_of(bytes);
    std::uint64_t consumed = memory_->consumed.load(std::memory_order_acquire);
    if (consumed < consumed_seen_) consumed = consumed_seen_;
    return consumed == position_ || position_ + skip(need) + need + line - consumed <= capacity_;
  }

 private:
  // For how many lines at the ring's start `known_` has a bit.
  static constexpr std::size_t lines_known = 64;
  static constexpr std::uint32_t numbers_looked_after = 1u << 30;

  // Until the reader sees the message at the start, it looks at `at_`, too. The message at the
  // start must not cover `at_`, because its payload is written before it is committed. Later
  // messages are written to `at_` only after that commit (make_room); a reader that finds one of
  // them looks at the start once more.
  bool may_begin_again(std::size_t need) const { return at_ == 0 || need <= at_; }
  void begin_again() {
    watched_ = at_;
    std::size_t past = position_ & (capacity_ - 1);
    if (past != 0) position_ += capacity_ - past;
    consumed_seen_ = position_;
    at_ = 0;
  }
  std::size_t skip(std::size_t need) const { return at_ + need > capacity_ ? capacity_ - at_ : 0; }

  bool make_room(std::size_t need) {
    std::size_t skipped = skip(need);
    if (position_ + skipped + need + line - consumed_seen_ > capacity_) [[unlikely]] {
      std::uint64_t consumed = memory_->consumed.load(std::memory_order_acquire);
      if (consumed > consumed_seen_) consumed_seen_ = consumed;
      if (position_ == consumed_seen_ && may_begin_again(need)) {
        begin_again();
        return true;
      }
      if (position_ + skipped + need + line - consumed_seen_ > capacity_) return false;
    }
    if (skipped != 0) {
      position_ += skipped;
      at_ = 0;
    }
    if (at_ < watched_ && watched_ < at_ + need) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_release);
    // The writer does not begin again here, so the lines of the next message are prefetched one
    // message ahead: stores need not wait for them then. Its first line is left out, because the
    // reader looks at it all the time.
    std::size_t most = need < lines_prepared_max * line ? need : lines_prepared_max * line;
    for (std::size_t ahead = need + line; ahead <= need + most; ahead += line) {
      prefetch_for_writing(memory_->data() + ((at_ + ahead) & (capacity_ - 1)));
    }
    return true;
  }
  static constexpr std::size_t lines_prepared_max = 16;

  /// The first word of a line holds an old message number (never the one that the reader waits
  /// for), zero, or part of a payload, which may be anything. If it is part of a payload, it is
  /// zeroed before the reader looks at the line.
  [[gnu::always_inline]] void keep_unlike_headers(std::size_t behind, std::size_t need) {
    std::size_t first = at_ / line;
    if (need > line && first < lines_known) {
      std::size_t count = need / line - 1;
      std::uint64_t payload = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      if (first + 1 < lines_known) known_ &= ~(payload << (first + 1));
    }
    if ((number_ & (numbers_looked_after - 1)) == 0) [[unlikely]]
      look_after_old_numbers();
    std::size_t next = behind / line;
    if (next < lines_known && (known_ >> next & 1) != 0) [[likely]]
      return;
    header_at(memory_->data() + behind)->word.store(0, std::memory_order_relaxed);
    if (next < lines_known) known_ |= std::uint64_t{1} << next;
  }

  /// Called long before a number is used again: afterwards no line holds the number from its
  /// earlier use.
  [[gnu::noinline, gnu::cold]] void look_after_old_numbers() {
    known_ = 1;
    message_header* start = header_at(memory_->data());
    auto age =
        number_ - static_cast<std::uint32_t>(start->word.load(std::memory_order_relaxed) >> 32);
    if (age > capacity_ / line)
      start->word.store(0, std::memory_order_relaxed);  // the message has been read
  }

  ring_memory* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t at_ = 0;               // offset of the next message
  std::size_t watched_ = 0;          // where the reader may look besides the start
  std::uint64_t position_ = 0;       // bytes written and skipped, ever
  std::uint64_t consumed_seen_ = 0;  // how much of that was read, as far as the writer knows
  std::size_t reserved_ = 0;
  std::uint64_t known_ = ~std::uint64_t{0};  // lines at the start whose first words are not payload
  std::uint32_t number_ = 0;                 // of the last message
};

/// The reader's end.
class ring_reader {
 public:
  void attach(ring_memory* memory, std::size_t capacity, std::uint32_t last_number = 0) {
    memory_ = memory;
    capacity_ = capacity;
    read_ = last_number;
    number_ = number_after(last_number);
    start_ = next_ = header_at(memory->data());
  }

  /// The next message, or null. It stays the same until it is consumed.
  [[gnu::always_inline]] message_header* next() {
    // Copied to local variables, because the compiler would read the members again after each load
    // from shared memory.
    message_header* const start = start_;
    message_header* const next = next_;
    const std::uint32_t number = number_;
    if (!has_number(start, number)) {
      if (!has_number(next, number)) [[likely]]
        return nullptr;
      // What looks like the next message at `next` may be a payload that was written after that
      // message. In this case the message itself is at the start by now.
      if (!has_number(start, number)) [[likely]]
        return next;
    }
    if (next != start) start_again();
    return start;
  }

  [[gnu::always_inline]] bool has_message() const {
    // Messages are often as long as the one before. So as many further lines are prefetched
    // together with the first line, not one transfer later.
    for (std::size_t i = 1; i <= more_lines_; ++i) __builtin_prefetch(more_at_ + i * line);
    const std::uint32_t number = number_;
    return has_number(start_, number) || has_number(next_, number);
  }

  /// Frees the message that next() returned. Returns true when this told the writer.
  [[gnu::always_inline]] bool consume(std::size_t length) {
    std::size_t lines = lines_of(length);
    std::byte* was = reinterpret_cast<std::byte*>(next_);
    position_ += lines;
    read_ = number_;
    number_ = number_after(number_);
    more_lines_ = lines / line - 1 <= more_lines_max ? lines / line - 1 : 0;
    std::byte* behind = was + lines;
    more_at_ = next_ == start_ ? was : behind;
    if (behind == memory_->data() + capacity_) behind = memory_->data();
    next_ = header_at(behind);
    untold_ += lines;
    if (untold_ < capacity_ / 8) [[likely]]
      return false;
    return tell();
  }

  /// The number of the last message that was read.
  std::uint32_t read() const { return read_; }

  /// Tells the writer how much this end has read. Returns whether that was news.
  bool tell() {
    if (untold_ == 0) return false;
    untold_ = 0;
    memory_->consumed.store(position_, std::memory_order_release);
    return true;
  }

 private:
  static constexpr std::size_t more_lines_max = 8;

  static bool has_number(const message_header* header, std::uint32_t number) {
    return header->word.load(std::memory_order_acquire) >> 32 == number;
  }
  void start_again() {
    position_ = (position_ + capacity_ - 1) & ~(capacity_ - 1);
    next_ = start_;
  }

  message_header* start_ = nullptr;
  message_header* next_ = nullptr;
  std::uint32_t number_ = 1;    // of the next message
  std::uint32_t read_ = 0;      // of the last one
  std::size_t more_lines_ = 0;  // lines of the last message beyond its first
  std::byte* more_at_ = nullptr;
  ring_memory* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t position_ = 0;  // bytes read and skipped, ever
  std::size_t untold_ = 0;
};

}  // namespace sojourn::detail::shm
