// SPDX-License-Identifier: Apache-2.0
// The memory that the launcher and the ranks of one job share before anything else works:
// who the ranks are, how far each has come, what it died of, and its counts. It is a memfd
// without a name, so nothing is left behind whatever ends the job. The transport's part of the
// segment (rings, wake words) follows at `transport_offset`; this file does not know it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "checkpoint/files.hpp"
#include "frames/thrown_frames.hpp"
#include "observe/wait_report.hpp"
#include "sojourn/detail/counts.hpp"

namespace sojourn::detail {

inline constexpr int rank_count_max = 1024;
/// Exit status of a job in which nothing could happen any more.
inline constexpr int status_deadlock = 1;
inline constexpr std::size_t crash_frames_max = 48;
inline constexpr std::size_t crash_oldest_max = 12;
// The most frames that a walk visits: each takes about a microsecond, and the job is ended a tenth
// of a second after the death.
inline constexpr std::uint32_t crash_walk_max = 50000;

/// How far a rank has come. A process that ends in `attached` ended too early.
enum class rank_state : std::uint32_t { absent, attached, finished };

/// Written by a dying rank from its signal handler; read by the launcher afterwards.
struct crash_record {
  static constexpr std::uint64_t no_address = ~std::uint64_t{0};

  std::atomic<std::uint32_t> order;    ///< Among the ranks that began to die, from 1; 0: it lives.
  std::atomic<std::uint32_t> written;  ///< 1 once the rest is valid.
  std::int32_t signal;                 ///< 0 when the message alone tells why.
  std::uint64_t address;               ///< Faulting address, or no_address.
  std::uint32_t frame_count;           ///< Valid entries of `frames`, youngest first.
  std::uint64_t frames[crash_frames_max];  ///< Code addresses in the (non-PIE) program.
  char message[512];                       ///< One sentence, NUL-terminated; may be empty.

  // Of a stack with more frames: its older end, which tells what began it.
  std::uint32_t frames_in_all;             ///< As far as they were counted.
  std::uint64_t oldest[crash_oldest_max];  ///< Frame number n at n % crash_oldest_max.

  // Who began what ran, as ranks + 1; 0 where that does not apply.
  std::int32_t called_by;     ///< A rank whose call was being handled.
  std::int32_t waiting_at;    ///< A rank where an activation waits for what ran here.
  std::uint64_t mark;         ///< The mark it was called under, on that rank.
  std::uint64_t called_from;  ///< Where the caller of a fork without such a mark goes on; or 0.
  std::uint32_t in_thread;    ///< 1: a thread other than the rank's worker died.

