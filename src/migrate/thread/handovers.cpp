// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/handovers.hpp"

#include <algorithm>
#include <utility>

#include "memory/runtime_resource.hpp"
#include "message/outbound.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

balance_peers balance_with;

namespace {

// A thread that was handed over does not go back for this time, which doubles with each handover.
// (A handover takes microseconds.) From the fifth handover on, it goes to no other rank during that
// time, either.
constexpr std::uint64_t first_stay_ns = 50'000;
constexpr int stay_doublings_max = 10;
constexpr int handovers_free = 4;

}  // namespace

void attach_handovers() {
  balance_with.of = runtime_array<balance_peer>(static_cast<std::size_t>(job.count));
  balance_with.not_asked = job.count - 1;
}

void set_hungry(int rank, bool hungry) {
  balance_peer& p = balance_with.of[rank];
  balance_with.hungry += hungry - p.is_hungry;
  p.is_hungry = hungry;
}

void set_known(int from, bool asked, bool knows) {
  if (from == job.me) return;
  balance_peer& p = balance_with.of[from];
  balance_with.asked += asked - p.asked;
  balance_with.not_asked += !(asked || knows) - !(p.asked || p.knows);
  p.asked = asked;
  p.knows = knows;
}

void answer_nothing(int to) {
  const std::uint32_t given = balance_with.of[to].given;
  send_reply(to, runtime_message::steal_nothing, 0, 0, &given, sizeof given);
}

void got_from(int from) {
  ++balance_with.of[from].got;
  set_known(from, false, false);
}

void note_handover(balance_record& record) {
  record.handed_from = static_cast<std::int16_t>(job.me);
  if (record.handovers != 0xffff) ++record.handovers;
  ++counts.threads_handed_over;
}

void note_arrival(balance_record& record) {
  // Clamped, because a record from a message may hold any number.
  const int doublings = std::clamp(record.handovers - 1, 0, stay_doublings_max);
  record.stays_until_ns = now_ns() + (first_stay_ns << doublings);
}

bool may_go(const balance_record& record, int to) {
  if (record.affinity != no_rank && (record.affinity == job.me || record.affinity != to)) {
    return false;
  }
  if (record.handovers == 0) return true;
  bool damped = (record.handed_from == to || record.handovers > handovers_free) &&
                record.affinity != to && now_ns() < record.stays_until_ns;
  counts.handovers_damped += damped;
  return !damped;
}

void handover_departs(balance_record& record, int to, bool leaves) {
  if (leaves) {
    note_handover(record);
    record.on_its_way = true;
    ++balance_with.of[to].given;
  } else {
    // `to` waits still for the thread that it has asked for.
    set_hungry(to, true);
    answer_nothing(to);
  }
}

void handover_arrives(balance_record& record, int from) {
  if (!std::exchange(record.on_its_way, false)) return;
  note_arrival(record);
  got_from(from);
}

}  // namespace sojourn::detail
