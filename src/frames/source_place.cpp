// SPDX-License-Identifier: Apache-2.0
#include "frames/source_place.hpp"

#include <unordered_map>

#include "base/check.hpp"
#include "frames/code_owner.hpp"
#include "frames/debug_info.hpp"
#include "frames/stack_frames.hpp"
#include "frames/symbols.hpp"

namespace sojourn::detail {

namespace {

/// The line of the innermost function at `code` that is the program's own; "" when no line is
/// known.
std::string line_at(std::uint64_t code) {
  for (const source_frame& f : describe_address("/proc/self/exe", code))
    if (f.line != 0 && owner_of_name(f.function) == code_owner::program &&
        !(f.inlined && is_runtime_file(f.file)))
      return format("%s:%d", f.file.substr(f.file.find_last_of('/') + 1).c_str(), f.line);
  return "";
}

/// Remembers the lines of all addresses it was asked for.
const std::string& known_line(std::uint64_t code) {
  static std::unordered_map<std::uint64_t, std::string> known;
  const auto [at, is_new] = known.try_emplace(code);
  if (is_new && is_in_program(code)) at->second = line_at(code);
  return at->second;
}

}  // namespace

std::uint64_t code_in_program(std::uint64_t code, std::uint64_t hi) {
  if (is_in_program(code)) return code;
  const std::uint64_t caller = calling_code(hi);
  return caller != 0 ? caller : code;
}

std::uint64_t calling_code(std::uint64_t hi) {
  // Lines are looked at first: a function of the program may be inlined into one of the runtime,
  // such as the one that runs main's body, and then only its line shows that it is the program's.
  // Names are looked at when no line is known.
  for (const frame& f : frames_below(hi, 48))
    if (!known_line(f.code).empty()) return f.code;
  return user_code(hi);
}

std::string source_place(std::uint64_t code) {
  if (code == 0) return "";
  const std::string& line = known_line(code);
  return line.empty() ? symbolise(code) : line;
}

}  // namespace sojourn::detail
