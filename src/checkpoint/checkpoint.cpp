// SPDX-License-Identifier: Apache-2.0
// All ranks meet, their fibers stand still, and what is on its way arrives; then each rank writes
// its state. Stacks, heaps and the descriptors of fibers come back at the addresses that they had,
// so no pointer in them is looked at. Anything that would be wrong in another process refuses the
// whole checkpoint.
#include "checkpoint/checkpoint.hpp"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/cut_text.hpp"
#include "base/saved_file.hpp"
#include "fiber/call_below.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/timers.hpp"
#include "memory/address_map.hpp"
#include "memory/arena_extents.hpp"
#include "memory/global_heap.hpp"
#include "message/dispatcher.hpp"
#include "message/programs.hpp"
#include "migrate/fingerprint.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/thread/balance.hpp"
#include "migrate/thread/threads.hpp"
#include "migrate/thread_trailer.hpp"
#include "object/records.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/dist_objects.hpp"
#include "rpc/exceptions.hpp"
#include "rpc/hooks.hpp"
#include "rpc/kept_values.hpp"
#include "rpc/scopes.hpp"
#include "rpc/stop.hpp"
#include "rpc/tickets.hpp"
#include "sojourn/aggregate.hpp"
#include "sojourn/checkpoint.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn::detail {

checkpoint_hooks on_checkpoint;

namespace {

struct {
  recorded_job of_job;
  std::uint64_t restored_from = 0;  // generation
  const piece* main = nullptr;      // while it writes a checkpoint
  bool restored = false;
  bool they_stand = false;  // restored fibers stand still, until main has met a barrier
  std::string root_type;
  std::vector<std::byte> root;
} self;

/// Why a rank has not written its part.
struct failure {
  std::int32_t rank;
  checkpoint_refusal why;
  char text[1000];
};

[[noreturn]] void refuse(checkpoint_refusal why, const std::string& text) {
  throw checkpoint_error(why, "no checkpoint was written: " + text);
}

/// Every rank finds this out by itself, so that none waits for the others.
void refuse_several_programs() {
  if (!several_programs) return;
  refuse(checkpoint_refusal::several_programs,
         "the ranks of this job run several programs, and only a job of one program can be saved");
}

/// To be called before anything suspends: at an open fork, older frames of main would then go on.
void refuse_unless_main() {
  const piece* p = running_piece();
  bool is_main = p != nullptr && p->slot == slots.main_slot() && p->hi == slots.high(p->slot) &&
                 p->thread == 0;
  if (!is_main || youngest_mark() != 0 || running.holds != nullptr) {
    refuse(
        checkpoint_refusal::not_main,
        "checkpoint() must be called by main on every rank, not by a thread or a call, and outside "
        "of any activation, fork, finish or stay");
  }
}

/// What a refusal calls a fiber.
std::string name_of(const piece* p) {
  if (p->thread != 0 && p->extra != nullptr && !p->extra->name.empty()) {
    return format("the thread `%s`", std::string(p->extra->name.view()).c_str());
  }
  if (p->thread != 0) {
    return format("the thread of id 0x%llx", static_cast<unsigned long long>(p->thread));
  }
  if (p->called_by != no_rank) return format("the call from rank %d", p->called_by);
  return "a fiber";
}

/// True for memory of this rank that its file holds.
bool is_saved(const void* object) {
  auto address = reinterpret_cast<std::uint64_t>(object);
  if (addresses.in_stacks(address)) return !slots.is_main(slots.index_of(address));
  return is_here(address) || addresses.in_arenas(address);
}

void refuse_object(const piece* p, const char* does, const waiters& object) {
  if (is_saved(&object)) return;
  refuse(checkpoint_refusal::waits_outside,
         format("%s %s a synchronisation object at 0x%llx, which is not saved with it: keep such "
                "objects in the global heap, in a thread's heap or in its frames, not in variables "
                "of the program or in main",
                name_of(p).c_str(), does,
                static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(&object))));
}

void refuse_unless_saved(const piece* p, bool is_awaited_or_ready) {
  using enum checkpoint_refusal;
  auto because = [&](checkpoint_refusal why, const char* text) {
    refuse(why, name_of(p) + ' ' + text);
  };
  if (slots.is_main(p->slot)) {
    because(part_of_main,
            "is a part of main that a fork or an activation began, and has not ended");
  }
  if (p->scope != nullptr) because(in_finish, "belongs to a finish that has not ended");
  if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0 || p->marks_hold_exceptions) {
    because(handles_exception, "waits in a catch block, and the exception is not saved");
  }
  if (p->static_inits != 0) because(initialises, "is initialising a static variable");
  if (p->holds != nullptr)
    because(stays, "has a `stay`: it uses something that only its process has");
  for (const mutex_state* m = p->mutexes; m != nullptr; m = m->before) {
    refuse_object(p, "holds", *m);
  }
  if (p->waits_on != nullptr) return refuse_object(p, "waits for", *p->waits_on);
  if (!is_awaited_or_ready && p->timer == 0) {
    because(waits_outside, "waits for something that is not saved");
  }
}

