// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/checked_scan.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/cut_text.hpp"
#include "fiber/call_below.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/switch.hpp"
#include "fiber/watched.hpp"
#include "frames/code_owner.hpp"
#include "frames/debug_info.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "frames/symbols.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/scan/clear_stack.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/scan/stretch_scan.hpp"
#include "migrate/scan/word_holder.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

/// One look at the frames that are to leave. They are walked only when a word is suspect.
class departure_check {
 public:
  departure_check(const piece* p, std::uint64_t hi, const mark* base, int to)
      : piece_(p), sp_(p->sp), hi_(hi), slot_high_(slots.high(p->slot)), base_(base), to_(to) {}

  void run() {
    if (base_ != nullptr) arguments();
    private_memory own = private_memory_now();
    std::uint64_t cleared_from = hi_ - std::min<std::uint64_t>(hi_, SOJOURN_CLEARED_BYTES);
    for (std::uint64_t at = sp_; at < hi_; at += 8) {
      std::uint64_t word = *reinterpret_cast<const std::uint64_t*>(at);
      if (word - own.heap_low < own.heap_high - own.heap_low ||
          word - own.top_low < own.top_high - own.top_low) {
        to_private_memory(at, word);
      } else if (word - hi_ < slot_high_ - hi_ && word % 8 == 0) {
        if (base_ != nullptr && at >= cleared_from && !is_link(word)) to_caller(at, word);
      } else if (is_here(word) && is_destroyed(word)) {
        to_destroyed(at, word);
      } else if (addresses.in_stacks(word) && slots.index_of(word) != piece_->slot &&
                 !slots.is_guard(word)) {
        // Guard pages are left out: they hold no data, so a word that points there is the end of a
        // stack, or a number.
        stop(at, word, "the stack of another fiber, which stays", remedy());
      }
    }
    // Walking the stack and reading debug information leave addresses of the private heap below the
    // frames that move. Without this, later frames would lie over them, and carry them along in
    // parts that they do not write.
    if (!frames_.empty()) clear_stack_below(cleared_after_walk);
  }

 private:
  /// Looks at the arguments of the activation.
  void arguments() {
    const auto* from = reinterpret_cast<const std::uint64_t*>(base_ + 1);
    for (std::size_t i = 0; i < base_->argument_words(); ++i) {
      std::uint64_t word = from[i];
      if (word % 8 != 0 || word - hi_ >= slot_high_ - hi_) continue;
      std::string function = activation();
      if (is_excused(function) || has_guard()) continue;
      die("an argument of `%s` is a pointer into the frames of its callers (0x%llx), which stay on "
          "rank %d while it migrates to rank %d: pass the data by value, or keep it in the global "
          "heap (docs/pitfalls.md)",
          function.c_str(), static_cast<unsigned long long>(word), job.me, to_);
    }
  }

  void to_private_memory(std::uint64_t at, std::uint64_t word) {
    if (is_allocated_object(word)) {
      std::string into = format("this rank's private heap, to an allocation of %zu bytes",
                                malloc_usable_size(reinterpret_cast<void*>(word)));
      return stop(at, word, into.c_str(), remedy());
    }
    for (std::size_t i = 1; i < frames().size(); ++i) {
      if (frames()[i].low - 8 == at && frames()[i].code + 1 == word) return to_library(i);
    }
    if (is_in_library(word)) {
      stop_if_named(at, word, "a library, which lies elsewhere on another rank",
                    "keep the pointer out of frames that migrate");
    }
  }

  /// Frame `i` belongs to a library and called frame `i - 1`.
  void to_library(std::size_t i) {
    std::string called = function_name(frames()[i - 1].code);
    std::string caller = "?";
    for (; i < frames().size(); ++i) {
      if (!is_private(frames()[i].code)) {
        caller = function_name(frames()[i].code);
        break;
      }
    }
    if (is_excused(called)) return;
    die("`%s` migrates to rank %d, and was called by a library function that `%s` called: the "
        "library lies elsewhere there; a function that a library calls back must not migrate "
        "(docs/pitfalls.md)",
        called.c_str(), to_, caller.c_str());
  }

  void to_caller(std::uint64_t at, std::uint64_t word) {
    stop(at, word, "the frames of its callers, which stay", remedy());
  }

  void to_destroyed(std::uint64_t at, std::uint64_t word) {
    // Only if a variable is known to hold it: an access to the object through a global_ptr would be
    // checked where it is made.
    stop_if_named(at, word, "an object that was destroyed",
                  "set the pointer to null when it destroys the object");
  }

