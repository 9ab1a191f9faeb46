// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/page_message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sojourn::detail::pages {

namespace {

/// Stands for the number of differences when the whole clock follows, because that is shorter.
constexpr std::uint16_t all_of_it = std::numeric_limits<std::uint16_t>::max();
/// The bytes of a difference: a rank, and the number of an interval.
constexpr std::size_t difference_bytes = sizeof(std::uint16_t) + sizeof(std::uint32_t);

}  // namespace

void message_writer::put_clock(std::span<const std::uint32_t> clock,
                               std::span<const std::uint32_t> like) {
  const auto differs = [&](std::size_t q) { return clock[q] != (like.empty() ? 0 : like[q]); };
  std::size_t count = 0;
  for (std::size_t q = 0; q < clock.size(); ++q) count += differs(q) ? 1 : 0;
  if (count * difference_bytes >= clock.size_bytes()) {
    put(all_of_it);
    return put_clock(clock);
  }
  put(static_cast<std::uint16_t>(count));
  for (std::size_t q = 0; q < clock.size(); ++q) {
    if (!differs(q)) continue;
    put(static_cast<std::uint16_t>(q));
    put(clock[q]);
  }
}

void page_message_reader::take_clock(std::span<std::uint32_t> to,
                                     std::span<const std::uint32_t> like) {
  const auto count = take<std::uint16_t>();
  if (count == all_of_it) return take_clock(to);
  if (like.empty())
    std::fill(to.begin(), to.end(), 0);
  else if (like.data() != to.data())
    std::copy(like.begin(), like.end(), to.begin());
  for (std::uint16_t left = count; left != 0; --left) {
    const auto q = take<std::uint16_t>();
    require(q < to.size(), "names a rank that does not exist");
    to[q] = take<std::uint32_t>();
  }
}

}  // namespace sojourn::detail::pages