  thrown_frames thrown;        ///< Where an exception was thrown that was not caught on that stack.
  std::uint32_t is_of_thrown;  ///< 1: the rank's own stack says nothing.
};

/// What the other ranks must know of a rank before they speak with it.
struct rank_introduction {
  std::uint32_t part;   ///< Which of the job's programs the launcher started here.
  char program[64];     ///< Its name; NUL-terminated.
  std::uint64_t image;  ///< Equal in ranks that run the same executable.
  std::uint64_t
      stack_needs[3];  ///< Equal in ranks that may exchange stacks (migrate/fingerprint.hpp).
  std::uint64_t wire_fingerprint;  ///< Equal in ranks that may exchange messages.
  std::uint64_t region_bytes;      ///< These four are equal in all ranks.
  std::uint64_t stack_bytes;       ///< Of a fiber.
  std::uint64_t main_stack_bytes;
  std::uint64_t page_bytes;
};

struct alignas(64) rank_block : rank_introduction {
  std::atomic<rank_state> state;
  std::atomic<std::int32_t> pid;
  std::int32_t bell;     ///< Of a rank of this host, where there are several: see several_hosts, …
  std::int32_t channel;  ///< … and the socket over which it speaks with its agent.
  std::atomic<std::uint32_t> lost;  ///< 1: it has ended in the middle of the job.
  crash_record crash;
};

/// What became of one entry of SOJOURN_VIA, told by ranks when they finish.
struct setting_use {
  std::uint32_t matched;  ///< 1: on some rank.
  std::uint32_t edits;    ///< Edit distance from `name` to `nearest`.
  char name[96];
  char nearest[96];  ///< "": nothing is near.
};
inline constexpr std::size_t setting_uses_max = 16;

/// A place where ranks forked, told by those that are asked for it (SOJOURN_STATS) when they
/// finish.
struct fork_site_told {
  std::uint64_t site;  ///< Its address, the same on all ranks of a part.
  std::uint64_t code;  ///< A return address.
  std::uint64_t forks;
  std::uint64_t blocked;
  std::uint64_t bytes_cut;     ///< Of the frames of those that blocked.
  std::uint32_t part;          ///< Of the job's programs.
  std::uint32_t linked_ranks;  ///< On so many ranks its forks were by way of links at the end.
  std::uint32_t ranks;         ///< So many forked there.
};
inline constexpr std::size_t fork_sites_told_max = 32;

/// A place that calls objects of other ranks, told likewise.
struct call_place_told {
  std::uint64_t code;          ///< The address to which its call returns.
  char method[96];             ///< "node::child"; NUL-terminated.
  std::uint64_t calls[4];      ///< By what was done, in the order of via::mechanism.
  std::uint64_t ranks_now[5];  ///< On so many ranks it came to each word at the end.
  /// Figures of each rank times its calls, for a sum; and the calls of ranks that had one.
  double cost_of_migrating;
  double cost_of_bringing;
  double calls_a_migration;
  double calls_a_bringing;
  std::uint64_t calls_of_migrating;
  std::uint64_t calls_of_bringing;
  std::uint64_t changes;
  std::uint32_t part;     ///< Of the job's programs.
  std::uint8_t chooses;   ///< 1: it follows no word.
  std::uint8_t said;      ///< via::mechanism
  std::uint8_t bringing;  ///< via::mechanism
};
inline constexpr std::size_t call_places_told_max = 64;

/// Exit status of a rank that ends because another did.
inline constexpr int status_rank_lost = 75;

struct job_segment {
  std::uint64_t magic;
  std::uint32_t rank_count;
  std::uint32_t first_here;  ///< The ranks of this host follow each other, …
  std::uint32_t ranks_here;  ///< … and are all of the job's, where it has one host.
  std::uint32_t share_heap;  ///< 1: heap partitions are mapped by all ranks.
  std::uint32_t cores;       ///< Cores the job may use; fewer than ranks: yield early.
  std::uint32_t bound;       ///< 1: each rank has a core of its own.
  std::uint64_t secret;      ///< Random, never 0: stack canary of the job.
  std::uint64_t segment_bytes;
  std::uint64_t transport_offset;  ///< From the segment's start, a multiple of 4096.
  char hosts[272 << 10];    ///< As --hosts takes them, 1024 of the longest names; empty: this host.
  char restore_path[4096];  ///< The checkpoint to go on from; empty: none.
  checkpoint_set restored;  ///< What that checkpoint says.
  std::uint64_t clock_ahead_ns;  ///< Added to now_ns(), so that time goes on from the checkpoint's.
  /// Ranks of this host that attached or could not; the agent adds those of others. A futex.
  std::atomic<std::uint32_t> start_arrived;
  std::atomic<std::uint32_t> start_failed;    ///< Ranks that could not: then none goes on.
  std::atomic<std::uint32_t> ranks_lost;      ///< How many ranks have been lost.
  std::atomic<std::uint32_t> telling_locked;  ///< 1: a rank writes to one of these:
  std::uint32_t use_count;                    ///< Valid entries of `uses`.
  setting_use uses[setting_uses_max];         ///< In the order of SOJOURN_VIA.
  std::uint32_t fork_site_count;              ///< Valid entries of `fork_sites`.
  fork_site_told fork_sites[fork_sites_told_max];
  std::uint32_t call_place_count;  ///< Valid entries of `call_places`.
  call_place_told call_places[call_places_told_max];
  std::atomic<std::uint32_t> deaths_begun;  ///< Ranks that began to die: crash_record::order.
  rank_block ranks[1];                      ///< `rank_count` of them.

