// SPDX-License-Identifier: Apache-2.0
// Containers in files, which jobs of another number of ranks can load (save_all and load_all of
// each container).
//
// The file `path` is a short text that says what was saved; beside it each member has written a
// file of its part, path.NAME.partMEMBER. The members that load share these files among them, and
// give each item to the rank to which it belongs now. `path` is replaced when all parts are on the
// disk, so it always names what is complete, whatever ends a job meanwhile.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sojourn/calls/bytes.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/team.hpp"

namespace sojourn::containers {

/// What the file `path` says.
struct saved_container {
  std::string kind;      ///< Of the container: "dist_map".
  std::string items;     ///< The compiler's name of what its items are.
  std::size_t size = 0;  ///< Where a container has one.
  std::size_t parts = 0;
  std::string name;  ///< Of the files of its parts.

  std::string part(const std::string& path, std::size_t i) const {
    return path + "." + name + ".part" + std::to_string(i);
  }
};

[[noreturn]] inline void refuse_file(const char* what, const std::string& path, int number) {
  throw error(std::string("cannot ") + what + " " + path + ": " + std::strerror(number));
}
[[noreturn]] inline void refuse_damaged(const std::string& path) {
  throw error(path + " is incomplete or damaged: all files of a saved container must be unchanged");
}

/// A file that is written from its beginning to its end, and is on the disk when that is reached.
class new_file {
 public:
  explicit new_file(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_ < 0) refuse_file("write", path_, errno);
  }
  ~new_file() {
    if (file_ >= 0) ::close(file_);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse_file("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void close() {
    if (::fsync(file_) != 0) refuse_file("write", path_, errno);
    const int file = std::exchange(file_, -1);
    if (::close(file) != 0) refuse_file("write", path_, errno);
  }

 private:
  std::string path_;
  int file_;
};

/// Detects damage, not what somebody has changed on purpose.
class checksum {
 public:
  void add(std::span<const std::byte> bytes) {
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    std::uint64_t rest = bytes.size() + 1;
    for (const std::byte b : bytes) rest = rest << 8 | static_cast<std::uint64_t>(b);
    mix(rest);
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15U;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value_ = 0;
};

// A part is a row of items, each behind its length in 4 bytes; then no_length, how many items there
// are, and their checksum.
inline constexpr std::uint32_t no_length = 0xffffffff;
struct end_of_part {
  std::uint64_t items;
  std::uint64_t sum;
};

class part_writer {
 public:
  explicit part_writer(const std::string& path) : file_(path) {}

  template <class... T>
  void put(const T&... values) {
    item_.clear();
    append_bytes(item_, values...);
    if (item_.size() >= no_length) throw error("an item of a container is too long to be saved");
    put_bytes(static_cast<std::uint32_t>(item_.size()));
    bytes_.insert(bytes_.end(), item_.begin(), item_.end());
    sum_.add(item_);
    ++items_;
    if (bytes_.size() >= written_at_once) write();
  }
  void close() {
    put_bytes(no_length);
    put_bytes(end_of_part{items_, sum_.value()});
    write();
    file_.close();
  }

 private:
  static constexpr std::size_t written_at_once = std::size_t{1} << 20;

  template <class T>
  void put_bytes(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void write() {
    file_.write(bytes_);
    bytes_.clear();
  }

  new_file file_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> item_;
  std::uint64_t items_ = 0;
  checksum sum_;
};

class part_reader {
 public:
  explicit part_reader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) refuse_file("read", path_, errno);
  }
  /// The bytes of the next item; nothing at the end. They are here until the next call.
  std::optional<std::span<const std::byte>> next() {
    std::uint32_t length = 0;
    read(&length, sizeof length);
    if (length == no_length) {
      end_of_part end{};
      read(&end, sizeof end);
      if (end.items != items_ || end.sum != sum_.value()) refuse_damaged(path_);
      return std::nullopt;
    }
    item_.clear();
    // In steps: a length that is damaged does not ask for more memory than there are bytes.
    constexpr std::size_t step = std::size_t{1} << 20;
    for (std::size_t left = length; left != 0;) {
      const std::size_t now = std::min(left, step);
      const std::size_t before = item_.size();
      item_.resize(before + now);
      read(item_.data() + before, now);
      left -= now;
    }
    sum_.add(item_);
    ++items_;
    return std::span<const std::byte>(item_);
  }

