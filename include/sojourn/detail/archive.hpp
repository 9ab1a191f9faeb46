// SPDX-License-Identifier: Apache-2.0
// The three archives of marshalling: one counts bytes, one writes them into room of that size, and
// one reads them and checks everything. User code sees them as cereal's archives: they are called
// with values, and have is_saving and is_loading. codec.hpp says how a value of a type is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sojourn/errors.hpp"

// A name that types annotated for cereal use. Declared here, so that their definitions need no
// header of cereal for it.
namespace cereal {
class access;
}

namespace sojourn {

/// Bytes that came from another rank do not hold the values that they should. None of them was
/// used.
struct malformed_message : error {
  using error::error;
};

namespace detail {

/// How deep values may be nested: containers in containers, owners of owners. Each level takes
/// stack.
inline constexpr int nesting_max = 64;
/// Contiguous bytes, if at least this many, may stay out of the message, and are copied once, from
/// where they are to where they shall be.
inline constexpr std::size_t block_min = 64u << 10;
/// A block that stayed out is read in parts of about this size.
inline constexpr std::size_t block_part = 1u << 20;
/// The most bytes that one message may hold, including its blocks.
inline constexpr std::uint64_t marshalled_max = (std::uint64_t{1} << 30) + (64u << 20);

[[noreturn]] void malformed(const char* what);
[[noreturn]] void malformed_count(std::uint64_t count, std::uint64_t bytes_left);
[[noreturn]] void nested_too_deep();
[[noreturn]] void cannot_be_saved(const char* what);
/// Asks the system for large pages in memory that has not been used yet, if it is long enough.
void want_large_pages(void* memory, std::size_t bytes);

constexpr std::size_t padding(std::size_t at, std::size_t alignment) {
  return (alignment - at % alignment) % alignment;
}

/// The alignment of a block of so many bytes in a message. Long blocks lie at a multiple of 16, as
/// memory from an allocator does: on Zen 3 and 4 the processor's string copy, which memcpy uses,
/// takes 14 times as long when the target lies 1 to 15 bytes behind the source, modulo the size of
/// a page.
constexpr std::size_t block_alignment(std::size_t bytes, std::size_t alignment) {
  return bytes >= 2048 ? 16 : alignment;
}

/// Keeps blocks that stay out of a message.
class block_keeper {
 public:
  /// Returns the address from which the receiver is to read the bytes. `borrowed`: the bytes may be
  /// gone by the time the receiver reads them, so they are copied.
  virtual std::uint64_t keep(const void* first, std::size_t bytes, bool borrowed) = 0;

 protected:
  virtual ~block_keeper() = default;
};

/// Where a reader finds the blocks that stayed out of a message. It also has room for values that
/// are read in place.
class block_source {
 public:
  /// Throws malformed_message when there are no such bytes. Called before memory is allocated for
  /// them.
  virtual void expect(std::uint64_t address, std::size_t bytes) = 0;
  /// Copies `bytes` bytes from `address`, in whatever way is possible. May suspend.
  virtual void read(std::uint64_t address, void* to, std::size_t bytes) = 0;
  /// Room aligned to 16, valid as long as the values that are read.
  virtual std::byte* room(std::size_t bytes) = 0;

 protected:
  virtual ~block_source() = default;
};

/// Counts the bytes that a writer would write, with long blocks (whole) and without (skeleton).
template <class Access>
class basic_sizer {
 public:
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  void put(const void*, std::size_t bytes) {
    whole_ += bytes;
    skeleton_ += bytes;
  }
  void block(const void*, std::size_t bytes, std::size_t alignment, bool) {
    alignment = block_alignment(bytes, alignment);
    whole_ += padding(whole_, alignment) + bytes;
    if (bytes >= block_min) {
      skeleton_ += sizeof(std::uint64_t);
    } else {
      skeleton_ += padding(skeleton_, alignment) + bytes;
    }
  }
  void enter() {
    if (++depth_ > nesting_max) nested_too_deep();
  }
  void leave() { --depth_; }
  void enter_user() { enter(); }
  void leave_user() { leave(); }

  std::size_t whole() const { return whole_; }
  std::size_t skeleton() const { return skeleton_; }

  template <class... T>
  basic_sizer& operator()(T&&... values);
  template <class T>
  basic_sizer& operator&(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }
  template <class T>
  basic_sizer& operator<<(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }

 private:
  std::size_t whole_ = 0;
  std::size_t skeleton_ = 0;
  int depth_ = 0;
};

/// Writes into room that a sizer has measured. `keeper`: takes the long blocks.
template <class Access>
class basic_writer {
 public:
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  basic_writer(std::byte* room, std::size_t bytes, block_keeper* keeper = nullptr)
      : first_(room), at_(room), end_(room + bytes), keeper_(keeper) {}

  void put(const void* from, std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(end_ - at_)) [[unlikely]]
      cannot_be_saved("its `save` writes more the second time");
    if (bytes != 0) std::memcpy(at_, from, bytes);
    at_ += bytes;
  }
  void block(const void* from, std::size_t bytes, std::size_t alignment, bool borrowed) {
    if (keeper_ != nullptr && bytes >= block_min) {
      std::uint64_t address = keeper_->keep(from, bytes, borrowed || user_depth_ > 0);
      return put(&address, sizeof address);
    }
    static constexpr std::byte zeros[16] = {};
    put(zeros, padding(static_cast<std::size_t>(at_ - first_), block_alignment(bytes, alignment)));
    put(from, bytes);
  }
  void enter() {}
  void leave() {}
  /// Between enter_user() and leave_user() blocks count as borrowed: what a user's function passes
  /// to the archive may be gone when that function returns.
  void enter_user() { ++user_depth_; }
  void leave_user() { --user_depth_; }

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  template <class... T>
  basic_writer& operator()(T&&... values);
  template <class T>
  basic_writer& operator&(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }
  template <class T>
  basic_writer& operator<<(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }

