// SPDX-License-Identifier: Apache-2.0
// All ranks meet, their fibers stand still, and messages that are on their way arrive. Then each
// rank writes its state. Stacks, heaps and the descriptors of fibers come back at the addresses
// that they had, so no pointer in them needs to be changed. If anything would be wrong in another
// process, the whole checkpoint is refused.
#include "checkpoint/checkpoint.hpp"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/cut_text.hpp"
#include "base/saved_file.hpp"
#include "checkpoint/parts_of_rank.hpp"
#include "checkpoint/refusals.hpp"
#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "migrate/fingerprint.hpp"
#include "migrate/reading.hpp"
#include "migrate/thread/balance.hpp"
#include "object/copies.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/hooks.hpp"
#include "sojourn/calls/aggregate.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/jobs/checkpoint.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

struct {
  recorded_job of_job;
  shared_memory_part shared_memory;
  std::uint64_t restored_from = 0;  // the generation of the checkpoint that this job goes on from
  const piece* main = nullptr;      // the main fiber, while it writes a checkpoint
  bool restored = false;
  bool they_stand = false;  // restored fibers stand still, until main has reached a barrier
  restored_root root;
} self;

/// Why a rank has not written its part.
struct failure {
  std::int32_t rank;
  checkpoint_refusal why;
  char text[1000];
};

std::string own_file(const std::string& path, const checkpoint_set& set) {
  return rank_file(path, set.generation, static_cast<std::uint64_t>(job.me));
}

/// Locks the checkpoint for this rank. One rank of each host also writes into the lock's file who
/// has it.
bool lock_for_this_rank(const std::string& path) {
  return lock_checkpoint(path, job.me, job.me == job.first_near);
}

void save_rank(const std::string& path, const checkpoint_set& set, const root_bytes& root) {
  const rank_to_save rank{root, fibers_to_save(self.main)};
  file_writer to(own_file(path, set));
  to.put(checkpoint_file::rank);
  to.put(set);
  to.put(job.me);
  to.put(fingerprint().all());
  save_parts_of_rank(to, rank, self.shared_memory);
  to.finish();
}

/// While this lives, a file that grows beyond the process's limit is an error, and does not end the
/// process.
class no_file_size_signal {
 public:
  no_file_size_signal() {
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignored, &before_);
  }
  ~no_file_size_signal() { sigaction(SIGXFSZ, &before_, nullptr); }
  no_file_size_signal(const no_file_size_signal&) = delete;
  no_file_size_signal& operator=(const no_file_size_signal&) = delete;

 private:
  struct sigaction before_;
};

/// Runs `step` on every rank. If it fails anywhere, returns on all ranks the failure of the first
/// rank on which it failed.
template <class Step>
failure anywhere(Step step) {
  failure mine{job.me, checkpoint_refusal::none, {}};
  auto note = [&](checkpoint_refusal why, const char* text) {
    mine.why = why;
    print_text(mine.text, sizeof mine.text, "%s", text);
  };
  try {
    step();
  } catch (const checkpoint_error& e) {
    note(e.why(), e.what());
  } catch (const std::bad_alloc&) {
    note(checkpoint_refusal::not_written, "no checkpoint was written: there is no memory");
  } catch (const std::exception& e) {
    note(checkpoint_refusal::not_written,
         (std::string("no checkpoint was written: ") + e.what()).c_str());
  }
  return reduce(mine,
                [](failure a, failure b) { return a.why != checkpoint_refusal::none ? a : b; });
}

/// Returns when no message is in flight, and no fiber except main has run since the ranks met: all
/// messages are counted twice, and the counts are the same (Mattern, four-counter method).
void wait_until_all_arrived() {
  struct sums {
    std::uint64_t sent;
    std::uint64_t received;
    std::uint64_t busy;
  };
  std::uint64_t before = ~std::uint64_t{0};
  for (;;) {
    flush();  // bundled calls would otherwise be in no file
    wake_callers();
    yield();
    traffic t = traffic_so_far();
    bool busy = !dispatcher_idle() || anything_is_read() || threads_are_kept();
    sums now = reduce(sums{t.sent, t.received, busy}, [](sums a, sums b) {
      return sums{a.sent + b.sent, a.received + b.received, a.busy + b.busy};
    });
    if (now.sent == now.received && now.sent == before && now.busy == 0) return;
    before = now.sent;
  }
}

/// What the files of this checkpoint say; rank 0 makes it.
struct plan {
  checkpoint_set set;
  char path[4000];
};

/// Makes the plan. Returns true when this call has locked the path.
bool make_plan(plan& p, const std::string& path) {
  if (path.empty() || path.size() >= sizeof p.path - 32) {
    throw error(format("no file can have a name of %zu characters", path.size()));
  }
  (void)generation_at(path);  // throws when something else than a checkpoint lies there
  const bool locked = lock_for_this_rank(path);
  path.copy(p.path, sizeof p.path - 1);
  p.set.ranks = static_cast<std::uint64_t>(job.count);
  // Both are asked, because the restored set may have come from another host, and not lie here.
  p.set.generation = std::max(generation_at(path), self.restored_from) + 1;
  if (getrandom(&p.set.stamp, sizeof p.set.stamp, 0) != sizeof p.set.stamp) p.set.stamp = ticks();
  p.set.secret = self.of_job.secret;
  p.set.over_ucx = self.of_job.over_ucx;
  p.set.encrypted = self.of_job.encrypted;
  p.set.region_bytes = addresses.bytes;
  p.set.stack_bytes = addresses.stack_bytes;
  p.set.main_stack_bytes = addresses.main_stack_bytes;
  p.set.now_ns = now_ns();
  p.set.checked = checked();
  return locked;
}