  /// Offset of the page of a rank's counts. These pages follow the blocks, so that a rank can map
  /// its page over the `counts` it has.
  static constexpr std::size_t counts_offset(int rank, int rank_count) {
    std::size_t blocks =
        sizeof(job_segment) + sizeof(rank_block) * static_cast<std::size_t>(rank_count - 1);
    std::size_t pages = (blocks + sizeof(counts_page) - 1) / sizeof(counts_page);
    return (pages + static_cast<std::size_t>(rank)) * sizeof(counts_page);
  }
  /// Offset of what the ranks tell of their waits.
  static constexpr std::size_t watch_offset(int rank_count) {
    return counts_offset(rank_count, rank_count);
  }
  /// Bytes of all this.
  static constexpr std::size_t header_bytes(int rank_count) {
    return watch_offset(rank_count) + watch_area::bytes(rank_count);
  }
  const counts_page& counts_of(int rank) const {
    return *reinterpret_cast<const counts_page*>(reinterpret_cast<const char*>(this) +
                                                 counts_offset(rank, static_cast<int>(rank_count)));
  }
  counts_page& counts_of(int rank) {
    return const_cast<counts_page&>(static_cast<const job_segment*>(this)->counts_of(rank));
  }
  watch_area watch();

  bool has_several_hosts() const { return ranks_here != rank_count; }
  bool is_here(int rank) const {
    return static_cast<std::uint32_t>(rank) - first_here < ranks_here;
  }
};

/// "sojourn1", and the sizes of what the launcher and the ranks share: a program and a launcher
/// whose builds differ in them do not begin to talk.
inline constexpr std::uint64_t job_segment_magic = [] {
  std::uint64_t magic = 0x736f6a6f75726e31;
  for (std::uint64_t bytes : {sizeof(job_segment), sizeof(rank_block), sizeof(counts_page),
                              counters::count(), shared::counters::count(), sizeof(rank_watch),
                              sizeof(rank_report), sizeof(fiber_record), sizeof(job_watch)}) {
    magic = (magic ^ bytes) * 0x100000001b3;
  }
  return magic;
}();

/// Environment a rank is started with; absent for a program run without the launcher.
/// SOJOURN_RANK=2 SOJOURN_JOB_FDS=segment_fd,heap_fd,bell_fd (heap_fd is -1 when the heap is not
/// shared).
inline constexpr const char* rank_variable = "SOJOURN_RANK";
inline constexpr const char* job_fds_variable = "SOJOURN_JOB_FDS";
/// In the environment of a job's programs and of all that they start: a word that no other job has.
/// When the launcher is killed, what is left of the job is found by it.
inline constexpr const char* job_name_variable = "SOJOURN_JOB";

struct job_shape {
  int ranks = 1;  ///< Of the whole job.
  int first_here = 0;
  int ranks_here = ranks;
  bool share_heap = true;
  int cores = 1;
  bool bound = false;
};

/// The stack canary that is made of a random number: never 0, and its first byte is zero, as in the
/// C library, so that string functions do not read past it.
constexpr std::uint64_t canary_of(std::uint64_t random) {
  return (random | 0x100) & ~std::uint64_t{0xff};
}

/// Creates the memfds of a job on this host and fills in the header. Throws sojourn::error with one
/// sentence. Used by the launcher and by a program that is a job of one rank.
struct job_fds {
  int segment;
  int heap;
  int bell;  ///< An eventfd: a rank has something to say to the launcher (observe/watch.hpp).
};
job_fds create_job(const job_shape& shape);

/// Maps a created segment. Throws sojourn::error.
job_segment* map_job(int segment_fd);

}  // namespace sojourn::detail
