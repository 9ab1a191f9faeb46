// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ring.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

using sojourn::detail::header_bytes;
using sojourn::detail::shm::line;
using sojourn::detail::shm::lines_of;
using sojourn::detail::shm::message_header;
using sojourn::detail::shm::ring_memory;
using sojourn::detail::shm::ring_reader;
using sojourn::detail::shm::ring_writer;

/// A ring with both ends. The ticket of a message says how many came before it, and determines its
/// bytes.
struct ring {
  explicit ring(std::size_t capacity) {
    std::size_t bytes = sizeof(ring_memory) + capacity;
    memory = static_cast<ring_memory*>(std::aligned_alloc(line, bytes));
    std::memset(static_cast<void*>(memory), 0, bytes);
    writer.attach(memory, capacity);
    reader.attach(memory, capacity);
  }
  ~ring() { std::free(memory); }

  static unsigned char byte_of(std::uint64_t number, std::size_t i) {
    return static_cast<unsigned char>(number * 131 + i * 7 + (i >> 8));
  }

  /// `bytes` includes the header. Returns false when there is no room.
  bool send(std::size_t bytes) {
    bool room = writer.has_room(bytes);
    message_header* header = writer.reserve(bytes);
    if (header == nullptr) return false;
    // One thread: nothing is freed between the question and the reservation.
    if (!concurrent) {
      EXPECT_TRUE(room);
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(header) % line, 0u);
    used_start |= reinterpret_cast<std::byte*>(header) == memory->data();
    auto* payload = reinterpret_cast<unsigned char*>(header + 1);
    for (std::size_t i = 0; i < bytes - header_bytes; ++i) payload[i] = byte_of(sent, i);
    header->ticket = sent;
    header->handler = static_cast<std::uint16_t>(sent * 3);
    writer.commit(header);
    ++sent;
    return true;
  }

  /// Checks and frees the next message. Returns its length, or 0 when there is none.
  std::size_t receive() {
    bool here = reader.has_message();
    message_header* header = reader.next();
    if (header == nullptr) return 0;
    if (!concurrent) {
      EXPECT_TRUE(here);
    }
    EXPECT_EQ(reader.next(), header) << "the same one until it is consumed";
    std::size_t length = header->length();
    EXPECT_EQ(header->ticket, received);
    EXPECT_EQ(header->handler, static_cast<std::uint16_t>(received * 3));
    const auto* payload = reinterpret_cast<const unsigned char*>(header + 1);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < length - header_bytes; ++i) {
      wrong += payload[i] != byte_of(received, i);
    }
    EXPECT_EQ(wrong, 0u) << "in message " << received;
    ++received;
    reader.consume(length);
    return length;
  }

  ring_memory* memory;
  ring_writer writer;
  ring_reader reader;
  bool concurrent = false;
  bool used_start = false;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

TEST(ring, zeroed_memory_is_empty) {
  ring r(16 * line);
  EXPECT_FALSE(r.reader.has_message());
  EXPECT_EQ(r.reader.next(), nullptr);
  EXPECT_FALSE(r.reader.tell());
  EXPECT_TRUE(r.writer.has_room(4 * line));
}

TEST(ring, a_message_is_seen_when_it_is_committed_not_before) {
  ring r(16 * line);
  message_header* header = r.writer.reserve(100);
  ASSERT_NE(header, nullptr);
  EXPECT_FALSE(r.reader.has_message());
  header->ticket = 77;
  r.writer.commit(header);
  ASSERT_NE(r.reader.next(), nullptr);
  EXPECT_EQ(r.reader.next()->ticket, 77u);
  EXPECT_EQ(r.reader.next()->length(), 100u);
}

TEST(ring, what_was_reserved_and_not_committed_is_reserved_again) {
  ring r(16 * line);
  message_header* first = r.writer.reserve(100);
  EXPECT_EQ(r.writer.reserve(2 * line), first);
  EXPECT_TRUE(r.send(50));
  EXPECT_EQ(r.receive(), 50u);
  EXPECT_EQ(r.receive(), 0u);
}

