// SPDX-License-Identifier: Apache-2.0
#include "frames/function_name.hpp"

#include <algorithm>
#include <string_view>

#include "frames/code_owner.hpp"
#include "frames/symbols.hpp"

namespace sojourn::detail {

namespace {

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

}  // namespace

std::string function_name(std::uint64_t code) {
  std::string name = symbolise(code);
  if (owner_of_name(name) != code_owner::program) {
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
       {"sojourn::detail::thread_target<sojourn::shared::run_threads<",
        "sojourn::detail::thread_target<", "sojourn::detail::function_target<",
        "sojourn::detail::method_target<", "sojourn::run<"}) {
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
    // The type of a plain function pointer names no function.
    const bool is_lambda = argument.find("{lambda") != std::string::npos;
    return is_lambda || argument.find("(*)") == std::string::npos ? argument : "";
  }
  return "";
}

namespace {

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
    if (text.substr(i).starts_with("operator") && (name.empty() || name.back() == ':')) {
      // An operator's name may hold brackets: take all up to the one that opens the parameters.
      std::size_t end = text.substr(i).starts_with(operator_call) ? i + operator_call.size()
                                                                  : text.find('(', i + 8);
      end = std::min(end, text.size());
      name += text.substr(i, end - i);
      i = end - 1;
    } else if (text.substr(i).starts_with("(anonymous namespace)")) {
      name += "(anonymous)";
      i += std::string_view("(anonymous namespace)").size() - 1;
    } else if (text.substr(i).starts_with("{lambda") || text.substr(i).starts_with("<lambda")) {
      name += "{lambda}";
      i = closing(text, i);
    } else if (text.substr(i).starts_with("$_")) {
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

std::string short_name(const std::string& function) {
  std::string name = plain_name(function);
  if (owner_of_name(function) != code_owner::program) return "";
  constexpr std::string_view lambda = "::{lambda}";
  if (std::size_t at = name.find(lambda); at != std::string::npos) {
    std::string outer = without(name.substr(0, at), "(anonymous)::");
    // The body of run() is shown as main. Other lambdas may stand in it.
    bool is_body = outer == "main" && name.find(lambda, at + 1) == std::string::npos;
    return is_body ? outer : "a lambda in " + outer;
  }
  return without(name, "(anonymous)::");
}

}  // namespace sojourn::detail
