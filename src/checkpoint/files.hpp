// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint: `path`, which says what the others are, and `path.GENERATION.RANK`
// with what a rank has saved. A new checkpoint is a new generation; `path` is replaced, by a
// rename, when all ranks' files of it are on the disk, so that it names a whole set at every
// moment. `path.lock` says, by a lock on it, which job has the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sojourn::detail {

/// What `path` says, and what each rank's file begins with.
struct checkpoint_set {
  std::uint64_t ranks = 0;
  std::uint64_t generation = 0;
  std::uint64_t stamp = 0;   ///< Random, so that files of two sets are never mixed.
  std::uint64_t secret = 0;  ///< The stack canary: it lies in saved frames.
  std::uint64_t region_bytes = 0;
  std::uint64_t stack_bytes = 0;
  std::uint64_t main_stack_bytes = 0;
  std::uint64_t now_ns = 0;
  std::uint64_t checked = 0;  ///< 1: written in checked mode, with its records of objects.
  // These need libraries in ranks of several hosts, and frames may hold addresses of libraries.
  std::uint64_t over_ucx = 0;   ///< 1: --net ucx.
  std::uint64_t encrypted = 0;  ///< 1: --encrypt.

  friend bool operator==(const checkpoint_set&, const checkpoint_set&) = default;
};

enum class checkpoint_file : std::uint64_t { set = 1, rank = 2 };
inline constexpr std::uint64_t checkpoint_version = 5;

std::string rank_file(const std::string& path, std::uint64_t generation, std::uint64_t rank);

/// A rank's file, by its name.
struct named_part {
  std::uint64_t generation;
  std::uint64_t rank;

  friend bool operator==(const named_part&, const named_part&) = default;
};
/// The files of all ranks and generations that lie beside `path`, whatever they hold, in no order.
std::vector<named_part> parts_beside(const std::string& path);

/// Takes this rank's part of the lock on a checkpoint (a byte of `path.lock`) for as long as this
/// process lives, so that no other job reads or writes the checkpoint meanwhile. Returns false when
/// this process has it already. Throws sojourn::error when another job has it, and says which job,
/// and what to do. If files cannot be locked, or none can be made there, there is no lock. `signs`:
/// this process is the one that another job's error names. One process of each host signs, because
/// each host may have a folder of its own.
bool lock_checkpoint(const std::string& path, int rank, bool signs);
/// Throws sojourn::error when a job has the lock. To be asked before any file of a checkpoint is
/// looked at, because that job may replace them at any moment, and before ranks are started to go
/// on from it. Takes no lock, and makes no file.
void refuse_if_in_use(const std::string& path);
/// Gives the lock back, after a checkpoint that failed. Removes the lock's file when there is no
/// earlier checkpoint.
void unlock_checkpoint(const std::string& path);

/// Replaces `path`. `hosts`: where the ranks ran, as --hosts takes it; "" on one host. Throws
/// sojourn::error, and then leaves `path` as it was.
void write_set(const std::string& path, const checkpoint_set& set, const std::string& hosts);
/// Read `path`. Both throw sojourn::error: a sentence that says which file, what is wrong, and what
/// to do.
checkpoint_set read_set(const std::string& path);
std::string read_hosts(const std::string& path);
/// The generation of the checkpoint at `path`, 0 when there is none. Throws sojourn::error when
/// something else lies there.
std::uint64_t generation_at(const std::string& path);

/// Removes the files of `rank` of all generations except `keep`. If `rank` is 0, also removes those
/// of ranks that this job does not have.
void remove_others(const std::string& path, std::uint64_t keep, int rank, int ranks);

[[noreturn]] void refuse_to_restore(const std::string& what, const char* remedy);

}  // namespace sojourn::detail
