// SPDX-License-Identifier: Apache-2.0
#include "transport/far/far_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace sojourn::detail;
using shm::message_header;

constexpr std::size_t capacity = far_rank::ring_bytes;
constexpr std::size_t short_max = far_rank::short_bytes;
constexpr std::size_t payload_max = 1 << 20;

/// One rank's end of a pair of far ranks. Its transport is no more than the rings.
struct end : far_rank::long_messages {
  explicit end(std::uint32_t last_number = 0)
      : other(payload_max, *this, std::pmr::new_delete_resource(), last_number) {
    other.attach(out, in, false);
  }

  std::span<const std::byte> payload(const message_header& h) const override {
    return long_ones.at(&h);
  }
  void free(const message_header& h) override { long_ones.erase(&h); }

  /// False when there is no room.
  bool write(message_class kind, std::uint64_t ticket, std::size_t bytes) {
    auto& ring = out[static_cast<std::size_t>(kind)];
    const bool is_long = header_bytes + bytes > short_max;
    const std::size_t in_ring =
        is_long ? header_bytes + 16 : shm::bytes_in_ring(header_bytes + bytes);
    message_header* h = ring.reserve(in_ring);
    if (h == nullptr) return false;
    h->ticket = ticket;
    h->handler = static_cast<std::uint16_t>(ticket);
    h->flags = is_long ? transport::flag_long : 0;
    for (std::size_t k = 0; k < 2; ++k) h->heard[k] = in[k].read();
    std::vector<std::byte> content(bytes, std::byte{static_cast<unsigned char>(ticket)});
    if (is_long)
      long_ones[h] = std::move(content);
    else if (bytes != 0)
      std::memcpy(shm::payload_of(h, in_ring), content.data(), bytes);
    ring.commit(h);
    return true;
  }

  struct message {
    std::uint64_t ticket;
    std::size_t bytes;
    bool right;
    friend bool operator==(const message&, const message&) = default;
  };
  /// The next message of a class; its ticket is 0 when there is none.
  message read(message_class kind) {
    auto& ring = in[static_cast<std::size_t>(kind)];
    const message_header* h = ring.next();
    if (h == nullptr) return {0, 0, false};
    for (std::size_t k = 0; k < 2; ++k) out[k].heard(h->heard[k]);
    std::size_t bytes = h->length() - shm::payload_offset(h->length());
    const std::byte* at = shm::payload_of(h, h->length());
    const bool is_long = (h->flags & transport::flag_long) != 0;
    const auto* elsewhere = reinterpret_cast<const far_payload*>(h + 1);
    if (is_long) {
      at = elsewhere->at;
      bytes = elsewhere->bytes;
    }
    message m{h->ticket, bytes, h->handler == static_cast<std::uint16_t>(h->ticket)};
    for (std::size_t i = 0; i < bytes; ++i)
      m.right &= at[i] == std::byte{static_cast<unsigned char>(h->ticket)};
    if (is_long) other.free_payload(*elsewhere);
    if (ring.consume(h->length()) || is_long) other.note_read();
    return m;
  }

  shm::ring_writer out[2];
  shm::ring_reader in[2];
  std::map<const message_header*, std::vector<std::byte>> long_ones;
  far_rank other;
};

/// Carries at most so many frames; returns how many there were.
int carry(end& from, end& to, int most = 1 << 30) {
  far_rank::outgoing f;
  int n = 0;
  while (n < most && from.other.next(f)) {
    const far_rank::incoming at = to.other.begin(f.head);
    EXPECT_EQ(at.why, nullptr);
    if (at.why != nullptr) return n;
    if (at.is_message) {
      if (!f.payload.empty()) std::memcpy(at.room, f.payload.data(), f.payload.size());
      to.other.arrived();
    }
    from.other.sent();
    ++n;
  }
  return n;
}

constexpr auto request = message_class::request;
constexpr auto reply = message_class::reply;

TEST(far_rank, a_message_goes_over_whole) {
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{8}, std::size_t{1000}, std::size_t{100'000}, payload_max}) {
    end a, b;
    ASSERT_TRUE(a.write(request, 77, bytes));
    EXPECT_EQ(carry(a, b), 1);
    EXPECT_EQ(b.read(request), (end::message{77, bytes, true}));
    EXPECT_TRUE(a.long_ones.empty()) << "its memory is not given back";
  }
}

