// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <cstddef>

namespace sojourn::detail {
namespace {

bool is_control(unsigned char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f; }

/// Characters of three bytes that hide text or show it in another order: U+200B to U+200F, U+2028
/// to U+202E, U+2060 to U+206F and U+FEFF, as they are written in UTF-8.
bool is_invisible(unsigned bytes) {
  return (bytes >= 0xe2808b && bytes <= 0xe2808f) || (bytes >= 0xe280a8 && bytes <= 0xe280ae) ||
         (bytes >= 0xe281a0 && bytes <= 0xe281af) || bytes == 0xefbbbf;
}

/// Length of the UTF-8 sequence with which `text` begins; 0 when it begins with none, with one of
/// the control characters from U+0080 to U+009F, or with an invisible character.
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto continues = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return false;
    }
    return true;
  };
  unsigned first = byte(0);
  if (first >= 0xc2 && first <= 0xdf && continues(1, 1)) {
    return first == 0xc2 && byte(1) < 0xa0 ? 0 : 2;
  }
  if (first >= 0xe0 && first <= 0xef && continues(1, 2)) {
    bool overlong = first == 0xe0 && byte(1) < 0xa0;
    bool surrogate = first == 0xed && byte(1) > 0x9f;
    return overlong || surrogate || is_invisible(byte(0) << 16 | byte(1) << 8 | byte(2)) ? 0 : 3;
  }
  if (first >= 0xf0 && first <= 0xf4 && continues(1, 3)) {
    bool overlong = first == 0xf0 && byte(1) < 0x90;
    bool too_large = first == 0xf4 && byte(1) > 0x8f;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    auto c = static_cast<unsigned char>(text.front());
    std::size_t length = c < 0x80 ? (is_control(c) ? 0 : 1) : sequence_length(text);
    if (length == 0) {
      shown += {'\\', 'x', digits[c >> 4], digits[c & 15]};
      length = 1;
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

void make_printable(char* text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(text[i]));
  };
  for (; *text != 0; ++text) {
    if (is_control(static_cast<unsigned char>(*text))) *text = '?';
    if (text[1] != 0 && text[2] != 0 && is_invisible(byte(0) << 16 | byte(1) << 8 | byte(2)))
      text[0] = text[1] = text[2] = '?';
  }
}

}  // namespace sojourn::detail