 private:
  void read(void* to, std::size_t bytes) {
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
      refuse_damaged(path_);
  }

  std::string path_;
  std::ifstream file_;
  std::vector<std::byte> item_;
  std::uint64_t items_ = 0;
  checksum sum_;
};

inline constexpr std::string_view saved_title = "sojourn container 1";
/// Behind the name of a text that is still being written.
inline constexpr const char* new_text = ".new";

inline std::string text_of(const saved_container& saved) {
  return std::string(saved_title) + "\nkind " + saved.kind + "\nitems " + saved.items + "\nsize " +
         std::to_string(saved.size) + "\nparts " + std::to_string(saved.parts) + "\nname " +
         saved.name + "\n";
}
/// Errors: sojourn::error when there is no such file, or another one.
inline saved_container read_saved(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse_file("read", path, errno);
  const auto refuse = [&] {
    throw error(path + " is not a saved container: pass the path that save_all has written to");
  };
  std::string line;
  if (!std::getline(file, line) || line != saved_title) refuse();
  const auto value = [&](std::string_view key) {
    if (!std::getline(file, line) || !line.starts_with(key) || file.eof()) refuse();
    return line.substr(key.size());
  };
  const auto number = [&](std::string_view key) {
    const std::string digits = value(key);
    std::size_t n = 0;
    const char* const end = digits.data() + digits.size();
    if (const auto read = std::from_chars(digits.data(), end, n);
        read.ec != std::errc() || read.ptr != end)
      refuse();
    return n;
  };
  saved_container saved;
  saved.kind = value("kind ");
  saved.items = value("items ");
  saved.size = number("size ");
  saved.parts = number("parts ");
  saved.name = value("name ");
  if (file.peek() != std::ifstream::traits_type::eof()) refuse();
  return saved;
}

/// What `body` throws, in words.
template <class Body>
std::optional<std::string> failure_of(Body body) {
  try {
    body();
  } catch (const std::exception& e) {
    const std::string what = e.what();
    return what.empty() ? "an exception without a text" : what;
  } catch (...) {
    return "an exception that is no std::exception";
  }
  return std::nullopt;
}
/// Collective: what the first member that has something to say says.
inline std::optional<std::string> first_failure(const std::optional<std::string>& mine,
                                                const team& members) {
  for (std::optional<std::string>& theirs : all_gather(mine, members))
    if (theirs) return std::move(theirs);
  return std::nullopt;
}

/// Names of files that belong to what was saved at a path at another time: path.DIGITS.partDIGITS,
/// and path.DIGITS.new, which a job has left that ended while it saved.
inline bool is_of_older(std::string_view name, const std::string& path_name,
                        const saved_container& saved) {
  const auto skip = [&](std::string_view text) {
    if (!name.starts_with(text)) return false;
    name.remove_prefix(text.size());
    return true;
  };
  const auto skip_digits = [&] {
    const std::size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(end);
    return end != 0;
  };
  if (!skip(path_name + ".") || name.starts_with(saved.name + ".") || !skip_digits()) return false;
  return name == new_text || (skip(".part") && skip_digits() && name.empty());
}
inline std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}
/// Removes files that are only in the way, as far as that is possible. Throws nothing.
inline void remove_older(const std::string& path, const saved_container& saved) noexcept try {
  const std::string path_name = std::filesystem::path(path).filename().string();
  std::error_code failed;
  std::filesystem::directory_iterator file(folder_of(path), failed);
  for (; !failed && file != std::filesystem::directory_iterator(); file.increment(failed)) {
    std::error_code ignored;
    if (is_of_older(file->path().filename().string(), path_name, saved))
      std::filesystem::remove(file->path(), ignored);
  }
} catch (...) {
}
/// Has the names of files in a folder on the disk, where its file system can do that.
inline void sync_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  (void)::fsync(folder);
  ::close(folder);
}

