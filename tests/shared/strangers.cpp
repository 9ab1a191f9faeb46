// SPDX-License-Identifier: Apache-2.0
#include "strangers.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "shared/pages/page_message.hpp"

namespace simulated {

using sojourn::detail::pages::message_head;

void strangers::change(std::vector<std::byte>& message) {
  const auto somewhere = [&](std::size_t width) {
    // Half of all changes are to the head.
    const std::size_t end =
        chance_() % 2 == 0 ? std::min(message.size(), sizeof(message_head)) : message.size();
    return end <= width ? 0 : chance_() % (end - width + 1);
  };
  for (auto left = 1 + chance_() % 3; left != 0 && !message.empty(); --left) {
    switch (chance_() % 6) {
      case 0:
        message.resize(chance_() % message.size());
        break;
      case 1:
        message.resize(message.size() + 1 + chance_() % 64, std::byte(chance_()));
        break;
      case 2:
        message[somewhere(1)] = std::byte(chance_());
        break;
      default: {
        constexpr std::uint32_t likely[] = {0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff};
        const auto value = chance_() % 3 == 0 ? static_cast<std::uint32_t>(chance_() % 64)
                                              : likely[chance_() % std::size(likely)];
        const std::size_t width = chance_() % 2 == 0 ? sizeof value : sizeof(std::uint16_t);
        if (message.size() >= width) std::memcpy(&message[somewhere(width)], &value, width);
        break;
      }
    }
  }
}

}  // namespace simulated
