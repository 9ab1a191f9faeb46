// SPDX-License-Identifier: Apache-2.0
#include "job/checkpoint_files.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/check.hpp"
#include "base/saved_file.hpp"

namespace sojourn::detail {

namespace {

constexpr const char* which_file = "--restore takes the name that the program gave to checkpoint()";

/// The numbers in `name` when it is PREFIX.GENERATION.RANK.
bool parse_rank_file(const std::string& name, const std::string& prefix, std::uint64_t& generation,
                     std::uint64_t& rank) {
  if (name.rfind(prefix + '.', 0) != 0) return false;
  const char* end = name.data() + name.size();
  auto first = std::from_chars(name.data() + prefix.size() + 1, end, generation);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  auto second = std::from_chars(first.ptr + 1, end, rank);
  return second.ec == std::errc() && second.ptr == end;
}

}  // namespace

void refuse_to_restore(const std::string& what, const char* remedy) {
  throw error("cannot restore: " + what + ": " + remedy);
}

std::string rank_file(const std::string& path, std::uint64_t generation, int rank) {
  return path + '.' + std::to_string(generation) + '.' + std::to_string(rank);
}

void write_set(const std::string& path, const checkpoint_set& set) {
  std::string fresh = path + ".new";
  {
    file_writer to(fresh);
    to.put(checkpoint_file::set);
    to.put(checkpoint_version);
    to.put(set);
    to.finish();
  }
  sync_folder_of(path);  // the ranks' files are known by their names before this one says so
  if (std::rename(fresh.c_str(), path.c_str()) != 0) {
    int reason = errno;
    unlink(fresh.c_str());
    throw error(format("%s cannot be replaced: %s", path.c_str(), std::strerror(reason)));
  }
  sync_folder_of(path);
}

checkpoint_set read_set(const std::string& path) try {
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
  return from.get<checkpoint_set>();
} catch (const error& e) {
  if (std::strncmp(e.what(), "cannot restore", 14) == 0) throw;
  refuse_to_restore(e.what(), which_file);
}

std::uint64_t generation_at(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return 0;
  try {
    return read_set(path).generation;
  } catch (const error&) {
    throw error(path +
                " is there, and is no checkpoint that could be replaced: choose another "
                "name, or remove it");
  }
}

void remove_others(const std::string& path, std::uint64_t keep, int rank, int ranks) {
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
  std::string prefix = slash == std::string::npos ? path : path.substr(slash + 1);
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    std::uint64_t generation;
    std::uint64_t of;
    if (!parse_rank_file(entry->d_name, prefix, generation, of)) continue;
    bool beyond = rank == 0 && of >= static_cast<std::uint64_t>(ranks);
    bool mine = of == static_cast<std::uint64_t>(rank) && generation != keep;
    if (beyond || mine) unlink((folder + entry->d_name).c_str());
  }
  closedir(entries);
}

}  // namespace sojourn::detail
