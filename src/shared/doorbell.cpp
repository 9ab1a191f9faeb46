// SPDX-License-Identifier: Apache-2.0
#include "shared/doorbell.hpp"

#include <ucontext.h>
#include <unwind.h>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "base/faults.hpp"
#include "base/loaded_libraries.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/switch.hpp"
#include "fiber/timers.hpp"
#include "frames/symbols.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/stack_slots.hpp"
#include "message/loop.hpp"
#include "shared/fault_frame.hpp"
#include "shared/shared_settings.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/detail/running.hpp"
#include "transport/neighbours.hpp"

extern "C" const char __executable_start, etext;  // the linker's

namespace sojourn::detail::pages {

namespace {

// --- Whose code was interrupted

using owner = owner_of_code;

struct code_range {
  std::uint64_t begin;
  std::uint64_t end;
  owner whose;
};
std::uint64_t program_begins = 0;
std::uint64_t program_ends = 0;
bool program_calls_malloc = false;                           ///< And has none of its own.
const std::pmr::vector<code_range>* runtime_code = nullptr;  ///< By address; they do not overlap.

/// Functions of the runtime that call the program, and do nothing afterwards but end. (`enter` is
/// the oldest frame of a stack under the address sanitizer.)
constexpr std::string_view callers_of_program[] = {
    "main_fiber", "run_user_handler", "run_rest_of_bundle", "rest_of_bundle", "run_kept",
    "run_task",   "call_process",     "call_main",          "enter"};

/// Takes the number and the name that a part of a mangled name begins with; "" when there is none.
std::string_view take_part(std::string_view& mangled) {
  std::size_t digits = 0, length = 0;
  for (; digits < mangled.size() && mangled[digits] >= '0' && mangled[digits] <= '9' &&
         length < mangled.size();
       ++digits)
    length = 10 * length + static_cast<std::size_t>(mangled[digits] - '0');
  if (digits == 0 || length > mangled.size() - digits) return "";
  const std::string_view part = mangled.substr(digits, length);
  mangled.remove_prefix(digits + length);
  return part;
}

/// Whether the arguments of a template, mangled, name something that is neither Sojourn's nor of
/// the standard library.
bool names_program(std::string_view arguments) {
  bool is_local = false;  // a type within a function of Sojourn is being named
  while (!arguments.empty()) {
    const char c = arguments.front();
    if (c >= '0' && c <= '9') return !take_part(arguments).empty();
    arguments.remove_prefix(1);
    if (c == 'Z') {
      const std::size_t name = arguments.find_first_not_of("ZNVKRO");
      // What a substitution stands for has been named before.
      is_local =
          is_local || (name != arguments.npos &&
                       (arguments[name] == 'S' || arguments.substr(name).starts_with("7sojourn")));
    } else if (c == 'E' && is_local && !arguments.empty() && arguments[0] >= '0' &&
               arguments[0] <= '9') {
      take_part(arguments);
      is_local = false;
    }
    const bool is_std = c == 'S' && arguments.starts_with('t');
    const std::size_t at = c == 'N' ? arguments.find_first_not_of("VKRO") : 0;
    if (is_std) {
      arguments.remove_prefix(1);
      take_part(arguments);
    } else if (c == 'S') {
      arguments.remove_prefix(std::min(arguments.find('_'), arguments.size()));
      while (!take_part(arguments.starts_with('_') ? arguments = arguments.substr(1) : arguments)
                  .empty())
        continue;
    } else if (c == 'L') {
      arguments.remove_prefix(std::min(arguments.find('E'), arguments.size()));
    } else if (at != arguments.npos && (arguments.substr(at).starts_with("7sojourn") ||
                                        arguments.substr(at).starts_with("St"))) {
      arguments.remove_prefix(at + (arguments[at] == 'S' ? 2 : 0));
      while (!take_part(arguments).empty()) continue;
    }
  }
  return false;
}

}  // namespace

owner_of_code whose(std::string_view name) {
  if (name.starts_with("sojourn_")) return owner::runtime;
  if (!name.starts_with("_Z")) return owner::others;
  // What works on the runtime's own types is the runtime's, whoever has written it.
  if (name.starts_with("_ZNSt") || name.starts_with("_ZNKSt") || name.starts_with("_ZSt"))
    return name.find("7sojourn6detail") != name.npos ? owner::runtime : owner::others;
  const std::size_t at = name.find_first_not_of("ZNKVRO", 2);
  if (at == name.npos || !name.substr(at).starts_with("7sojourn"))
    return name.starts_with("_ZT") && name.find("N7sojourn") != name.npos ? owner::runtime
                                                                          : owner::others;
  std::string_view rest = name.substr(at);
  std::string_view last;
  for (std::string_view part; !(part = take_part(rest)).empty();) last = part;
  if (const std::size_t arguments = rest.find('I'); arguments != rest.npos)
    return names_program(rest.substr(arguments + 1)) ? owner::others : owner::runtime;
  const bool calls = std::find(std::begin(callers_of_program), std::end(callers_of_program),
                               last) != std::end(callers_of_program);
  return calls ? owner::calls_program : owner::runtime;
}

namespace {

owner owner_at(std::uint64_t code) {
  if (code - reinterpret_cast<std::uint64_t>(sojourn_switch) <
      reinterpret_cast<std::uint64_t>(sojourn_switch_end) -
          reinterpret_cast<std::uint64_t>(sojourn_switch))
    return owner::calls_program;
  const auto after =
      std::upper_bound(runtime_code->begin(), runtime_code->end(), code,
                       [](std::uint64_t c, const code_range& r) { return c < r.begin; });
  if (after == runtime_code->begin() || code >= std::prev(after)->end) return owner::others;
  return std::prev(after)->whose;
}

struct walk {
  std::uint64_t first;  ///< The interrupted instruction; younger frames are the handler's.
  std::uint64_t stop;   ///< Frames from here on are not of this piece.
  bool started = false;
  bool is_users = false;
  int frames = 0;
};

/// More frames of libraries than the runtime ever calls.
constexpr int frames_of_libraries = 64;

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  int is_interrupted = 0;
  std::uint64_t code = _Unwind_GetIPInfo(context, &is_interrupted);
  if (code == 0) return _URC_END_OF_STACK;
  if (!w->started && code != w->first) return _URC_NO_REASON;
  if (w->started && is_interrupted == 0) --code;
  w->started = true;
  // What is called the canonical frame address here is the younger end of the frame. Two words may
  // lie between the piece and frames that are elsewhere.
  const bool is_last = _Unwind_GetCFA(context) + 16 >= w->stop;
  const owner o = is_last ? owner::calls_program : owner_at(code);
  if (w->frames++ == 0) return o == owner::others ? _URC_NO_REASON : _URC_END_OF_STACK;
  w->is_users =
      o == owner::calls_program || (o == owner::others && w->frames > frames_of_libraries);
  return o == owner::others && !w->is_users ? _URC_NO_REASON : _URC_END_OF_STACK;
}

std::uint64_t interrupted_pc(const void* context) {
  const auto& r = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(r.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return r.pc;
#endif
}

}  // namespace

bool is_in_program(const void* context) {
  const std::uint64_t pc = interrupted_pc(context);
  return program_calls_malloc && pc - program_begins < program_ends - program_begins;
}

void prepare_doorbell() {
  program_begins = reinterpret_cast<std::uint64_t>(&__executable_start);
  program_ends = reinterpret_cast<std::uint64_t>(&etext);
  const auto allocator = reinterpret_cast<std::uint64_t>(address_for_libraries("malloc"));
  program_calls_malloc =
      allocator != 0 && allocator - program_begins >= program_ends - program_begins;
  const symbol_table program("/proc/self/exe");
  auto* all = new std::pmr::vector<code_range>(runtime_resource());
  program.each([&](const char* name, std::uint64_t begin, std::uint64_t end) {
    const owner o = whose(std::string_view(name));
    if (o == owner::others) return;
    if (!all->empty() && begin < all->back().end) {
      // Another name of the same function; one of them may call the program.
      if (begin == all->back().begin && o == owner::runtime) all->back().whose = o;
      begin = all->back().end;
    }
    if (begin >= end) return;
    all->push_back({begin, end, o});
  });
  if (!all->empty() && program.fixed_addresses()) runtime_code = all;
}

bool interrupts_user_code(const void* context) {
  const piece* p = running_piece();
  if (p == nullptr || runtime_code == nullptr) return false;
  const std::uint64_t sp = interrupted_sp(context);
  if (sp < slots.low(p->slot) + stack_slots::guard_bytes || sp >= p->hi) return false;
  walk w{interrupted_pc(context), p->hi};
  // Between two instructions that the unwinder's tables do not tell apart, the walk may follow a
  // word that is no address.
  const bool is_whole =
      survives_faults([](void* argument) { _Unwind_Backtrace(visit, argument); }, &w);
  return is_whole && w.is_users;
}

// --- Ringing

namespace {

constexpr std::uint64_t longest_pause_ns = 1'000'000;
ringer* ringer_of_rank = nullptr;

}  // namespace

ringer::ringer(const tick_clock& clock)
    : clock_(clock), was_sent_(runtime_array<bool>(static_cast<std::size_t>(job.count))) {
  ringer_of_rank = this;
}

void ringer::begin_wait() {
  // Each question is rung for soon, however long other fibers have waited for theirs.
  const bool asks_anew = std::exchange(was_asked_, false) && rang_;
  if (waiting_++ != 0 && is_set_ && !asks_anew) return;
  since_ns_ = clock_.ns();
  // What has not arrived cannot be answered.
  again_after_ns_ = settings().bell_after_ns + wire().way_ns();
  rang_ = false;
  // An alarm that is set for a wait that is over looks at the time again.
  if (is_set_ && !asks_anew) return;
  is_set_ = true;
  set_alarm(now_ns() + again_after_ns_, on_alarm);
}

void ringer::end_wait() {
  if (--waiting_ == 0) std::fill_n(was_sent_, job.count, false);
}

void ringer::on_alarm() {
  ringer_of_rank->is_set_ = false;
  ringer_of_rank->look();
}

void ringer::look() {
  if (waiting_ == 0) {
    is_set_ = false;
    return;
  }
  std::uint64_t waited_ns = clock_.since(since_ns_);
  if (waited_ns < again_after_ns_ && is_set_) return;
  is_set_ = false;
  if (waited_ns >= again_after_ns_) {
    // Whoever has been asked may have passed the question on: from the second time on, all ranks
    // are rung at. If all of them sleep, they have read everything, and nobody has to be told.
    const bool anybody = ring_at(rang_);
    if (rang_ && !anybody) return;
    rang_ = true;
    since_ns_ = clock_.ns();
    waited_ns = 0;
    again_after_ns_ = std::min(2 * again_after_ns_, longest_pause_ns);
  }
  is_set_ = true;
  set_alarm(now_ns() + again_after_ns_ - waited_ns, on_alarm);
}

bool ringer::ring_at(bool all) {
  bool anybody = false;
  for (int r = 0; r < job.count; ++r) {
    if (r == job.me || !(all || was_sent_[r]) || !near_ranks().include(r)) continue;
    anybody = near_ranks().interrupt(r) || anybody;
  }
  return anybody;
}

}  // namespace sojourn::detail::pages