/// Refuses what the floor `rpc` has of fibers and no file holds.
void refuse_unsaved_of_rank() {
  using enum checkpoint_refusal;
  if (finish_is_open()) refuse(in_finish, "a finish is open: let it end first");
  if (collectives_are_open()) {
    refuse(in_collective,
           "a thread has begun a collective operation that has not ended: let it end first");
  }
  if (const char* what = unsaved_dist_object(is_saved); what != nullptr) {
    refuse(waits_outside, std::string(what) +
                              ", and dist_objects are not saved: let main make them, keep them in "
                              "main or on the C++ heap, and wait for calls first");
  }
  if (values_are_kept()) {
    refuse(waits_outside,
           "a value of more than 512 KiB, or of a type that cannot travel, is not saved before its "
           "receiver has read it: get() such results first");
  }
}

/// Warns of words in the frames of a fiber that point into memory which is not saved.
void scan_for_private_memory(piece* p) {
  struct suspect {
    std::uint64_t address;
    std::uint64_t hi;
    std::uint64_t word;
  };
  std::vector<std::uint64_t> words(p->bytes() / sizeof(std::uint64_t));
  copy_out(p, reinterpret_cast<std::byte*>(words.data()));
  for (std::size_t i = 0;; ++i) {
    i += find_stale_pointer(words.data() + i, words.size() - i);
    if (i >= words.size()) return;
    if (!is_allocated_object(words[i])) continue;
    place(p);
    suspect found{p->sp + i * sizeof(std::uint64_t), p->hi, words[i]};
    call_below(
        p,
        [](void* argument) {
          const auto& s = *static_cast<suspect*>(argument);
          report_stale_pointer(s.address, s.hi, s.word, false, leaves_for::a_checkpoint);
        },
        &found);
  }
}

/// The fibers of this rank. Refuses the checkpoint when one of them cannot be saved.
std::vector<piece*> fibers_to_save() {
  std::vector<piece*> list;
  each_piece(
      [](piece* p, void* context) {
        if (p != self.main && p != spare_piece()) {
          static_cast<std::vector<piece*>*>(context)->push_back(p);
        }
      },
      &list);
  std::unordered_set<const piece*> known;
  for (const piece* p = first_standing(); p != nullptr; p = p->next_ready) known.insert(p);
  each_open_ticket(
      [](const ticket& t, void* context) {
        if (t.is_awaited() && forwarded_to(t) == 0 && waits_for_several(t) == 0) {
          refuse(checkpoint_refusal::continues,
                 "a continuation (future::then) waits for its result: wait for the future that "
                 "then() returned first");
        }
        if (t.waiter != nullptr) static_cast<decltype(known)*>(context)->insert(t.waiter);
      },
      &known);
  for (const mutex_state* m = running.mutexes; m != nullptr; m = m->before) {
    if (!is_saved(m)) continue;
    refuse(
        checkpoint_refusal::part_of_main,
        "main holds a sojourn::mutex of the global heap, and would not hold it in a restored job: "
        "unlock it first");
  }
  refuse_unsaved_of_rank();
  for (const piece* p : list) refuse_unless_saved(p, known.contains(p));
  if (scan_is_enabled()) {
    for (piece* p : list) scan_for_private_memory(p);
  }
  return list;
}

std::string own_file(const std::string& path, const checkpoint_set& set) {
  return rank_file(path, set.generation, static_cast<std::uint64_t>(job.me));
}

/// One rank of each host tells, in the lock's file, who has the checkpoint.
bool lock_for_this_rank(const std::string& path) {
  return lock_checkpoint(path, job.me, job.me == job.first_near);
}

