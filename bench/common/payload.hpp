// SPDX-License-Identifier: Apache-2.0
//
// What is sent, so that a receiver can see that it is that: bytes that depend on the sender and on
// their place, and in front of them, where there is room, the message's number. Knows nothing of
// Sojourn, so that the peers can share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace bench {

constexpr std::size_t number_bytes = sizeof(std::uint64_t);

inline unsigned char payload_byte(std::size_t at, int sender) {
  return static_cast<unsigned char>(at * 31 + at / 251 + static_cast<std::size_t>(sender) * 97 + 7);
}

inline void fill_payload(void* bytes, std::size_t count, int sender) {
  auto* first = static_cast<unsigned char*>(bytes);
  for (std::size_t i = 0; i < count; ++i) first[i] = payload_byte(i, sender);
}
inline std::vector<char> payload_of(std::size_t count, int sender) {
  std::vector<char> bytes(count);
  fill_payload(bytes.data(), count, sender);
  return bytes;
}

/// All but the number is as the sender filled it.
inline bool is_payload(const void* bytes, std::size_t count, int sender) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = number_bytes; i < count; ++i) {
    if (first[i] != payload_byte(i, sender)) return false;
  }
  return true;
}
inline bool is_payload_of(const std::vector<char>& bytes, int sender) {
  return is_payload(bytes.data(), bytes.size(), sender);
}

inline void number_payload(void* bytes, std::size_t count, std::uint64_t number) {
  std::memcpy(bytes, &number, std::min(count, number_bytes));
}
inline void number_payload(std::vector<char>& bytes, std::uint64_t number) {
  number_payload(bytes.data(), bytes.size(), number);
}
inline bool has_number(const void* bytes, std::size_t count, std::uint64_t number) {
  return std::memcmp(bytes, &number, std::min(count, number_bytes)) == 0;
}
inline bool has_number(const std::vector<char>& bytes, std::uint64_t number) {
  return has_number(bytes.data(), bytes.size(), number);
}

}  // namespace bench
