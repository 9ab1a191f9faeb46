// SPDX-License-Identifier: Apache-2.0
#include "frames/walk.hpp"

#include "base/faults.hpp"

namespace sojourn::detail {

namespace {

struct walk {
  walk_start start;
  frame_visitor visit;
  void* data;
  bool has_begun = false;
  bool is_first_of_all = true;
};

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* argument) {
  auto& w = *static_cast<walk*>(argument);
  int is_interrupted = 0;
  const std::uint64_t pc = _Unwind_GetIPInfo(context, &is_interrupted);
  if (pc == 0) return _URC_END_OF_STACK;
  bool is_call = is_interrupted == 0;
  if (!w.has_begun) {
    const bool is_walkers = w.start.pc == 0 ? w.is_first_of_all : pc != w.start.pc;
    w.is_first_of_all = false;
    if (is_walkers) return _URC_NO_REASON;
    w.has_begun = true;
    if (w.start.pc != 0) is_call = w.start.is_call;
  }
  // While the unwinder visits a frame, its canonical frame address is that of the frame's callee.
  const walked_frame frame{is_call ? pc - 1 : pc, _Unwind_GetCFA(context), context};
  return w.visit(frame, w.data) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void run(void* w) { _Unwind_Backtrace(on_frame, w); }

}  // namespace

[[gnu::noinline]] void walk_frames(const walk_start& start, frame_visitor visit, void* data) {
  walk w{start, visit, data};
  _Unwind_Backtrace(on_frame, &w);
}

bool walk_frames_carefully(const walk_start& start, frame_visitor visit, void* data) {
  walk w{start, visit, data};
  return survives_faults(run, &w);
}

bool walk_frames_from(const code_position& from, frame_visitor visit, void* data) {
  struct suspended {
    code_position from;
    walk w;
  } at{from, {{from.pc, true}, visit, data}};
  return survives_faults(
      [](void* argument) {
        auto* a = static_cast<suspended*>(argument);
        sojourn_call_as_if_from(&a->from, run, &a->w);
      },
      &at);
}

void prepare_walks() {
  // No frame goes on at this address, so the walk goes through all frames.
  walk_frames({1, false}, [](const walked_frame&) { return false; });
}

}  // namespace sojourn::detail
