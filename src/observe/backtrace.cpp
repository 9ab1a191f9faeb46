// SPDX-License-Identifier: Apache-2.0
#include "observe/backtrace.hpp"

#include "fiber/call_below.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/switch.hpp"
#include "frames/walk.hpp"

namespace sojourn::detail {

namespace {

/// Collects code addresses, to the first frame at or above `stop`.
struct collector {
  std::uint64_t stop;
  std::uint64_t* frames;
  std::size_t most;
  std::size_t count = 0;

  static bool add(const walked_frame& frame, void* data) {
    auto& c = *static_cast<collector*>(data);
    c.frames[c.count++] = frame.code;
    return c.count < c.most && (c.stop == 0 || frame.low < c.stop);
  }
};

}  // namespace

std::size_t walk_suspended(const piece* p, std::uint64_t* frames, std::size_t most) {
  collector c{p->hi, frames, most};
  (void)walk_frames_from(caller_of(p), collector::add, &c);
  return c.count;
}

bool interrupted_fiber(const void* context) {
  if (running_piece() == nullptr) return false;
  const code_position at = interrupted_at(context);
  if (handover.scheduler_low <= at.sp && at.sp < handover.scheduler_high) return false;
  return at.pc < reinterpret_cast<std::uint64_t>(sojourn_switch) ||
         at.pc >= reinterpret_cast<std::uint64_t>(sojourn_switch_end);
}

std::size_t walk_interrupted(const void* context, std::uint64_t stop, std::uint64_t* frames,
                             std::size_t most) {
  collector c{stop, frames, most};
  (void)walk_frames_carefully({interrupted_at(context).pc}, collector::add, &c);
  return c.count;
}

}  // namespace sojourn::detail