 private:
  std::byte* first_;
  std::byte* at_;
  std::byte* end_;
  block_keeper* keeper_;
  int user_depth_ = 0;
};

/// Reads values; throws malformed_message before it uses anything impossible. `kept`: long blocks
/// were left out. `source`: where these are, and room for views; without a source, views are read
/// in place.
template <class Access>
class basic_reader {
 public:
  using is_saving = std::false_type;
  using is_loading = std::true_type;

  /// Requires: `first` is aligned to 16.
  basic_reader(const std::byte* first, std::size_t bytes, block_source* source = nullptr,
               bool kept = false)
      : first_(first), at_(first), end_(first + bytes), source_(source), kept_(kept) {}

  void get(void* to, std::size_t bytes) {
    if (bytes > left()) [[unlikely]]
      malformed("it ends too early");
    if (bytes != 0) std::memcpy(to, at_, bytes);
    at_ += bytes;
    copied_ += bytes;
  }
  template <class T>
  T get() {
    T value;
    get(&value, sizeof value);
    return value;
  }
  /// Reads a number of elements, each of which takes at least `least` bytes.
  std::size_t count(std::size_t least) {
    auto n = get<std::uint64_t>();
    if (n > left() / least) [[unlikely]]
      malformed_count(n, left());
    return static_cast<std::size_t>(n);
  }
  /// Reads the number of elements of a block.
  std::size_t block_count(std::size_t element) {
    auto n = get<std::uint64_t>();
    std::uint64_t most = left();
    if (kept_ && n >= block_min / element) most = marshalled_max;
    if (n > most / element) [[unlikely]]
      malformed_count(n, most);
    return static_cast<std::size_t>(n);
  }
  /// Called before memory is allocated for a block: if the block was left out, checks that it
  /// exists.
  void expect_block(std::size_t bytes) {
    if (!stays_out(bytes)) return;
    std::uint64_t address = 0;
    if (sizeof address > left()) malformed("it ends too early");
    std::memcpy(&address, at_, sizeof address);
    source_->expect(address, bytes);
  }
  /// Reads a block that was left out, in parts that fit the caches. grow(n) makes room for the
  /// first n bytes, clears the new ones among them, and returns their address. False when the block
  /// is in the message.
  template <class Grow>
  bool block_in_parts(std::size_t bytes, std::size_t part, Grow grow) {
    if (!stays_out(bytes)) return false;
    copied_ += bytes;
    const auto address = get<std::uint64_t>();
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t n = bytes - done < part ? bytes - done : part;
      std::byte* const first = grow(done + n);
      source_->read(address + done, first + done, n);
      done += n;
    }
    return true;
  }
  void block(void* to, std::size_t bytes, std::size_t alignment) {
    if (stays_out(bytes)) return read_block(to, bytes);
    align(block_alignment(bytes, alignment));
    get(to, bytes);
  }
  /// Where the bytes of a block lie in the message, to be copied from there; null when they must be
  /// read with block().
  const std::byte* block_here(std::size_t bytes, std::size_t alignment) {
    if (stays_out(bytes)) return nullptr;
    copied_ += bytes;
    return skip(bytes, alignment);
  }
  /// For a view: where the bytes lie, or where they were copied to.
  const std::byte* in_place(std::size_t bytes, std::size_t alignment) {
    if (source_ == nullptr) return skip(bytes, alignment);
    expect_block(bytes);
    std::byte* room = source_->room(bytes);
    block(room, bytes, alignment);
    return room;
  }
  void enter() {
    if (++depth_ > nesting_max) [[unlikely]]
      malformed("its values are nested too deep");
  }
  void leave() { --depth_; }
  void enter_user() { enter(); }
  void leave_user() { leave(); }

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void expect_end() const {
    if (at_ != end_) malformed("bytes are left over");
  }
  /// How many bytes were copied, rather than used where they lie.
  std::uint64_t copied() const { return copied_; }

  template <class... T>
  basic_reader& operator()(T&&... values);
  template <class T>
  basic_reader& operator&(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }
  template <class T>
  basic_reader& operator>>(T&& value) {
    return (*this)(static_cast<T&&>(value));
  }

 private:
  bool stays_out(std::size_t bytes) const { return kept_ && bytes >= block_min; }
  void read_block(void* to, std::size_t bytes) {
    copied_ += bytes;
    auto address = get<std::uint64_t>();
    source_->read(address, to, bytes);
  }
  const std::byte* skip(std::size_t bytes, std::size_t alignment) {
    align(block_alignment(bytes, alignment));
    if (bytes > left()) [[unlikely]]
      malformed("it ends too early");
    return std::exchange(at_, at_ + bytes);
  }
  void align(std::size_t alignment) {
    std::size_t n = padding(static_cast<std::size_t>(at_ - first_), alignment);
    if (n > left()) [[unlikely]]
      malformed("it ends too early");
    at_ += n;
  }

  const std::byte* first_;
  const std::byte* at_;
  const std::byte* end_;
  block_source* source_;
  std::uint64_t copied_ = 0;
  int depth_ = 0;
  bool kept_;
};

// Their template argument is a class of cereal, so that functions that take an archive are also
// looked up in cereal's namespace: those of cereal/types/*.hpp, if the program includes these.
using sizer = basic_sizer<cereal::access>;
using writer = basic_writer<cereal::access>;
using reader = basic_reader<cereal::access>;

}  // namespace detail
}  // namespace sojourn