  /// True for what a mark itself leaves in the frame below it: the addresses of the mark, of its
  /// arguments, of the room for its result, and of the call's frame.
  bool is_link(std::uint64_t word) const {
    auto low = reinterpret_cast<std::uint64_t>(base_);
    const std::size_t behind = base_->argument_words() + base_->unwritten_words();
    auto high = low + sizeof(mark) + behind * sizeof(std::uint64_t);
    if (word - low <= high - low) return true;
    return word == reinterpret_cast<const std::uint64_t*>(hi_)[8];
  }

  const std::vector<frame>& frames() {
    if (frames_.empty()) frames_ = frames_between(sp_, hi_);
    return frames_;
  }

  const char* remedy() const {
    bool heap_comes_along = base_ == nullptr && piece_->is_thread_base();
    return heap_comes_along
               ? "pass the data by value, or keep it on thread_heap() or in the global heap"
               : "pass the data by value, or keep it in the global heap";
  }

  const frame* frame_of(std::uint64_t at) {
    for (const frame& f : frames()) {
      if (at < f.high) return &f;
    }
    return nullptr;
  }

  static bool is_private(std::uint64_t code) {
    private_memory own = private_memory_now();
    return code - own.top_low < own.top_high - own.top_low;
  }

  /// The oldest function of the program among the frames that move.
  std::string activation() {
    std::string name = "?";
    for (const frame& f : frames()) {
      if (owner_of_code(f.code) == code_owner::program) name = function_name(f.code);
    }
    return name;
  }

  /// A scan_allow lies in the frames that move.
  bool has_guard() const { return has_guard(sp_, hi_); }
  static bool has_guard(std::uint64_t low, std::uint64_t high) {
    for (std::uint64_t at = low; at < high; at += 8) {
      if (*reinterpret_cast<const std::uint64_t*>(at) == scan_allow::mark) return true;
    }
    return false;
  }

  void stop(std::uint64_t at, std::uint64_t word, const char* into, const char* instead) {
    const word_holder holder = holder_of(frames(), at, word);
    if (holder.what == word_holder::kind::variable) {
      stop_in(*holder.in, holder.at, word, into, instead, holder.variable);
    } else if (holder.what == word_holder::kind::unknown) {
      warn_of(*holder.in, holder.at, word, into, instead);
    }
  }

  void stop_if_named(std::uint64_t at, std::uint64_t word, const char* into, const char* instead) {
    const frame* f = frame_of(at);
    if (f == nullptr) return;
    const frame_variable& variable = variable_in_frame(*f, at);
    if (variable.is_pointer) stop_in(*f, at, word, into, instead, variable.name);
  }

  /// True when a scan_allow in the frame, or SOJOURN_ALLOW, says that the word is not a mistake.
  bool is_allowed(const frame& f, const std::string& function) const {
    return is_excused(function) || has_guard(std::max(f.low, sp_), f.high);
  }

  /// Names the function, where it goes, and the word. `at`: the word's address, or 0 when it is in
  /// a register.
  std::string describe(const frame& f, std::uint64_t at, std::uint64_t word,
                       const std::string& variable) const {
    std::string what = described_variable(variable);
    std::string place = at == 0 ? "in a register"
                                : format("%llu bytes below its frame's end",
                                         static_cast<unsigned long long>(f.high - at));
    return format("`%s` migrates to rank %d with %s (0x%llx, %s)", function_name(f.code).c_str(),
                  to_, what.c_str(), static_cast<unsigned long long>(word), place.c_str());
  }

  void stop_in(const frame& f, std::uint64_t at, std::uint64_t word, const char* into,
               const char* instead, const std::string& variable) {
    std::string function = function_name(f.code);
    if (is_allowed(f, function)) return;
    die("%s, a pointer into %s: %s; if it is not used there, sojourn::scan_allow or "
        "SOJOURN_ALLOW='%s:why' says so (docs/pitfalls.md)",
        describe(f, at, word, variable).c_str(), into, instead, function.c_str());
  }

  /// Warns, once per function, and does not end the job, because without debug information on
  /// variables the word may as well be dead.
  void warn_of(const frame& f, std::uint64_t at, std::uint64_t word, const char* into,
               const char* instead) {
    std::string function = function_name(f.code);
    if (is_allowed(f, function)) return;
    ++counts.scan_warnings;
    static std::set<std::string> named;
    if (!named.insert(function).second) return;
    std::fprintf(stderr,
                 "sojourn: rank %d: warning: %s that looks like a pointer into %s: %s; built with "
                 "-g, checked mode knows whether it is one, and ends the job (docs/pitfalls.md)\n",
                 job.me, describe(f, at, word, {}).c_str(), into, instead);
  }

  static bool is_in_library(std::uint64_t word) {
    std::string name = symbolise(word);
    return !name.empty() && !name.starts_with("0x");
  }