/// Writes the checkpoint. Requires: nothing moves in the job.
failure write_all(const std::string& wanted, const root_bytes& root) {
  no_file_size_signal quiet;
  plan p{};
  bool locked = false;
  failure first = anywhere([&] {
    if (job.me == 0) locked = make_plan(p, wanted);
  });
  if (first.why != checkpoint_refusal::none) {
    if (locked) unlock_checkpoint(wanted);
    return first;
  }
  p = broadcast(p, 0);
  std::string path = p.path;
  bool writes = false;
  first = anywhere([&] {
    if (job.me != 0) locked = lock_for_this_rank(path);
    writes = true;
    save_rank(path, p.set, root);
  });
  // On one rank of each host, because each host may have a folder of its own for the files of its
  // ranks.
  if (first.why == checkpoint_refusal::none) {
    first = anywhere([&] {
      if (job.me == job.first_near) sync_folder_of(path);
    });
  }
  if (first.why == checkpoint_refusal::none) {
    first = anywhere([&] {
      if (job.me == 0) write_set(path, p.set, self.of_job.hosts);
    });
  }
  if (first.why == checkpoint_refusal::none) {
    remove_others(path, p.set.generation, job.me, job.count);
  } else {
    if (writes) unlink(own_file(path, p.set).c_str());
    if (locked) unlock_checkpoint(path);
  }
  return first;
}

}  // namespace

void attach_checkpoint(recorded_job recorded, const shared_memory_part& shared_memory) {
  self.of_job = std::move(recorded);
  self.shared_memory = shared_memory;
}

void checkpoint_now(const std::string& path, const root_bytes& root) {
  refuse_unless_main();
  refuse_several_programs();
  // Operations that were begun earlier end here, because no file holds their contributions.
  wait_for_open_collectives();
  barrier();
  self.main = running_piece();
  freeze([](const piece* p) { return p != self.main && !p->runs_frozen; });
  stand_still(true);
  wait_until_all_arrived();
  failure first = anywhere([] {
    if (const char* what = self.shared_memory.unsaved(); what != nullptr)
      refuse_checkpoint(checkpoint_refusal::shared_memory, what);
  });
  if (first.why == checkpoint_refusal::none) {
    self.shared_memory.gather();
    // A fiber for which an object waits keeps it, and is refused.
    first = anywhere([] { (void)fibers_to_save(self.main); });
  }
  if (first.why == checkpoint_refusal::none) {
    first = anywhere([] {
      if (!bring_objects_home())
        refuse_checkpoint(
            checkpoint_refusal::stays,
            "an object of this rank is on another one, where a method that changes it "
            "is suspended: wait for it first");
    });
    wait_until_all_arrived();
  }
  if (first.why == checkpoint_refusal::none) {
    first = write_all(path, root);
  }
  stand_still(false);
  thaw();
  if (first.why == checkpoint_refusal::none) return;
  throw checkpoint_error(first.why, first.rank == job.me
                                        ? first.text
                                        : format("on rank %d, %s", first.rank, first.text));
}

void restore_rank(const std::string& path, const checkpoint_set& set) {
  if ((set.checked != 0) != checked()) {
    refuse_to_restore(path + (checked() ? " has no records of objects, which checked mode needs"
                                        : " was written in checked mode"),
                      checked() ? "set SOJOURN_CHECKED=0" : "set SOJOURN_CHECKED=1");
  }
  // Locked until this job ends, because it may write its own checkpoints there.
  try {
    lock_for_this_rank(path);
  } catch (const error& e) {
    throw error(format("cannot restore: %s", e.what()));
  }
  constexpr const char* whole = "all files of a checkpoint must be unchanged";
  std::string file = own_file(path, set);
  bool is_of_this_program = false;
  try {
    file_reader from(file);
    if (from.get<checkpoint_file>() != checkpoint_file::rank || from.get<checkpoint_set>() != set) {
      throw error(file + " belongs to another checkpoint");
    }
    if (int rank = from.get<int>(); rank != job.me) {
      throw error(format("%s belongs to rank %d", file.c_str(), rank));
    }
    // Compared with the rank that wrote this file, and not with other ranks, because hosts may
    // differ.
    is_of_this_program = from.get<std::uint64_t>() == fingerprint().all();
    if (is_of_this_program) self.root = load_parts_of_rank(from, file, self.shared_memory);
  } catch (const error& e) {
    refuse_to_restore(e.what(), whole);
  }
  if (!is_of_this_program) {
    refuse_to_restore(path +
                          " was written by another program, or with other libraries or on another "
                          "kind of processor",
                      "start the same executable that wrote it, not a rebuilt one");
  }
  // If the earlier job was killed right after its checkpoint was complete, the files of the
  // checkpoint before it are still there.
  remove_others(path, set.generation, job.me, job.count);
  self.restored = self.they_stand = true;
  self.restored_from = set.generation;
  freeze([](const piece* p) { return p->restored; });
  on_rpc.after_next_barrier = let_restored_go;
}

void let_restored_go() {
  if (!std::exchange(self.they_stand, false)) return;
  on_rpc.after_next_barrier = nullptr;
  each_piece([](piece* p, void*) { p->restored = false; }, nullptr);
  thaw();
}

void read_restored_root(const char* type, void* into, std::size_t size) {
  if (!self.restored) throw error("this job was not restored: call restored() first to find out");
  if (self.root.type != type || self.root.bytes.size() != size) {
    throw error(self.root.type.empty()
                    ? "the checkpoint was written without a root"
                    : "the root of the checkpoint has a different type than the one asked for");
  }
  std::memcpy(into, self.root.bytes.data(), size);
}

}  // namespace sojourn::detail

namespace sojourn {

bool restored() { return detail::self.restored; }

}  // namespace sojourn
