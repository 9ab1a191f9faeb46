// SPDX-License-Identifier: Apache-2.0
#include "job/stack_text.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <vector>

#include "frames/code_owner.hpp"
#include "frames/debug_info.hpp"
#include "frames/function_name.hpp"
#include "frames/symbols.hpp"

namespace sojourn::detail {
namespace {

// Libraries lie above the heap's range and the program below it, on x86-64 and on aarch64.
constexpr std::uintptr_t libraries_start = std::uintptr_t{0x2a} << 40;
constexpr const char* in_library = "in a shared library";

/// True for what lies between the user's functions: the runtime's own, and the library's calls of
/// a callable.
bool is_plumbing(const std::string& function) {
  auto has = [&](const char* part) { return function.find(part) != std::string::npos; };
  auto starts = [&](const char* part) { return function.rfind(part, 0) == 0; };
  return owner_of_name(function) == code_owner::runtime || has("std::__invoke") ||
         has("std::__apply_impl") || starts("std::apply<") || has(" std::apply<") ||
         has("::_FUN(") || has("::__invoke(") || function == "_FUN";
}

/// True for what a failing program calls between the failure and its end.
bool is_way_out(const std::string& function) {
  for (const char* name : {"sojourn::detail::die(",
                           "sojourn::detail::check_failed(",
                           "on_terminate",
                           "__cxxabiv1::__terminate",
                           "std::terminate",
                           "__cxa_throw",
                           "__cxa_rethrow",
                           "__gxx_personality_v0",
                           "__cxa_call_terminate",
                           "_Unwind_",
                           "std::rethrow_exception",
                           "note_early_exit",
                           "sojourn::detail::type_of_thrown_past::__do_catch",
                           "sojourn::detail::note_passing(",
                           "get_adjusted_ptr",
                           "child_throws",
                           "sojourn_child_personality",
                           "std::__throw_",
                           "sojourn::detail::walk_frames",
                           "on_frame"}) {
    if (function.rfind(name, 0) == 0 ||
        function.rfind(std::string("sojourn::detail::(anonymous namespace)::") + name, 0) == 0) {
      return true;
    }
  }
  return false;
}

std::string place_text(const source_frame& frame) {
  if (frame.file.empty() || frame.line == 0) return "";
  std::error_code failure;
  std::string here = std::filesystem::current_path(failure).string() + "/";
  bool below = !failure && frame.file.rfind(here, 0) == 0;
  return " at " + (below ? frame.file.substr(here.size()) : frame.file) + ":" +
         std::to_string(frame.line);
}

/// Functions at an address of a process that ran `file`, innermost first; at least one.
std::vector<source_frame> functions_at(const std::string& file, bool fixed, std::uint64_t address) {
  std::vector<source_frame> functions;
  if (fixed) functions = describe_address(file, address);
  if (functions.empty()) {
    functions.push_back({address >= libraries_start ? in_library : "", "", 0, false});
  }
  return functions;
}

/// True for an inlined function that is no more than the way to the next one of the user's own.
bool is_inlined_plumbing(const source_frame& f) {
  return f.inlined && (is_plumbing(f.function) || f.file.rfind("/usr/include/", 0) == 0 ||
                       f.file.find("/include/c++/") != std::string::npos ||
                       f.file.find("/include/sojourn/") != std::string::npos);
}

std::string frame_text(std::size_t number, std::uint64_t address,
                       const std::vector<source_frame>& functions) {
  std::string label = "    #" + std::to_string(number) + (number < 10 ? "  " : " ");
  std::string where = label + hexadecimal(address);
  std::string text;
  bool any = std::any_of(functions.begin(), functions.end(), [](const source_frame& f) {
    return f.inlined && !is_inlined_plumbing(f);
  });
  std::vector<const source_frame*> shown;
  for (const source_frame& f : functions) {
    // Leave out a template of ours when the user's function that it calls was inlined into it.
    if (is_inlined_plumbing(f) || (any && !f.inlined && is_plumbing(f.function))) continue;
    shown.push_back(&f);
  }
  for (const source_frame* f : shown) {
    text += text.empty() ? where : std::string(where.size(), ' ');
    if (!f->function.empty()) text += "  " + f->function;
    text += place_text(*f);
    // Inlined into the function shown next. The last was inlined into a template that is not shown.
    text += f->inlined && f != shown.back() ? " (inlined)\n" : "\n";
  }
  return text;
}

std::string rank_text(std::int32_t rank_plus_one) {
  return "rank " + std::to_string(rank_plus_one - 1);
}

bool is_rank(std::int32_t rank_plus_one) {
  return rank_plus_one >= 1 && rank_plus_one <= rank_count_max;
}

struct numbered_frame {
  std::uint64_t number;  ///< As the dying process counted.
  std::uint64_t address;
};

/// The frames that were kept: all, or those at both ends.
std::vector<numbered_frame> frames_of(const crash_record& crash) {
  std::vector<numbered_frame> frames;
  std::uint64_t count = std::min<std::uint64_t>(crash.frame_count, std::size(crash.frames));
  for (std::uint64_t i = 0; i < count; ++i) frames.push_back({i, crash.frames[i]});
  std::uint64_t total = crash.frames_in_all;
  if (count < std::size(crash.frames) || total > crash_walk_max) return frames;
  std::uint64_t oldest = total - std::min<std::uint64_t>(total, crash_oldest_max);
  for (std::uint64_t n = std::max(count, oldest); n < total; ++n) {
    frames.push_back({n, crash.oldest[n % crash_oldest_max]});
  }
  return frames;
}

std::vector<numbered_frame> frames_of(const thrown_frames& thrown) {
  std::vector<numbered_frame> frames;
  for (std::uint32_t i = 0; i < thrown.kept(); ++i) {
    frames.push_back({thrown.number(i), thrown.code[i]});
  }
  return frames;
}

/// Removes frames that say nothing: at the young end those that only lead from the failure to the
/// end of the process, at the old end those with which every stack begins.
void trim(std::vector<numbered_frame>& frames, bool has_way_out,
          const std::function<std::vector<source_frame>(std::uint64_t)>& functions) {
  auto name = [&](const numbered_frame& f) { return functions(f.address).back().function; };
  if (has_way_out) {
    std::size_t out = 0;
    while (out < frames.size() &&
           (name(frames[out]) == in_library || is_way_out(name(frames[out])))) {
      ++out;
    }
    if (out < frames.size()) frames.erase(frames.begin(), frames.begin() + static_cast<long>(out));
  }
  if (frames.size() > 1 && name(frames.back()).rfind("sojourn_call_", 0) == 0) frames.pop_back();
}

/// What a stack began with, by its functions.
struct beginning {
  std::string by;        ///< The oldest function of the user's own.
  std::string callable;  ///< The callable that a message named.
};

template <class Functions>
std::string frames_text(const std::vector<numbered_frame>& frames, const Functions& functions,
                        beginning& began) {
  std::string text;
  for (std::size_t i = 0; i < frames.size();) {
    std::uint64_t address = frames[i].address;
    std::size_t next = i + 1;
    while (next < frames.size() && frames[next].address == address) ++next;
    std::vector<source_frame> here = functions(address);
    text += frame_text(frames[i].number - frames[0].number, address, here);
    std::uint64_t last = frames[next - 1].number;
    if (last > frames[i].number) {
      text += "    the same " + std::to_string(last - frames[i].number) + " more times\n";
    }
    if (next < frames.size() && frames[next].number > last + 1) {
      text += "    " + std::to_string(frames[next].number - last - 1) + " frames in between\n";
    }
    for (const source_frame& f : here) {
      if (!is_plumbing(f.function) && !is_inlined_plumbing(f)) began.by = f.function;
      if (std::string c = callable_in(f.function); !c.empty()) began.callable = c;
    }
    i = next;
  }
  return text;
}

}  // namespace

std::string stack_text(const crash_record& crash, const std::string& symbol_file,
                       std::uint64_t sender) {
  bool fixed = symbol_table(symbol_file).fixed_addresses();
  auto functions = [&](std::uint64_t address) { return functions_at(symbol_file, fixed, address); };
  std::string text;
  if (std::vector<numbered_frame> thrown = frames_of(crash.thrown); !thrown.empty()) {
    beginning thrown_by;
    trim(thrown, true, functions);
    text += "  thrown on " + rank_text(crash.thrown.rank + 1) + ", youngest frame first:\n" +
            frames_text(thrown, functions, thrown_by);
  }
  beginning began;
  if (std::vector<numbered_frame> frames = frames_of(crash); !frames.empty()) {
    trim(frames, crash.signal == SIGABRT || crash.signal == 0, functions);
    if (!frames.empty()) text += "  stack, youngest frame first:\n";
    text += frames_text(frames, functions, began);
  }
  if (crash.in_thread != 0) {
    text += "  in a thread of the program, beside the one that runs the rank\n";
  } else if (is_rank(crash.waiting_at)) {
    text += "  an activation that was called on " + rank_text(crash.waiting_at);
    text += sender == 0 ? ", which waits for its result\n" : ", where this waits for its result:\n";
    if (sender != 0) text += frame_text(0, sender - 1, functions(sender - 1));
  } else if (is_rank(crash.called_by)) {
    if (!began.callable.empty()) began.by = began.callable;
    text += "  a call by " + rank_text(crash.called_by);
    if (!began.by.empty() && began.by != in_library) text += ", of " + began.by;
    text += "\n";
  }
  return text;
}

}  // namespace sojourn::detail
