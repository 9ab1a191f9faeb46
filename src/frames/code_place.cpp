// SPDX-License-Identifier: Apache-2.0
#include "frames/code_place.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/checked.hpp"
#include "frames/debug_info.hpp"

namespace sojourn::detail {

namespace {

bool begins(std::string_view text, std::string_view with) { return text.rfind(with, 0) == 0; }

/// Inlined functions often have no namespace in debug information: those of the runtime are known
/// by their files.
bool is_runtime_file(std::string_view file) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view sources = here.substr(0, here.rfind("frames/"));
  // Where paths are mapped to relative ones, the folder of the compilation comes first.
  const std::size_t mapped = file.find("/./");
  return begins(file, sources) ||
         (mapped != file.npos && begins(file.substr(mapped + 1), sources)) ||
         file.find("include/sojourn/") != file.npos || begins(file, "/usr/include/") ||
         begins(file, "/usr/lib/");
}

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

constexpr std::string_view operator_call = "operator()";

/// Where the bracket at `open` is closed; text.size() when it is not.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    // "->" in a template argument closes nothing.
    if (c == ')' || (c == '>' && text[i - 1] != '-') || c == '}' || c == ']') --depth;
    if (depth == 0) return i;
  }
  return text.size();
}

/// Without template arguments, parameters, result and what follows: "ns::type::name", with a
/// lambda as "{lambda}".
std::string plain_name(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins(text.substr(i), "operator") && (name.empty() || name.back() == ':')) {
      // An operator's name may hold brackets: take all up to the one that opens the parameters.
      std::size_t end =
          begins(text.substr(i), operator_call) ? i + operator_call.size() : text.find('(', i + 8);
      end = std::min(end, text.size());
      name += text.substr(i, end - i);
      i = end - 1;
    } else if (begins(text.substr(i), "(anonymous namespace)")) {
      name += "(anonymous)";
      i += std::string_view("(anonymous namespace)").size() - 1;
    } else if (begins(text.substr(i), "{lambda") || begins(text.substr(i), "<lambda")) {
      name += "{lambda}";
      i = closing(text, i);
    } else if (begins(text.substr(i), "$_")) {
      // A lambda, as clang names it.
      name += "{lambda}";
      i = std::min(text.find_first_not_of("0123456789", i + 2), text.size()) - 1;
    } else if (text[i] == '<' || text[i] == '[') {
      i = closing(text, i);
    } else if (text[i] == '(') {
      i = closing(text, i);
      // These are the function's own parameters, unless the name of something inside it follows.
      std::size_t next = text.find("::", i);
      if (next == std::string_view::npos) break;
      std::string_view between = text.substr(i + 1, next - i - 1);
      if (between.find_first_not_of(" const&") != std::string_view::npos) break;
      i = next - 1;
    } else if (text[i] == ' ') {
      name.clear();  // what stood before was the result
    } else {
      name += text[i];
    }
  }
  return name;
}

std::string without(std::string text, std::string_view part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

}  // namespace

std::string text_of(const code_place& place) {
  std::string text = "`" + place.function + "`";
  if (place.line > 0) text += " (" + place.file + ":" + std::to_string(place.line) + ")";
  return text;
}

std::string short_name(const std::string& function) {
  std::string name = plain_name(function);
  for (std::string_view runtime : {"sojourn::", "sojourn_", "std::", "__gnu_cxx::", "__", "_Unwind",
                                   "_start", "start_thread", "clone", "decltype"}) {
    if (begins(name, runtime)) return "";
  }
  constexpr std::string_view lambda = "::{lambda}";
  if (std::size_t at = name.find(lambda); at != std::string::npos) {
    std::string outer = without(name.substr(0, at), "(anonymous)::");
    // The body of run() is shown as main. Other lambdas may stand in it.
    bool is_body = outer == "main" && name.find(lambda, at + 1) == std::string::npos;
    return is_body ? outer : "a lambda in " + outer;
  }
  return without(name, "(anonymous)::");
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
  // A function of the runtime has the callable inlined for which it was instantiated.
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
