// SPDX-License-Identifier: Apache-2.0
#include "frames/code_place.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "frames/code_owner.hpp"
#include "frames/debug_info.hpp"
#include "frames/function_name.hpp"

namespace sojourn::detail {

namespace {

/// True for names that debug information gives to the functions of lambdas; with -g1 those lack the
/// enclosing function.
bool is_lambda(std::string_view function) {
  constexpr std::string_view inside = "{lambda}::operator()";
  return function == "operator()" || (function.size() >= inside.size() &&
                                      function.substr(function.size() - inside.size()) == inside);
}

/// The program's functions at one address, innermost first. The last one, which is not inlined, is
/// given in any case. A lambda that is inlined there has no name of its own: the last function gets
/// its line.
std::vector<source_frame> describe(const std::string& program, const symbol_table& symbols,
                                   std::uint64_t address) {
  std::vector<source_frame> kept;
  source_frame lambda{"", "", 0, true};
  std::vector<source_frame> all = describe_address(program, address);
  for (source_frame& f : all) {
    if (f.inlined && is_runtime_file(f.file)) continue;
    if (f.inlined && is_lambda(f.function)) {
      lambda = f;
      continue;
    }
    kept.push_back(std::move(f));
  }
  if (symbols.fixed_addresses()) {
    if (kept.empty()) kept.push_back({"", "", 0, false});
    if (std::string name = symbols.name_at(address); !name.empty()) {
      kept.back().function = std::move(name);
    }
  }
  if (!kept.empty() && lambda.line > 0) {
    kept.back().file = lambda.file;
    kept.back().line = lambda.line;
  }
  return kept;
}

}  // namespace

std::string text_of(const code_place& place) {
  std::string text = "`" + place.function + "`";
  if (place.line > 0) text += " (" + place.file + ":" + std::to_string(place.line) + ")";
  return text;
}

code_places::code_places(std::string program) : program_(std::move(program)), symbols_(program_) {}

const std::vector<code_place>& code_places::at(std::uint64_t address) {
  auto [entry, is_new] = known_.try_emplace(address);
  if (!is_new) return entry->second;
  std::vector<source_frame> all = describe(program_, symbols_, address);
  for (const source_frame& one : all) {
    code_place place{short_name(one.function), one.file.substr(one.file.rfind('/') + 1), one.line};
    if (!place.function.empty()) entry->second.push_back(std::move(place));
  }
  // The compiler may have inlined, into a function of the runtime, the callable for which that
  // function was instantiated.
  if (!all.empty() && short_name(all.back().function).empty()) {
    std::string name = short_name(callable_in(all.back().function));
    const source_frame& last = all.back();
    bool ours = is_runtime_file(last.file);
    if (!name.empty()) {
      entry->second.push_back(
          {name, ours ? "" : last.file.substr(last.file.rfind('/') + 1), ours ? 0 : last.line});
    }
  }
  return entry->second;
}

std::vector<code_place> code_places::of(const std::uint64_t* frames, std::size_t count) {
  std::vector<code_place> places;
  for (std::size_t i = 0; i < count; ++i) {
    for (const code_place& place : at(frames[i])) {
      bool again = !places.empty() && places.back().function == place.function &&
                   (places.back().line == 0 || place.line == 0);
      if (!again) places.push_back(place);
    }
  }
  return places;
}

}  // namespace sojourn::detail
