// SPDX-License-Identifier: Apache-2.0
#include "job/first_steps.hpp"

#include <cstring>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "checkpoint/checkpoint.hpp"
#include "fiber/forks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "job/crash.hpp"
#include "job/meeting.hpp"
#include "job/segment.hpp"
#include "job/segment_neighbours.hpp"
#include "memory/address_map.hpp"
#include "message/bundles.hpp"
#include "message/dispatcher.hpp"
#include "message/programs.hpp"
#include "migrate/fingerprint.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/ship.hpp"
#include "migrate/steal.hpp"
#include "migrate/thread/balance.hpp"
#include "migrate/thread/threads.hpp"
#include "migrate/thread/xthreads.hpp"
#include "object/call_places.hpp"
#include "object/copies.hpp"
#include "object/records.hpp"
#include "object/replicated.hpp"
#include "object/sites.hpp"
#include "observe/watch.hpp"
#include "rpc/bulk.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/dropped_results.hpp"
#include "rpc/functions.hpp"
#include "rpc/kept_values.hpp"
#include "rpc/named.hpp"
#include "rpc/results.hpp"
#include "rpc/scopes.hpp"
#include "rpc/shards.hpp"
#include "rpc/stop.hpp"
#include "rpc/tickets.hpp"
#include "shared/rank_memory.hpp"
#include "transport/link/agent_sockets.hpp"
#include "transport/link/carriers.hpp"

namespace sojourn::detail {

namespace {

life_of_rank life;

/// Where the job has several hosts: the ranks of this one, and what carries messages to others.
std::optional<shm::several_hosts> hosts_of_job() {
  const job_segment& s = *life.segment;
  if (!s.has_several_hosts()) return std::nullopt;
  if (encrypts_job() || carrier_of_job() == carrier::ucx) distrust_frames_without_debug_info();
  // Never destroyed: a thread of the program may end the process while the worker uses it.
  static link& links =
      *make_link(carrier_of_job(), job.me,
                 std::make_unique<agent_sockets>(life.segment->ranks[job.me].channel))
           .release();
  return shm::several_hosts{.first_near = static_cast<int>(s.first_here),
                            .near = static_cast<int>(s.ranks_here),
                            .carrier = &links,
                            .bell = life.segment->ranks[job.me].bell};
}

void attach_worker() {
  attach_scheduler(addresses.worker_stack(),
                   addresses.worker_stack() + address_map::worker_stack_bytes);
}

void attach_messages() {
  job_segment& s = *life.segment;
  const std::optional<shm::several_hosts> hosts = hosts_of_job();
  attach_dispatcher(reinterpret_cast<std::byte*>(&s) + s.transport_offset, job.me, job.count,
                    static_cast<int>(s.cores), hosts ? &*hosts : nullptr);
}

void attach_near_ranks() {
  static const segment_neighbours near(*life.segment);
  attach_neighbours(near);
  on_dispatch.fail_waits = [](int r) {
    fail_answers_of(r);
    fail_copies_of(r);
    fail_replicas_of(r);
    fail_arrivals_from(r);
    fail_finishes(r);
    fail_collective();
    fail_shared_memory();  // last: it may end the rank
  };
}

void attach_reports() {
  attach_crash_report(*life.segment, job.me, life.is_alone);
  attach_watch(life.segment->watch(), {!life.is_alone, life.waiting_main, life.deadlocked,
                                       life.ring, takes_part_in_shared_barrier, [] {
                                         const auto now = attendance_at_shared_barrier();
                                         return barrier_part{now.members, now.arrived, now.guests};
                                       }});
}

void attach_checkpoints() {
  const job_segment& s = *life.segment;
  attach_checkpoint({.secret = s.secret,
                     .hosts = s.hosts,
                     .over_ucx = s.has_several_hosts() && carrier_of_job() == carrier::ucx,
                     .encrypted = s.has_several_hosts() && encrypts_job()},
                    {{"shared memory", save_shared_memory, load_shared_memory},
                     unsaved_shared_memory,
                     gather_shared_memory});
}

void restore_if_asked() {
  const job_segment& s = *life.segment;
  if (s.restore_path[0] != 0) restore_rank(s.restore_path, s.restored);
}

void attach_all_programs() {
  attach_programs([](int r) {
    const rank_block& rank = life.segment->ranks[r];
    fingerprints of_rank{rank.image, {}};
    std::memcpy(of_rank.stack_needs, rank.stack_needs, sizeof rank.stack_needs);
    return rank_program{rank.image, of_rank.all(), rank.program};
  });
}

void introduce() { introduce_myself(life.segment->ranks[job.me]); }
void meet() { meet_others(*life.segment, life.ring); }

/// How a rank comes to life. The order is the same in each process also where no reason is given:
/// some of these take memory of the runtime, which in a restored job must lie where it lay.
constexpr void (*first_steps[])() = {
    note_job_begins,
    attach_worker,   // before anything runs
    attach_tickets,  // before anything opens one
    attach_forks,
    attach_functions,
    // These register handlers and hooks, of which the dispatcher makes copies.
    attach_results,
    attach_forwarding,
    attach_dropped_results,
    attach_collectives,
    attach_scopes,
    attach_shards,
    attach_bulk,
    attach_kept,
    attach_names,
    attach_stop,
    attach_scan,
    attach_ship,
    attach_reading,
    attach_threads,
    attach_xthreads,
    attach_balance,
    attach_shared_memory,
    attach_sites,
    attach_records,
    attach_copies,
    attach_call_places,
    attach_replicas,
    attach_messages,
    attach_bundles,
    attach_near_ranks,
    attach_losses,  // asks the neighbours
    attach_reports,
    introduce,  // before the others are met, who read it
    attach_checkpoints,
    restore_if_asked,  // all handlers are there, and nothing has run
    meet,
    attach_all_programs,  // which all ranks have told of
    // These ask which ranks run this one's program.
    close_to_other_programs,
    balance_among_own_program,
    attach_steal,
};

}  // namespace

void take_first_steps(const life_of_rank& of) {
  life = of;
  for (void (*const step)() : first_steps) step();
}

}  // namespace sojourn::detail
