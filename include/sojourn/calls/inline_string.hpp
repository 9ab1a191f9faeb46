// SPDX-License-Identifier: Apache-2.0
// A string stored in place, so that it travels: for keys and short values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sojourn {

/// Up to `Capacity` characters in the object itself; trivially copyable. Not NUL-terminated.
/// Errors: std::length_error when what is assigned is longer.
template <std::size_t Capacity>
class inline_string {
  static_assert(Capacity > 0 && Capacity < 65536);
  using size_type = std::conditional_t<(Capacity < 256), std::uint8_t, std::uint16_t>;

 public:
  constexpr inline_string() = default;
  constexpr inline_string(std::string_view text) { assign(text); }
  constexpr inline_string(const char* text) { assign(text); }
  constexpr inline_string(const std::string& text) { assign(text); }

  static constexpr std::size_t capacity() { return Capacity; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const char* data() const { return text_; }
  constexpr const char* begin() const { return text_; }
  constexpr const char* end() const { return text_ + size_; }
  constexpr char operator[](std::size_t i) const { return text_[i]; }
  constexpr std::string_view view() const { return {text_, size_}; }
  constexpr operator std::string_view() const { return view(); }
  std::string str() const { return std::string(view()); }

  friend constexpr bool operator==(const inline_string& a, const inline_string& b) {
    return a.view() == b.view();
  }
  friend constexpr std::strong_ordering operator<=>(const inline_string& a,
                                                    const inline_string& b) {
    return a.view() <=> b.view();
  }
  friend std::ostream& operator<<(std::ostream& out, const inline_string& s) {
    return out << s.view();
  }

 private:
  constexpr void assign(std::string_view text) {
    if (text.size() > Capacity) {
      throw std::length_error("inline_string: a text of " + std::to_string(text.size()) +
                              " characters does not fit in " + std::to_string(Capacity));
    }
    size_ = static_cast<size_type>(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) text_[i] = text[i];
  }

  size_type size_ = 0;
  char text_[Capacity] = {};
};

}  // namespace sojourn

template <std::size_t Capacity>
struct std::hash<sojourn::inline_string<Capacity>> {
  std::size_t operator()(const sojourn::inline_string<Capacity>& s) const {
    return std::hash<std::string_view>()(s.view());
  }
};
