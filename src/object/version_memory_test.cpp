// SPDX-License-Identifier: Apache-2.0
#include "object/version_memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/address_map.hpp"
#include "sojourn/detail/replicas.hpp"

namespace sojourn::detail {

namespace {

struct counted {
  static inline int alive = 0;
  std::string text;
  explicit counted(std::string t) : text(std::move(t)) { ++alive; }
  counted(const counted& other) : text(other.text) { ++alive; }
  ~counted() { --alive; }
  template <class Archive>
  void serialize(Archive& ar) {
    ar(text);
  }
  counted() { ++alive; }
};

class version_memory_of_rank : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    constexpr std::uint64_t gib = 1ull << 30;
    map_region(address_map::divide(0x3100'0000'0000, 64 * gib, 1, 256u << 10), 0, -1);
  }
  version_block* made(const std::string& text) {
    version_block* const block = memory_.take(replica_type_of<counted>);
    ::new (block->object) counted(text);
    return block;
  }
  version_memory memory_;
};

TEST_F(version_memory_of_rank, discards_at_once_what_nobody_has_seen) {
  memory_.discard(made("a"));
  EXPECT_EQ(counted::alive, 0);
}

TEST_F(version_memory_of_rank, frees_in_groups_what_no_frame_uses) {
  for (int i = 0; i < 100; ++i) memory_.retire(made("a text that has memory of its own"), true);
  EXPECT_LT(counted::alive, 8);
  EXPECT_EQ(memory_.retired().size(), static_cast<std::size_t>(counted::alive));
}

TEST_F(version_memory_of_rank, frees_nothing_while_frames_are_unknown) {
  const int before = counted::alive;
  for (int i = 0; i < 100; ++i) memory_.retire(made("b"), false);
  EXPECT_EQ(counted::alive - before, 100);
}

TEST(replica_type, writes_and_reads_a_version) {
  const replica_type& type = replica_type_of<counted>;
  ASSERT_FALSE(type.is_plain);
  const int before = counted::alive;
  const counted original("some text");
  const std::vector<std::byte> bytes = type.write(&original);
  alignas(counted) std::byte room[sizeof(counted)];
  type.read(room, bytes.data(), bytes.size());
  EXPECT_EQ(reinterpret_cast<counted*>(room)->text, "some text");
  type.destroy(room);
  EXPECT_THROW(type.read(room, bytes.data(), bytes.size() - 1), malformed_message);
  EXPECT_EQ(counted::alive - before, 1);
  EXPECT_TRUE(replica_type_of<long>.is_plain);
}

}  // namespace

}  // namespace sojourn::detail
