// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/word_holder.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include "frames/code_owner.hpp"

namespace sojourn::detail {

namespace {

constexpr const char* program = "/proc/self/exe";

// Kept, because debug information is searched from its beginning, and the same functions migrate
// again and again.
bool knows_variables_at(std::uint64_t code) {
  static std::unordered_map<std::uint64_t, bool> known;
  auto [entry, fresh] = known.try_emplace(code, false);
  if (fresh) entry->second = knows_variables(program, code);
  return entry->second;
}

using place = std::pair<std::uint64_t, std::int64_t>;

const frame_variable& variable_in_saved(const frame& f, int reg) {
  static std::map<place, frame_variable> known;
  auto [entry, fresh] = known.try_emplace({f.code, reg});
  if (fresh) entry->second = variable_in_register(program, f.code, reg);
  return entry->second;
}

/// Finds who holds the word in a register: the frame `saver`, which saved it, or an older one. If
/// the next older frame finds the same value in the register, the register belongs to that frame,
/// or to one that is older still.
word_holder holder_in_register(const frame* saver, const frame* end, std::uint64_t word) {
  using enum word_holder::kind;
  for (const frame* f = saver; f != end; ++f) {
    if (owner_of_code(f->code) != code_owner::program) continue;
    const bool known = knows_variables_at(f->code);
    bool is_in_older = false;
    bool is_own = false;
    for (std::size_t i = 0; i < std::size(f->saved); ++i) {
      if (f->saved[i] != word || saved_register(i) < 0) continue;
      const frame_variable& v = variable_in_saved(*f, saved_register(i));
      if (v.is_pointer) return {variable, f, 0, v.name};
      const bool has_older = f + 1 != end && (f + 1)->saved[i] == word;
      (has_older ? is_in_older : is_own) = true;
    }
    if (is_own) return {known ? unnamed : unknown, f, 0, {}};
    if (!known && !is_in_older) break;
  }
  return {};
}

}  // namespace

const frame_variable& variable_in_frame(const frame& f, std::uint64_t at) {
  static std::map<place, frame_variable> known;
  const auto offset = static_cast<std::int64_t>(at - f.high);
  auto [entry, fresh] = known.try_emplace({f.code, offset});
  if (fresh) entry->second = variable_at(program, f.code, offset);
  return entry->second;
}

word_holder holder_of(const std::vector<frame>& frames, std::uint64_t at, std::uint64_t word) {
  using enum word_holder::kind;
  const auto f =
      std::find_if(frames.begin(), frames.end(), [at](const frame& one) { return at < one.high; });
  if (f == frames.end()) return {};
  // A frame of the runtime holds values of the runtime, copies of arguments that the function's own
  // frame holds, too, and saved registers of older frames. (Saved registers also lie below the
  // youngest frame.) So a word there counts only if it is a register of an older frame.
  if (at >= f->low && owner_of_code(f->code) == code_owner::program) {
    const frame_variable& v = variable_in_frame(*f, at);
    if (v.is_pointer) return {variable, &*f, at, v.name};
    if (!knows_variables_at(f->code)) return {unknown, &*f, at, {}};
    // A word that no variable holds is dead, or a register that was saved here.
  }
  return holder_in_register(&*f, frames.data() + frames.size(), word);
}

}  // namespace sojourn::detail