  const piece* piece_;
  std::uint64_t sp_, hi_, slot_high_;
  const mark* base_;
  int to_;
  std::vector<frame> frames_;
};

}  // namespace

void check_departure(const piece* p, std::uint64_t hi, bool caller_waits, const mark* oldest,
                     int to) {
  if (running.watched != 0) check_watched(p->sp, caller_waits ? p->hi : hi, "migrates");
  if (!scan_is_enabled()) return;
  departure_check check(p, hi, oldest, to);
  if (addresses.in_stacks(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)))) {
    return check.run();
  }
  // On the scheduler's stack, as when others move a thread: the check is made to run as if the
  // frames had called it.
  call_below(p, [](void* c) { static_cast<departure_check*>(c)->run(); }, &check);
}

namespace {

/// Where an address of this rank's memory points to; null for any other word.
const char* memory_that_stays(std::uint64_t word) {
  const private_memory own = private_memory_now();
  const bool is_private = word - own.heap_low < own.heap_high - own.heap_low ||
                          word - own.top_low < own.top_high - own.top_low;
  if (is_private && is_allocated_object(word)) return "this rank's private heap";
  // A guard page holds no data: see departure_check.
  if (word % 8 == 0 && addresses.in_stacks(word) && !slots.is_guard(word) &&
      slots[slots.index_of(word)].users != 0) {
    return "a stack of this rank";
  }
  return nullptr;
}

}  // namespace

namespace {

std::string describe_leaving(leaves_as what, int to, const std::string& function,
                             const std::string& type) {
  const std::string rank = to == several_ranks ? "other ranks" : "rank " + std::to_string(to);
  const std::string value = " of type " + type;
  switch (what) {
    case leaves_as::argument:
      return "`" + function + "` sends " + rank + " an argument" + value;
    case leaves_as::result:  // the function that returned the value has no frame any more
      return "a call by " + rank + " returns a value" + value;
    case leaves_as::copy:
      return "`" + function + "` writes to the heap of " + rank + " a value" + value;
    case leaves_as::contribution:
      return "`" + function + "` passes to " + rank + " a value" + value;
  }
  return "";
}

}  // namespace

void check_hidden(leaves_as what, int to, const void* values, std::size_t count, object_kind type) {
  if (!scan_is_enabled() || to == job.me) return;
  const auto* bytes = static_cast<const std::byte*>(values);
  for (std::size_t first = 0; first < count * type.bytes; first += type.bytes) {
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= type.bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, bytes + first + i, sizeof word);
      const char* into = memory_that_stays(word);
      if (into == nullptr) continue;
      const piece* p = running_piece();
      const std::string function = p != nullptr ? function_name(user_code(p->hi)) : "?";
      if (is_excused(function)) return;
      die("%s with a pointer in its private members (0x%llx) into %s: pass the data by value, or "
          "keep it in the global heap (docs/pitfalls.md)",
          describe_leaving(what, to, function,
                           type.type != nullptr ? demangle_type(type.type->name()) : "a class")
              .c_str(),
          static_cast<unsigned long long>(word), into);
    }
  }
}

bool describe_caller_access(std::uint64_t address, bool writes, char* text, std::size_t room) {
  const piece* p = running_piece();
  if (!checked() || p == nullptr || !slots.is_closed_at(address) || address < p->hi ||
      slots.index_of(address) != p->slot) {
    return false;
  }
  // The oldest word of the frames is the return address into their caller
  // (sojourn_call_marked_checked).
  std::uint64_t caller = *reinterpret_cast<const std::uint64_t*>(p->hi - 8);
  std::string activation = "?";
  for (const frame& f : frames_below(p->hi)) {
    if (owner_of_code(f.code) == code_owner::program) activation = function_name(f.code);
  }
  print_text(text, room,
             "activation `%s` moved to rank %d and %s the frame of its caller `%s` on rank %d",
             activation.c_str(), job.me, writes ? "wrote to" : "read",
             function_name(caller - 1).c_str(), home_of(p->result));
  return true;
}

void name_refusal(const piece* p, int to) {
  const char* why = nullptr;
  if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0 || p->marks_hold_exceptions) {
    why = "in a catch block, or while an exception is on its way";
  } else if (p->static_inits != 0) {
    why = "while a static variable is being initialised";
  }
  if (why == nullptr) return;
  std::uint64_t code = user_code(p->hi);
  std::string function = function_name(code);
  static std::set<std::pair<std::string, const char*>> named;
  if (is_excused(function) || !named.emplace(function, why).second) return;
  std::fprintf(stderr,
               "sojourn: rank %d: warning: `%s` does not migrate to rank %d %s; it calls from here "
               "instead (docs/pitfalls.md)\n",
               job.me, function.c_str(), to, why);
}

}  // namespace sojourn::detail