TEST(ring, a_full_one_refuses_and_takes_again_what_the_reader_freed) {
  ring r(32 * line);
  // One line stays free: the reader looks behind the last message.
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(r.send(line));
  EXPECT_FALSE(r.send(line));
  EXPECT_FALSE(r.writer.has_room(header_bytes));
  // The reader tells of the lines it frees an eighth of the ring at a time, or on request.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(r.receive(), line);
  EXPECT_FALSE(r.send(line));
  EXPECT_TRUE(r.reader.tell());
  EXPECT_FALSE(r.reader.tell()) << "no news";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(r.send(line));
  EXPECT_FALSE(r.send(line));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(r.receive(), line);
  EXPECT_TRUE(r.send(line)) << "an eighth is told unasked";
  while (r.receive() != 0) {
  }
  EXPECT_EQ(r.sent, r.received);
}

TEST(ring, messages_that_are_known_to_be_read_use_the_same_lines_again) {
  ring r(64 * line);
  for (int i = 0; i < 1000; ++i) {
    // Not longer than what was written since the start, because the writer may not begin again
    // otherwise (see below).
    std::size_t bytes = 8 * line - static_cast<std::size_t>(i) * 37 % (7 * line);
    if (i % 2 == 0) bytes = 8 * line;
    r.used_start = false;
    ASSERT_TRUE(r.send(bytes));
    EXPECT_TRUE(r.used_start || i % 2 == 0) << "message " << i;
    ASSERT_EQ(r.receive(), bytes);
    r.writer.heard(r.reader.read());
  }
  // A count that is out of date changes nothing.
  ASSERT_TRUE(r.send(line));
  r.writer.heard(r.reader.read());
  r.used_start = false;
  ASSERT_TRUE(r.send(line));
  EXPECT_FALSE(r.used_start);
  EXPECT_EQ(r.receive(), line);
  EXPECT_EQ(r.receive(), line);
  EXPECT_EQ(r.receive(), 0u);
}

TEST(ring, payloads_that_look_like_the_next_header_are_not_taken_for_it) {
  // Every word of a payload looks like the header of message n, of one line.
  for (std::uint32_t shift = 0; shift < 6; ++shift) {
    ring r(16 * line);
    for (std::uint32_t i = 1; i <= 300; ++i) {
      std::size_t bytes = header_bytes + i % 3 * line + 8;
      message_header* header = r.writer.reserve(bytes);
      ASSERT_NE(header, nullptr);
      auto* words = reinterpret_cast<std::uint64_t*>(header + 1);
      for (std::size_t w = 0; w < (bytes - header_bytes) / 8; ++w) {
        words[w] = static_cast<std::uint64_t>(i + shift) << 32 | line;
      }
      header->ticket = i;
      r.writer.commit(header);
      ASSERT_NE(r.reader.next(), nullptr);
      ASSERT_EQ(r.reader.next()->ticket, i);
      ASSERT_EQ(r.reader.next()->length(), bytes);
      r.reader.consume(bytes);
      ASSERT_EQ(r.reader.next(), nullptr) << "message " << i << " shift " << shift;
      if (i % 5 == 0 || i % 7 == 0) r.writer.heard(r.reader.read());
    }
  }
}

TEST(ring, a_message_at_the_start_does_not_lie_where_the_reader_looks_besides) {
  // The message's payload is written before it is committed, and may look like any message.
  for (std::size_t first = 1; first <= 6; ++first) {
    for (std::size_t second = 1; second <= 12; ++second) {
      ring r(64 * line);
      ASSERT_TRUE(r.send(first * line));
      ASSERT_EQ(r.receive(), first * line);
      r.writer.heard(r.reader.read());
      message_header* header = r.writer.reserve(second * line);
      auto* words = reinterpret_cast<std::uint64_t*>(header + 1);
      for (std::size_t w = 0; w < (second * line - header_bytes) / 8; ++w) {
        words[w] = std::uint64_t{2} << 32 | line;
      }
      EXPECT_FALSE(r.reader.has_message()) << first << " lines, then " << second;
      EXPECT_EQ(r.reader.next(), nullptr) << first << " lines, then " << second;
      header->ticket = 2;
      r.writer.commit(header);
      ASSERT_EQ(r.reader.next(), header);
      EXPECT_EQ(r.reader.next()->length(), second * line);
    }
  }
}

