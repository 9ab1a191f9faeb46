// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <system_error>

#include "base/check.hpp"
#include "base/owned_descriptors.hpp"
#include "base/saved_file.hpp"

namespace sojourn::detail {

namespace {

constexpr const char* which_file = "--restore takes the name that the program gave to checkpoint()";
constexpr const char* remedy_in_use = "end that job, or choose another name";

/// The numbers in `name` when it is PREFIX.GENERATION.RANK.
bool parse_rank_file(const std::string& name, const std::string& prefix, named_part& part) {
  if (name.rfind(prefix + '.', 0) != 0) return false;
  const char* end = name.data() + name.size();
  auto first = std::from_chars(name.data() + prefix.size() + 1, end, part.generation);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  auto second = std::from_chars(first.ptr + 1, end, part.rank);
  return second.ec == std::errc() && second.ptr == end;
}

/// Descriptors of the files that this process has locked, by path. Such a lock is the process's
/// own: no child inherits it, and it ends with the process, or as soon as any descriptor of that
/// file is closed.
std::map<std::string, int> locks;

/// Writes into the lock's file who holds the lock, for users of other jobs.
void write_holder(int fd) {
  char host[128] = "?";
  (void)gethostname(host, sizeof host - 1);
  std::string text =
      format("pid %d, %s, on host %s", static_cast<int>(getpid()), program_invocation_name, host);
  // May fail: the text only helps users whose job is refused.
  if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, text.data(), text.size(), 0);
}

std::string holder_in(int fd) {
  char text[256];
  ssize_t size = pread(fd, text, sizeof text, 0);
  std::string holder(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  for (char& c : holder) {
    if (c < ' ' || c > '~') c = '?';
  }
  return holder.empty() ? "" : " (" + holder + ")";
}

std::string in_use(const std::string& path, int fd) {
  return path + " is in use by another running job" + holder_in(fd);
}

std::size_t folder_end(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}
std::string folder_of(const std::string& path) {
  const std::size_t end = folder_end(path);
  return end == 0 ? "./" : path.substr(0, end);
}

struct set_and_hosts {
  checkpoint_set set;
  std::string hosts;
};

set_and_hosts read_both(const std::string& path) try {
  file_reader from(path);
  if (from.get<checkpoint_file>() != checkpoint_file::set) {
    throw error(path + " is one rank's part of a checkpoint");
  }
  auto version = from.get<std::uint64_t>();
  if (version != checkpoint_version) {
    refuse_to_restore(
        format("%s was written by another version of Sojourn (its format is %llu, and %llu is "
               "read here)",
               path.c_str(), static_cast<unsigned long long>(version),
               static_cast<unsigned long long>(checkpoint_version)),
        "use the `sojourn` command that the program was built with");
  }
  set_and_hosts both{from.get<checkpoint_set>(), {}};
  both.hosts.resize(from.get<std::size_t>());
  from.bytes(both.hosts.data(), both.hosts.size());
  return both;
} catch (const error& e) {
  if (std::strncmp(e.what(), "cannot restore", 14) == 0) throw;
  refuse_to_restore(e.what(), which_file);
}

}  // namespace

bool lock_checkpoint(const std::string& path, int rank, bool signs) {
  if (locks.contains(path)) return false;
  const std::string file = path + ".lock";
  for (int attempt = 0; attempt < 100; ++attempt) {
    int fd = open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    struct flock part{};
    part.l_type = F_WRLCK;
    part.l_whence = SEEK_SET;
    part.l_start = rank;
    part.l_len = 1;
    if (fcntl(fd, F_SETLK, &part) != 0) {
      bool held = errno == EACCES || errno == EAGAIN;
      const std::string what = held ? in_use(path, fd) : "";
      close(fd);
      if (!held) return false;
      throw error(what + ": " + remedy_in_use);
    }
    // The job that had the lock may have removed the file meanwhile.
    struct stat mine{};
    struct stat there{};
    if (fstat(fd, &mine) == 0 && stat(file.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev) {
      locks[path] = fd;
      own_descriptor(fd);
      if (signs) write_holder(fd);
      return true;
    }
    close(fd);
  }
  return false;
}

void refuse_if_in_use(const std::string& path) {
  if (locks.contains(path)) return;  // which closing another descriptor would give back
  const int fd = open((path + ".lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  struct flock all{};
  all.l_type = F_WRLCK;
  all.l_whence = SEEK_SET;
  const bool held = fcntl(fd, F_GETLK, &all) == 0 && all.l_type != F_UNLCK;
  const std::string what = held ? in_use(path, fd) : "";
  close(fd);
  if (held) refuse_to_restore(what, remedy_in_use);
}

void unlock_checkpoint(const std::string& path) {
  auto found = locks.find(path);
  if (found == locks.end()) return;
  if (access(path.c_str(), F_OK) != 0) unlink((path + ".lock").c_str());
  close_owned(found->second);
  locks.erase(found);
}

void refuse_to_restore(const std::string& what, const char* remedy) {
  throw error("cannot restore: " + what + ": " + remedy);
}

std::string rank_file(const std::string& path, std::uint64_t generation, std::uint64_t rank) {
  return path + '.' + std::to_string(generation) + '.' + std::to_string(rank);
}

void write_set(const std::string& path, const checkpoint_set& set, const std::string& hosts) {
  std::string fresh = path + ".new";
  {
    file_writer to(fresh);
    to.put(checkpoint_file::set);
    to.put(checkpoint_version);
    to.put(set);
    to.put(hosts.size());
    to.bytes(hosts.data(), hosts.size());
    to.finish();
  }
  // The ranks' files must be on the disk under their names before this file refers to them.
  sync_folder_of(path);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    int reason = errno;
    unlink(fresh.c_str());
    throw error(format("%s cannot be replaced: %s", path.c_str(), std::strerror(reason)));
  }
  sync_folder_of(path);
}

checkpoint_set read_set(const std::string& path) { return read_both(path).set; }

std::string read_hosts(const std::string& path) { return read_both(path).hosts; }

std::uint64_t generation_at(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return 0;
  try {
    return read_set(path).generation;
  } catch (const error&) {
    throw error(path +
                " exists already and is not a checkpoint that could be replaced: choose another "
                "name, or remove it");
  }
}

std::vector<named_part> parts_beside(const std::string& path) {
  std::vector<named_part> parts;
  DIR* entries = opendir(folder_of(path).c_str());
  if (entries == nullptr) return parts;
  const std::string prefix = path.substr(folder_end(path));
  while (const dirent* entry = readdir(entries)) {
    named_part part;
    if (parse_rank_file(entry->d_name, prefix, part)) parts.push_back(part);
  }
  closedir(entries);
  return parts;
}

void remove_others(const std::string& path, std::uint64_t keep, int rank, int ranks) {
  for (const named_part& part : parts_beside(path)) {
    const bool beyond = rank == 0 && part.rank >= static_cast<std::uint64_t>(ranks);
    const bool mine = part.rank == static_cast<std::uint64_t>(rank) && part.generation != keep;
    if (beyond || mine) unlink(rank_file(path, part.generation, part.rank).c_str());
  }
}

}  // namespace sojourn::detail