void save_rank(const std::string& path, const checkpoint_set& set, const root_bytes& root) {
  std::vector<piece*> fibers = fibers_to_save();
  file_writer to(own_file(path, set));
  to.put(checkpoint_file::rank);
  to.put(set);
  to.put(job.me);
  to.put(fingerprint().all());
  std::size_t type_size = std::strlen(root.type);
  to.put(type_size);
  to.bytes(root.type, type_size);
  to.put(root.size);
  to.bytes(root.bytes, root.size);

  save_heap(to);
  save_pieces(to, fibers, save_thread);
  extents.save(to);
  to.put(slots.handed_out());
  for (piece* p = first_standing(); p != nullptr; p = p->next_ready) to.put(p);
  to.put(static_cast<piece*>(nullptr));
  save_timers(to);
  save_tickets(to, forwarded_to, encoded);
  for (int r = 0; r < job.count; ++r) to.put(unanswered_by(r));
  save_threads(to);
  save_stops(to);
  save_records(to);
  on_checkpoint.shared.save(to);
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

/// Runs `step` on every rank, and gives all ranks the failure of the first one where it failed.
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

/// Returns when no message is in flight, and no fiber but main has run since the ranks met: every
/// rank's messages are counted twice, and nothing moved in between (Mattern, four-counter method).
void wait_until_all_arrived() {
  struct sums {
    std::uint64_t sent;
    std::uint64_t received;
    std::uint64_t busy;
  };
  std::uint64_t before = ~std::uint64_t{0};
  for (;;) {
    flush();  // calls in bundles are in no file either
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

/// True when this call has locked the path.
bool make_plan(plan& p, const std::string& path) {
  if (path.empty() || path.size() >= sizeof p.path - 32) {
    throw error(format("no file can have a name of %zu characters", path.size()));
  }
  (void)generation_at(path);  // throws when something else than a checkpoint lies there
  const bool locked = lock_for_this_rank(path);
  path.copy(p.path, sizeof p.path - 1);
  p.set.ranks = static_cast<std::uint64_t>(job.count);
  // The set may have come from another host than this one.
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
  // Each host may have a folder of its own, and there the files of its ranks.
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

/// Reads what a restored fiber needs besides its bytes.
void take_in(piece* p, file_reader& from) {
  load_thread(p, from);
  if (p->keeps_slot) {
    slots.restore_user(p->slot);
    restore_resident();
  }
}

void load_rank(file_reader& from) {
  self.root_type.resize(from.get<std::size_t>());
  from.bytes(self.root_type.data(), self.root_type.size());
  self.root.resize(from.get<std::size_t>());
  from.bytes(self.root.data(), self.root.size());

  load_heap(from);
  load_pieces(from, take_in);
  extents.load(from);
  slots.restore(from.get<std::uint32_t>());
  slots.free_unused();
  while (auto* p = from.get<piece*>()) set_aside(p);
  load_timers(from);
  load_tickets(from, forward_result);
  for (int r = 0; r < job.count; ++r) restore_unanswered(r, from.get<std::uint32_t>());
  load_threads(from);
  load_stops(from);
  load_records(from);
  on_checkpoint.shared.load(from);
}

}  // namespace

void attach_checkpoint(recorded_job recorded) { self.of_job = std::move(recorded); }

void checkpoint_now(const std::string& path, const root_bytes& root) {
  refuse_unless_main();
  refuse_several_programs();
  // Those that were begun earlier end here: their contributions are in no file.
  wait_for_open_collectives();
  barrier();
  self.main = running_piece();
  freeze([](const piece* p) { return p != self.main && !p->runs_frozen; });
  stand_still(true);
  wait_until_all_arrived();
  failure first = anywhere([] {
    if (const char* what = on_checkpoint.shared.unsaved(); what != nullptr)
      refuse(checkpoint_refusal::shared_memory, what);
  });
  if (first.why == checkpoint_refusal::none) {
    on_checkpoint.shared.gather();
    wait_until_all_arrived();
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
  // Locked until this job ends, for it may write its own checkpoints there.
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
    // Hosts may differ: each rank's is compared with that of the rank that wrote its file.
    is_of_this_program = from.get<std::uint64_t>() == fingerprint().all();
    if (is_of_this_program) load_rank(from);
  } catch (const error& e) {
    refuse_to_restore(e.what(), whole);
  }
  if (!is_of_this_program) {
    refuse_to_restore(path +
                          " was written by another program, or with other libraries or on another "
                          "kind of processor",
                      "start the same executable that wrote it, not a rebuilt one");
  }
  // A job that was killed right after its checkpoint was whole has left the files of the one
  // before.
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
  if (self.root_type != type || self.root.size() != size) {
    throw error(self.root_type.empty()
                    ? "the checkpoint was written without a root"
                    : "the root of the checkpoint has a different type than the one asked for");
  }
  std::memcpy(into, self.root.data(), size);
}

}  // namespace sojourn::detail

namespace sojourn {

bool restored() { return detail::self.restored; }

}  // namespace sojourn
