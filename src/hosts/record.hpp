// SPDX-License-Identifier: Apache-2.0
// The fields of a message between the head of a job and an agent, one behind the other: numbers of
// eight bytes, and texts behind their length. Both ends have the same byte order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace sojourn::detail {

class record_writer {
 public:
  record_writer& number(std::uint64_t n) {
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof n);
    return *this;
  }
  record_writer& text(std::string_view t) {
    number(t.size());
    bytes_.append(t);
    return *this;
  }
  /// A structure without pointers. Both ends run the same code.
  template <class T>
  record_writer& object(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return text({reinterpret_cast<const char*>(&value), sizeof value});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What is not there reads as 0 and "", and is_sound() is false from then on.
class record_reader {
 public:
  /// `bytes` stay as long as this is used.
  explicit record_reader(std::string_view bytes) : left_(bytes) {}

  std::uint64_t number() {
    std::uint64_t n = 0;
    if (left_.size() < sizeof n) return fail(), 0;
    std::memcpy(&n, left_.data(), sizeof n);
    left_.remove_prefix(sizeof n);
    return n;
  }
  int small_number() { return static_cast<int>(number()); }
  std::string text() {
    const std::uint64_t size = number();
    if (left_.size() < size) return fail(), "";
    std::string t(left_.substr(0, size));
    left_.remove_prefix(size);
    return t;
  }
  /// False, and `value` is as it was, where there is none of its length.
  template <class T>
  bool object(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::string bytes = text();
    if (bytes.size() != sizeof value) return false;
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return true;
  }
  bool is_sound() const { return is_sound_; }
  bool at_end() const { return left_.empty(); }

 private:
  void fail() {
    is_sound_ = false;
    left_ = {};
  }

  std::string_view left_;
  bool is_sound_ = true;
};

}  // namespace sojourn::detail