TEST(far_rank, a_long_reply_comes_where_it_belongs) {
  static std::vector<std::byte> place;
  static std::uint64_t asked_for;
  const auto place_of = [](int source, std::uint16_t, std::uint16_t, std::uint64_t ticket,
                           std::size_t bytes) -> std::byte* {
    EXPECT_EQ(source, 3);
    EXPECT_EQ(bytes, 20'000u);
    asked_for = ticket;
    return ticket == 7 ? place.data() + 1 : nullptr;
  };
  place.assign(20'002, std::byte{0});
  end a, b;
  b.other.place_replies(3, place_of);
  // No place is asked for requests or short replies.
  ASSERT_TRUE(a.write(request, 7, 20'000) && a.write(reply, 7, 100));
  EXPECT_EQ(carry(a, b), 2);
  EXPECT_EQ(asked_for, 0u);
  EXPECT_EQ(b.read(request), (end::message{7, 20'000, true}));
  EXPECT_EQ(b.read(reply), (end::message{7, 100, true}));
  ASSERT_TRUE(a.write(reply, 8, 20'000) && a.write(reply, 7, 20'000));
  EXPECT_EQ(carry(a, b, 1), 1);
  EXPECT_EQ(asked_for, 8u);
  EXPECT_EQ(std::ranges::count(place, std::byte{0}), 20'002);
  EXPECT_EQ(carry(a, b), 1);
  EXPECT_EQ(asked_for, 7u);
  EXPECT_EQ(std::ranges::count(place, std::byte{7}), 20'000);
  EXPECT_TRUE(place.front() == std::byte{0} && place.back() == std::byte{0});
  EXPECT_EQ(b.read(reply), (end::message{8, 20'000, true}));
  EXPECT_EQ(b.read(reply), (end::message{7, 20'000, true}));
  // The place of a message that stops coming is not given back, because it was not allocated.
  ASSERT_TRUE(a.write(reply, 7, 20'000));
  far_rank::outgoing f;
  ASSERT_TRUE(a.other.next(f));
  EXPECT_EQ(b.other.begin(f.head).room, place.data() + 1);
  b.other.abandon();
}

TEST(far_rank, requests_that_nobody_reads_hold_up_no_reply_and_take_bounded_memory) {
  for (std::size_t bytes : {std::size_t{40}, std::size_t{1500}, std::size_t{300'000}}) {
    end a, b;
    int carried = 0;
    std::uint64_t written = 0;
    for (int i = 0; i < 5000; ++i) {
      written += a.write(request, written + 1, bytes);
      carried += carry(a, b);
    }
    const std::size_t lines = shm::lines_of(shm::bytes_in_ring(header_bytes + bytes)) / shm::line;
    EXPECT_LE(carried, bytes > short_max ? 4 : static_cast<int>(capacity / 2 / shm::line / lines));
    EXPECT_GE(carried, 2);
    EXPECT_LT(written, 5000u) << "the way is never full";
    ASSERT_TRUE(a.write(reply, 9, 100));
    EXPECT_EQ(carry(a, b), 1);
    EXPECT_EQ(b.read(reply), (end::message{9, 100, true}));
    // When these are read, there is room for the others, without a message the other way.
    std::uint64_t got = 0;
    for (int rounds = 0; rounds < 5000 && got < written; ++rounds) {
      while (b.read(request).ticket == got + 1) ++got;
      carry(b, a);
      carry(a, b);
    }
    EXPECT_EQ(got, written);
  }
}

TEST(far_rank, what_is_read_is_not_said_for_each_message) {
  end a, b;
  int said = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(a.write(request, i, 20));
    EXPECT_EQ(carry(a, b), 1);
    EXPECT_EQ(b.read(request).ticket, i);
    said += carry(b, a);
  }
  EXPECT_GE(said, 1);
  EXPECT_LE(said, 1000 / 30);
}

TEST(far_rank, both_directions_and_classes_at_random) {
  for (std::uint32_t last_number : {0u, ~0u - 200}) {
    end ends[2] = {end(last_number), end(last_number)};
    std::minstd_rand random(11);
    std::uint64_t sent[2][2] = {}, got[2][2] = {};
    for (int i = 0; i < 60'000; ++i) {
      const std::size_t me = random() % 2, k = random() % 2;
      const auto kind = static_cast<message_class>(k);
      switch (random() % 3) {
        case 0: {
          const std::size_t bytes = random() % 40 == 0 ? random() % 50'000 : random() % 8000;
          sent[me][k] += ends[me].write(kind, sent[me][k] + 1, bytes);
          break;
        }
        case 1:
          carry(ends[me], ends[1 - me], static_cast<int>(random() % 4));
          break;
        default:
          for (auto m = ends[me].read(kind); m.ticket != 0; m = ends[me].read(kind)) {
            ASSERT_EQ(m.ticket, ++got[1 - me][k]);
            ASSERT_TRUE(m.right);
            if (random() % 3 == 0) break;
          }
      }
    }
    for (int rounds = 0; rounds < 200; ++rounds) {
      for (std::size_t me : {0u, 1u}) {
        carry(ends[me], ends[1 - me]);
        for (std::size_t k : {0u, 1u}) {
          for (auto m = ends[me].read(static_cast<message_class>(k)); m.ticket != 0;
               m = ends[me].read(static_cast<message_class>(k)))
            ASSERT_EQ(m.ticket, ++got[1 - me][k]);
        }
      }
    }
    for (std::size_t me : {0u, 1u}) {
      for (std::size_t k : {0u, 1u}) {
        EXPECT_EQ(got[me][k], sent[me][k]);
        EXPECT_GT(sent[me][k], 1000u);
      }
    }
  }
}

TEST(far_rank, what_no_rank_sends_is_refused) {
  const auto refused = [](far_frame head) {
    end b;
    const far_rank::incoming at = b.other.begin(head);
    return std::string(at.why == nullptr ? "" : at.why);
  };
  const far_frame good{.bytes = 8,
                       .kind = 0,
                       .handler = 1,
                       .flags = 0,
                       .unused = 0,
                       .number = 1,
                       .ticket = 0,
                       .heard = {}};
  EXPECT_EQ(refused(good), "");
  far_frame f = good;
  f.kind = 3;
  EXPECT_NE(refused(f), "");
  f = good;
  f.kind = far_frame::only_heard;
  EXPECT_NE(refused(f), "");
  f = good;
  f.bytes = payload_max + 1;
  EXPECT_NE(refused(f), "");
  f = good;
  f.flags = transport::flag_long;
  EXPECT_NE(refused(f), "");
  for (std::uint32_t number : {0u, 2u, ~0u}) {
    f = good;
    f.number = number;
    EXPECT_NE(refused(f), "");
  }
  for (std::uint32_t heard : {1u, ~0u}) {
    f = good;
    f.heard[1] = heard;
    EXPECT_NE(refused(f), "");
  }
}

TEST(far_rank, more_than_there_is_room_for_is_refused_and_fills_no_memory) {
  for (std::uint32_t bytes : {100u, 100'000u}) {
    end b;
    std::uint32_t taken = 0;
    for (;; ++taken) {
      far_frame f{};
      f.bytes = bytes;
      f.number = taken + 1;
      const far_rank::incoming at = b.other.begin(f);
      if (at.why != nullptr) break;
      b.other.arrived();
      ASSERT_LT(taken, 100'000u);
    }
    EXPECT_TRUE(bytes <= short_max || taken == 4) << taken;
    while (b.read(request).bytes != 0) {
    }
  }
}

TEST(far_rank, what_is_read_while_a_frame_is_on_its_way_is_said_afterwards) {
  end a, b;
  ASSERT_TRUE(a.write(request, 1, 500'000));
  far_rank::outgoing f;
  ASSERT_TRUE(a.other.next(f));  // the network takes its time
  std::uint64_t written = 0, got = 0;
  while (b.write(request, written + 1, 4000)) ++written;
  carry(b, a);
  while (a.read(request).ticket == got + 1) ++got;
  EXPECT_LT(got, written);
  a.other.sent();
  // Without this frame the other rank would not know that there is room again.
  for (int rounds = 0; rounds < 1000 && got < written; ++rounds) {
    carry(a, b);
    carry(b, a);
    while (a.read(request).ticket == got + 1) ++got;
  }
  EXPECT_EQ(got, written);
}

TEST(far_rank, long_messages_that_were_read_are_no_reason_to_refuse_another) {
  end a, b;
  const auto goes = [&](std::uint64_t ticket, std::size_t bytes) {
    ASSERT_TRUE(a.write(request, ticket, bytes));
    ASSERT_EQ(carry(a, b), 1);
    ASSERT_EQ(b.read(request).ticket, ticket);
    carry(b, a);
  };
  for (int rounds = 0; rounds < 20; ++rounds) {
    for (std::uint64_t i = 0; i < 4; ++i) goes(1 + i, 20'000);
    for (std::uint64_t i = 0; i < 200; ++i) goes(5 + i, 20);
  }
}

TEST(far_rank, there_is_room_for_all_that_goes_to_a_lost_rank) {
  end a;
  std::uint64_t written = 0;
  while (a.write(request, ++written, 1500)) {
  }
  ASSERT_TRUE(a.write(reply, 1, 100'000));
  a.other.lose();
  EXPECT_TRUE(a.long_ones.empty());
  far_rank::outgoing f;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(a.write(request, 1, 1500));
    EXPECT_FALSE(a.other.next(f));
    a.other.throw_away();
  }
}

}  // namespace
