// SPDX-License-Identifier: Apache-2.0
#include "base/cut_text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace sojourn::detail {
namespace {

constexpr std::string_view mark = "...";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Puts the mark at the end of a text that was cut after `held` bytes. Returns its new length.
std::size_t end_with_mark(char* text, std::size_t held) {
  if (held < mark.size()) return held;
  constexpr std::size_t character_max = 4;
  const std::size_t last = held - mark.size();
  std::size_t end = last;
  while (end > 0 && last - end < character_max && continues_character(text[end])) --end;
  // If the bytes are no characters, the text may be cut anywhere.
  if (continues_character(text[end])) end = last;
  std::memcpy(text + end, mark.data(), mark.size());
  return end + mark.size();
}

}  // namespace

std::size_t put_text(char* to, std::size_t room, std::string_view text) {
  const std::size_t held = std::min(text.size(), room);
  std::memcpy(to, text.data(), held);
  return held < text.size() ? end_with_mark(to, held) : held;
}

void vprint_text(char* to, std::size_t room, const char* format, va_list arguments) {
  const int length = std::vsnprintf(to, room, format, arguments);
  if (length < 0 || static_cast<std::size_t>(length) < room) return;
  to[end_with_mark(to, room - 1)] = 0;
}

void print_text(char* to, std::size_t room, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprint_text(to, room, format, arguments);
  va_end(arguments);
}

}  // namespace sojourn::detail
