// SPDX-License-Identifier: Apache-2.0
#include "base/checked.hpp"

#include <malloc.h>

#include <cstdlib>
#include <vector>

#include "base/check.hpp"
#include "frames/symbols.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

std::vector<std::string> excused;

#ifdef SOJOURN_CHECKED_DEFAULT
constexpr bool on_by_default = true;
#else
constexpr bool on_by_default = false;
#endif

bool wanted() {
  const char* text = std::getenv("SOJOURN_CHECKED");
  if (text == nullptr || *text == 0) return on_by_default;
  std::string_view value = text;
  if (value == "1" || value == "on") return true;
  if (value == "0" || value == "off") return false;
  throw error(format("SOJOURN_CHECKED=%s is neither 1 nor 0", text));
}

void read_excuses() {
  const char* text = std::getenv("SOJOURN_ALLOW");
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    std::size_t end = rest.find(';');
    std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    // The reason's colon is the first that is not half of a "::".
    std::size_t colon = part.find(':');
    while (colon != std::string_view::npos && part.substr(colon, 2) == "::") {
      colon = part.find(':', colon + 2);
    }
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == part.size()) {
      throw error(
          format("SOJOURN_ALLOW: `%.*s` is not function:reason (several are separated by ;)",
                 static_cast<int>(part.size()), part.data()));
    }
    excused.emplace_back(part.substr(0, colon));
  }
}

/// The position of the parenthesis that the one at `close` closes, or npos.
std::size_t opening(std::string_view text, std::size_t close) {
  int depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::string_view without_parameters(std::string_view function) {
  if (function.ends_with(" const")) function.remove_suffix(6);
  if (!function.ends_with(')')) return function;
  const std::size_t open = opening(function, function.size() - 1);
  return open != std::string_view::npos && open > 0 ? function.substr(0, open) : function;
}

/// Where a lambda's own name begins with which the name ends: "::{lambda(int)#1}" of gcc or "::$_0"
/// of clang. npos where it is no lambda's.
std::size_t lambda_at_end(std::string_view function) {
  if (function.ends_with('}')) return function.rfind("::{lambda(");
  const std::size_t at = function.rfind("::$_");
  const bool is_lambda =
      at != function.npos && function.find_first_not_of("0123456789", at + 4) == function.npos;
  return is_lambda ? at : function.npos;
}

/// Where the name begins in a demangled symbol: an instance of a template has its return type in
/// front of the name.
std::size_t name_begin(std::string_view symbol) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < symbol.size(); ++i) {
    char c = symbol[i];
    std::string_view rest = symbol.substr(i);
    std::string_view before = symbol.substr(0, i);
    if (depth == 0) {
      if (rest.starts_with("operator") || rest.starts_with(" [clone")) break;
      if (c == '(' && !rest.starts_with("(anonymous namespace)") && !before.ends_with("decltype") &&
          !before.ends_with("decltype ")) {
        break;  // the parameters
      }
      if (c == ' ') begin = i + 1;
    }
    if (c == '(' || c == '<' || c == '{') ++depth;
    if (c == ')' || (c == '>' && !before.ends_with('-')) || c == '}') --depth;
  }
  return begin;
}

}  // namespace

void attach_checked() {
  read_excuses();
  job.checked = wanted();
#ifdef SOJOURN_NO_CHECKED
  if (job.checked) {
    throw error(
        "SOJOURN_CHECKED=1, but this program was built without checked mode: build it "
        "without SOJOURN_NO_CHECKED");
  }
#endif
  if (!job.checked) return;
  // Without fast bins, small freed blocks are marked as free: a stale word is then not taken for a
  // pointer to a live object.
  mallopt(M_MXFAST, 0);
}

std::string function_name(std::uint64_t code) {
  std::string name = symbolise(code);
  if (is_library_function(name)) {
    if (std::string callable = callable_in(name); !callable.empty()) name = std::move(callable);
  }
  std::string_view text = name;
  if (std::size_t clone = text.find(" [clone"); clone != std::string_view::npos) {
    text = text.substr(0, clone);
  }
  text = without_parameters(text);
  // A lambda gets the name of the function that contains it.
  while (true) {
    if (text.ends_with("::operator()")) text.remove_suffix(12);
    const std::size_t lambda = lambda_at_end(text);
    if (lambda == text.npos || lambda == 0) break;
    text = without_parameters(text.substr(0, lambda));
  }
  return std::string(text);
}

std::string callable_in(const std::string& function) {
  // run_threads() starts threads of its own, which call the program's.
  for (std::string_view owner :
       {"sojourn::detail::thread_request<sojourn::shared::run_threads<",
        "sojourn::detail::thread_request<", "sojourn::detail::callable_request<",
        "sojourn::detail::method_request<", "sojourn::run<"}) {
    std::size_t at = function.find(owner);
    if (at == std::string::npos) continue;
    std::size_t first = at + owner.size();
    // The first argument, without the cast and the & before a method.
    std::size_t end = first;
    for (int depth = 0; end < function.size(); ++end) {
      char c = function[end];
      if (depth == 0 && (c == ',' || c == '>')) break;
      if (c == '(' || c == '<' || c == '{') ++depth;
      if (c == ')' || c == '}' || (c == '>' && function[end - 1] != '-')) --depth;
    }
    std::string argument = function.substr(first, end - first);
    if (std::size_t method = argument.rfind(")&"); method != std::string::npos) {
      argument = argument.substr(method + 2);
    }
    if (argument.starts_with("&")) argument.erase(0, 1);
    bool is_lambda = argument.find("{lambda") != std::string::npos;
    // The type of a plain function pointer names no function.
    if (!is_lambda && argument.find("(*)") != std::string::npos) return "";
    return is_lambda ? argument + "::operator()() const" : argument;
  }
  return "";
}

bool is_library_function(std::string_view symbol) {
  if (symbol.find("sojourn::detail::") != std::string_view::npos) return true;
  std::string_view name = symbol.substr(name_begin(symbol));
  for (std::string_view ours :
       {"sojourn::", "sojourn_", "std::", "__gthread", "__gnu_cxx::", "__wrap_", "_Unwind_"}) {
    if (name.starts_with(ours)) return true;
  }
  return false;
}

bool is_excused(std::string_view function) {
  for (const std::string& name : excused) {
    if (!function.ends_with(name)) continue;
    if (function.size() == name.size() || function[function.size() - name.size() - 1] == ':') {
      return true;
    }
  }
  return false;
}

}  // namespace sojourn::detail
