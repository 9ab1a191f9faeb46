// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_transport.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace {

using namespace sojourn::detail;

/// A rank that sends to itself, in memory that the test overwrites as other ranks could.
struct lonely_rank {
  shm::layout layout{1, 1};
  std::byte* memory =
      static_cast<std::byte*>(mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  shm::shm_transport transport{memory, 0, 1, 1};

  lonely_rank() { transport.begin(); }
  ~lonely_rank() { munmap(memory, layout.total_bytes()); }
  lonely_rank(const lonely_rank&) = delete;

  void send_long(std::size_t bytes) {
    std::byte* room = transport.reserve(0, message_class::request, bytes);
    ASSERT_NE(room, nullptr);
    std::memset(room, 1, bytes);
    transport.commit(0, message_class::request, 1, 0, 0);
  }
  /// Overwrites part of where the message says that it lies: its first block, the number of its
  /// blocks, its length.
  template <class T>
  void overwrite(std::size_t offset, T value) {
    auto* ring = reinterpret_cast<shm::ring_memory*>(memory + layout.rings_offset());
    std::memcpy(ring->data() + header_bytes + offset, &value, sizeof value);
  }
  std::size_t poll() {
    std::size_t bytes = 0;
    struct context {
      shm::shm_transport& at;
      std::size_t& bytes;
    } c{transport, bytes};
    transport.poll(
        [](arrival& a, void* p) {
          auto& to = *static_cast<context*>(p);
          to.bytes = a.bytes;
          to.at.consume(a);
          return false;
        },
        &c, 16);
    return bytes;
  }
};

TEST(shm_transport, a_long_message_lies_in_its_senders_blocks) {
  lonely_rank rank;
  const auto last = static_cast<std::uint32_t>(shm::layout::blocks);
  const char* words = "a long message from rank 0 names a place outside the memory for messages";
  rank.send_long(100'000);
  EXPECT_DEATH((rank.overwrite(0, last), rank.poll()), words);
  EXPECT_DEATH((rank.overwrite(0, ~std::uint32_t{0}), rank.poll()), words);
  EXPECT_DEATH((rank.overwrite(4, last + 1), rank.poll()), words);
  EXPECT_DEATH((rank.overwrite(8, std::uint64_t{1} << 40), rank.poll()), words);
  EXPECT_EQ(rank.poll(), 100'000u);
  rank.send_long(rank.transport.payload_max());
  EXPECT_EQ(rank.poll(), rank.transport.payload_max());
}

}  // namespace
