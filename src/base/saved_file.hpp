// SPDX-License-Identifier: Apache-2.0
// Files of saved state: values are written in an order and read back in the same order. A word
// before them identifies the format, and a checksum follows them. The reader checks that the file
// is whole and undamaged before it gives out the first value, and throws when more is read than was
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace sojourn::detail {

/// Writes a file, and removes it unless it is finished. Throws sojourn::error with the name of the
/// file and the reason.
class file_writer {
 public:
  explicit file_writer(std::string path);
  ~file_writer();
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;

  void bytes(const void* from, std::size_t size);
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&value, sizeof value);
  }
  /// Everything is on the disk when this returns.
  void finish();

 private:
  void flush();
  void write_out(const std::byte* from, std::size_t size);
  [[noreturn]] void failed(const char* what) const;

  std::string path_;
  std::vector<std::byte> buffer_;
  int fd_;
  bool finished_ = false;
  std::size_t filled_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t checksum_ = 0;
};

/// Reads a file that file_writer finished. Throws sojourn::error when the file is missing,
/// incomplete or damaged. The message is only a part of a sentence, because the caller knows what
/// to advise.
class file_reader {
 public:
  explicit file_reader(const std::string& path);
  ~file_reader();
  file_reader(const file_reader&) = delete;
  file_reader& operator=(const file_reader&) = delete;

  void bytes(void* to, std::size_t size);
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    alignas(T) std::byte room[sizeof(T)];
    bytes(room, sizeof room);
    return *reinterpret_cast<T*>(room);
  }
  template <class T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&value, sizeof value);
  }

 private:
  std::string path_;
  std::byte* first_ = nullptr;
  std::size_t mapped_ = 0;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

/// After this, a rename or a new name in the folder of `path` survives a crash of the system.
void sync_folder_of(const std::string& path);

}  // namespace sojourn::detail
