// SPDX-License-Identifier: Apache-2.0
#include "rpc/read_in_parts.hpp"

#include <cstring>
#include <vector>

#include "rpc/rank_test.hpp"
#include "sojourn/rank.hpp"

namespace {

using namespace sojourn::detail;

constexpr std::size_t all_bytes = 10'000;
constexpr std::size_t part_bytes = 997;
constexpr std::size_t parts = (all_bytes + part_bytes - 1) / part_bytes;

std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 256); }

/// Another rank's memory, whose parts come while the reader waits. The part with the number
/// `failing` does not come.
struct distant_memory {
  std::size_t failing = parts;
  std::size_t asked = 0;
  std::size_t answered = 0;
  std::size_t in_flight_max = 0;

  auto ask() {
    return [this](std::size_t offset, std::size_t bytes) {
      CLAIM(offset == asked * part_bytes);
      const std::size_t number = asked++;
      in_flight_max = std::max(in_flight_max, asked - answered);
      const ticket_id id = ticket_open();
      later([this, id, number, offset, bytes] {
        ++answered;
        if (number == failing) return send_exception(id, std::make_exception_ptr(number));
        std::vector<std::byte> part(bytes);
        for (std::size_t i = 0; i < bytes; ++i) part[i] = byte_at(offset + i);
        send_result(id, part.data(), bytes);
      });
      return id;
    };
  }
};

bool are_right(const std::byte* read) {
  for (std::size_t i = 0; i < all_bytes; ++i) {
    if (read[i] != byte_at(i)) return false;
  }
  return true;
}

/// A place where results cannot land, because frames of other fibers may lie there while the fiber
/// waits.
std::byte* on_a_stack() {
  const std::uint32_t slot = slots.acquire();
  return reinterpret_cast<std::byte*>(slots.high(slot) - 2 * all_bytes);
}

void reads(std::byte* to, std::size_t copies) {
  CLAIM(parts_in_flight(to).copies() == copies);
  distant_memory there;
  read_in_parts(to, all_bytes, part_bytes, there.ask());
  CLAIM(are_right(to));
  CLAIM(there.asked == parts);
  CLAIM(there.in_flight_max == 4);
  CLAIM(tickets_open() == 0);
}
void reads_each_part() {
  in_a_fiber([] {
    static std::byte place[all_bytes];
    reads(place, 1);
    reads(on_a_stack(), 2);
  });
}
TEST(read_in_parts, each_part_comes_to_its_place_and_some_are_asked_for_ahead) {
  EXPECT_CLAIMS(reads_each_part);
}

void fails(std::byte* to) {
  distant_memory there;
  there.failing = 5;
  std::size_t caught = 0;
  try {
    read_in_parts(to, all_bytes, part_bytes, there.ask());
  } catch (const std::size_t& number) {
    caught = number;
  }
  CLAIM(caught == there.failing);
  CLAIM(there.asked < parts);
  // Parts that come later must not be written to the reader's memory.
  std::memset(to, 0, all_bytes);
  while (there.answered != there.asked) sojourn::yield();
  for (std::size_t i = 0; i < all_bytes; ++i) CLAIM(to[i] == std::byte{0});
  CLAIM(tickets_open() == 0);
}
void ends_with_what_came_instead() {
  in_a_fiber([] {
    static std::byte place[all_bytes];
    fails(place);
    fails(on_a_stack());
  });
}
TEST(read_in_parts, throws_what_came_instead_and_nothing_is_written_later) {
  EXPECT_CLAIMS(ends_with_what_came_instead);
}

}  // namespace