/// Puts a new text in the place of the file `path` in one step. When this throws, the older text is
/// still there.
inline void replace_saved(const std::string& path, const saved_container& saved) {
  const std::string fresh = path + "." + saved.name + new_text;
  const std::string text = text_of(saved);
  try {
    new_file file(fresh);
    file.write(std::as_bytes(std::span(text)));
    file.close();
    sync_folder(path);
    if (std::rename(fresh.c_str(), path.c_str()) != 0) refuse_file("write", path, errno);
  } catch (...) {
    std::remove(fresh.c_str());
    throw;
  }
  sync_folder(path);
  remove_older(path, saved);
}

/// Collective: each member calls each_item(put), which calls put(values…) for each item that it
/// has.
template <class... T, class EachItem>
void save_items(const std::string& path, const char* kind, std::size_t size, const team& members,
                EachItem each_item) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string name = broadcast(std::to_string(now), 0, members);
  const saved_container saved{kind, typeid(std::tuple<T...>).name(), size,
                              static_cast<std::size_t>(members.rank_count()), name};
  const std::string mine = saved.part(path, static_cast<std::size_t>(members.rank_me()));
  // Where it is not known whether `path` names the parts, as when a rank is lost, they stay: the
  // next save removes those that are in the way.
  const auto stop_at = [&](const std::optional<std::string>& failure) {
    const std::optional<std::string> first = first_failure(failure, members);
    if (!first) return;
    std::remove(mine.c_str());
    throw error(*first);
  };
  stop_at(failure_of([&] {
    part_writer to(mine);
    each_item([&](const T&... values) { to.put(values...); });
    to.close();
  }));
  stop_at(failure_of([&] {
    if (members.rank_me() == 0) replace_saved(path, saved);
  }));
}

/// Collective: returns make(saved, each_item). There each member calls each_item(put) once, which
/// calls put(values…) for each item of the parts that it reads.
template <class... T, class Make>
auto load_items(const std::string& path, const char* kind, const team& members, Make make) {
  saved_container saved;
  const std::optional<std::string> failure = failure_of([&] {
    if (members.rank_me() != 0) return;
    saved = read_saved(path);
    if (saved.kind != kind)
      throw error(path + " holds a " + saved.kind + ", and is loaded as a " + kind);
    const std::string items = typeid(std::tuple<T...>).name();
    if (saved.items != items)
      throw error(path + " holds a " + saved.kind + " of other types (" + saved.items +
                  ") than those as which it is loaded (" + items + ")");
  });
  if (const auto first = first_failure(failure, members)) throw error(*first);
  saved = broadcast(saved, 0, members);
  return make(saved, [&](auto put) {
    const auto step = static_cast<std::size_t>(members.rank_count());
    for (auto i = static_cast<std::size_t>(members.rank_me()); i < saved.parts; i += step) {
      part_reader from(saved.part(path, i));
      while (const auto bytes = from.next()) {
        // Its checksum comes at the end: what is damaged may be no item at all.
        std::optional<std::tuple<T...>> item;
        try {
          item = from_bytes<T...>(*bytes);
        } catch (const error&) {
          refuse_damaged(saved.part(path, i));
        }
        std::apply(put, *item);
      }
    }
  });
}
/// The same, for containers into which items are put in a finish.
template <class... T, class Make, class Put>
auto load_by_calls(const std::string& path, const char* kind, const team& members, Make make,
                   Put put) {
  return load_items<T...>(path, kind, members, [&](const saved_container& saved, auto each_item) {
    const auto made = make(saved);
    const std::optional<std::string> failure = failure_of([&] {
      finish_all([&] { each_item([&](const T&... values) { put(made, values...); }); }, members);
    });
    if (const auto first = first_failure(failure, members)) {
      made.destroy_all();
      throw error(*first);
    }
    return made;
  });
}

}  // namespace sojourn::containers

namespace sojourn {

/// Removes the files of a container that was saved at `path`, and what jobs have left there that
/// ended while they saved. One rank calls it, when nobody loads or saves there any more. Errors:
/// sojourn::error when the file is not a saved container, or cannot be removed.
inline void remove_saved(const std::string& path) {
  const containers::saved_container saved = containers::read_saved(path);
  if (std::remove(path.c_str()) != 0) containers::refuse_file("remove", path, errno);
  for (std::size_t i = 0; i < saved.parts; ++i) std::remove(saved.part(path, i).c_str());
  containers::remove_older(path, saved);
}

}  // namespace sojourn