TEST(ring, what_is_written_behind_a_message_at_the_start_is_not_taken_for_it) {
  // The reader stands behind message 1; message 2 is at the start, and at the place behind message
  // 1 the payload of message 3 looks like message 2.
  ring r(64 * line);
  ASSERT_TRUE(r.send(3 * line));
  ASSERT_EQ(r.receive(), 3 * line);
  r.writer.heard(r.reader.read());
  ASSERT_TRUE(r.send(2 * line));
  ASSERT_TRUE(r.used_start);
  message_header* third = r.writer.reserve(4 * line);
  auto* words = reinterpret_cast<std::uint64_t*>(third + 1);
  for (std::size_t w = 0; w < (4 * line - header_bytes) / 8; ++w)
    words[w] = std::uint64_t{2} << 32 | line;
  EXPECT_EQ(r.receive(), 2 * line);
}

TEST(ring, messages_that_do_not_fit_at_the_end_start_again_at_the_beginning) {
  // From every position, with every length that a ring takes.
  constexpr std::size_t lines = 16;
  for (std::size_t before = 0; before < lines; ++before) {
    for (std::size_t length = 1; length <= lines / 4; ++length) {
      ring r(lines * line);
      for (std::size_t i = 0; i < before; ++i) {
        ASSERT_TRUE(r.send(line));
        ASSERT_EQ(r.receive(), line);
      }
      r.reader.tell();
      int fitted = 0;
      while (r.send(length * line)) ++fitted;
      EXPECT_GE(fitted, 2) << before << " lines in, messages of " << length;
      for (int i = 0; i < fitted; ++i) EXPECT_EQ(r.receive(), length * line);
      EXPECT_EQ(r.receive(), 0u);
      EXPECT_FALSE(r.reader.has_message());
    }
  }
}

TEST(ring, an_empty_one_has_room_for_a_quarter_though_nothing_is_told) {
  // Otherwise a writer could wait for ever for a reader that has nothing more to read.
  constexpr std::size_t lines = 32;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::minstd_rand random(seed + 1);
    ring r(lines * line);
    for (int i = 0; i < 100; ++i) {
      std::size_t bytes = header_bytes + random() % (lines * line / 4 - header_bytes + 1);
      ASSERT_TRUE(r.send(bytes)) << "seed " << seed << ", message " << i << " of " << bytes;
      ASSERT_EQ(r.receive(), bytes);
    }
  }
}

TEST(ring, random_operations_keep_order_and_content) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::minstd_rand random(seed + 1);
    ring r(64 * line);
    std::vector<std::size_t> lengths;
    std::size_t next = 0;
    std::uint32_t news = 0;
    for (int i = 0; i < 2000; ++i) {
      switch (random() % 8) {
        case 0:
          if (random() % 2 == 0) {
            r.reader.tell();
          } else {
            // Sometimes the writer hears a count that is out of date.
            if (random() % 2 == 0) news = r.reader.read();
            r.writer.heard(news);
          }
          break;
        case 1:
        case 2:
        case 3:
        case 4: {
          std::size_t bytes = header_bytes + random() % (16 * line - header_bytes + 1);
          if (random() % 4 != 0) bytes = header_bytes + bytes % 100;
          if (r.send(bytes)) lengths.push_back(bytes);
          break;
        }
        default: {
          std::size_t bytes = r.receive();
          ASSERT_EQ(bytes, next < lengths.size() ? lengths[next] : 0) << "seed " << seed;
          if (bytes != 0) ++next;
        }
      }
    }
  }
}

TEST(ring, two_threads_exchange_messages_of_random_sizes) {
  constexpr std::uint64_t messages = 60000;
  constexpr std::size_t capacity = 16 << 10;
  ring r(capacity);
  r.concurrent = true;
  std::thread writer([&] {
    std::minstd_rand random(7);
    while (r.sent < messages) {
      std::size_t most = random() % 8 == 0 ? capacity / 4 : 3 * line;
      std::size_t bytes = header_bytes + random() % (most - header_bytes + 1);
      while (!r.send(bytes)) std::this_thread::yield();
    }
  });
  std::minstd_rand random(7);
  while (r.received < messages) {
    std::size_t most = random() % 8 == 0 ? capacity / 4 : 3 * line;
    std::size_t expected = header_bytes + random() % (most - header_bytes + 1);
    std::size_t bytes;
    while ((bytes = r.receive()) == 0) std::this_thread::yield();
    ASSERT_EQ(bytes, expected) << "message " << r.received;
  }
  writer.join();
  EXPECT_EQ(r.receive(), 0u);
}

}  // namespace
