// SPDX-License-Identifier: Apache-2.0
#include "frames/code_owner.hpp"

#include <algorithm>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "frames/symbols.hpp"
#include "memory/runtime_resource.hpp"

extern "C" {
extern const char __executable_start, etext;  // the linker's
// Bounds of the marked functions; null in a program that has none of them.
[[gnu::weak]] extern const char __start_sojourn_calls_program[];
[[gnu::weak]] extern const char __stop_sojourn_calls_program[];
}

namespace sojourn::detail {

namespace {

bool is_between(std::uint64_t address, const char* begin, const char* end) {
  const auto first = reinterpret_cast<std::uint64_t>(begin);
  return address - first < reinterpret_cast<std::uint64_t>(end) - first;
}

bool is_marked(std::uint64_t code) {
  return is_between(code, __start_sojourn_calls_program, __stop_sojourn_calls_program);
}

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
    // Of a plain function that is called, the arguments name the type alone.
    if (arguments.starts_with("PF")) return true;
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

/// The owner of a function whose name is not mangled.
code_owner owner_of_c_name(std::string_view name) {
  if (name.starts_with("sojourn_") || name.starts_with("__wrap_")) return code_owner::runtime;
  // Names that begin so are reserved for compilers and libraries.
  if (name.starts_with("__") || name.starts_with("_Unwind_")) return code_owner::library;
  const bool begins_a_stack = name == "_start" || name == "start_thread" || name == "clone";
  return begins_a_stack ? code_owner::library : code_owner::program;
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

code_owner owner_of_symbol(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return owner_of_c_name(symbol);
  // A function that works on the runtime's own types counts as the runtime's, whoever has written
  // it.
  const bool is_about_runtime = symbol.find("7sojourn6detail") != symbol.npos;
  std::size_t name = 2;
  // Some functions are made for others: clones for transactions, functions that set up a variable
  // of a thread, and functions that adjust `this`. Their names are those of the others behind a
  // prefix.
  if (symbol.starts_with("_ZGTt")) name = 5;
  if (symbol.starts_with("_ZTW") || symbol.starts_with("_ZTH")) name = 4;
  if (symbol.starts_with("_ZTh") || symbol.starts_with("_ZTv") || symbol.starts_with("_ZTc"))
    name = std::min(symbol.rfind("_N"), symbol.size() - 1) + 1;
  const std::size_t at = symbol.find_first_not_of("ZNKVROL", name);
  if (at == symbol.npos) return code_owner::program;
  std::string_view rest = symbol.substr(at);
  std::string_view after_first = rest;
  // St, Sa, Ss and the like stand for std and for names in it.
  if (rest.starts_with("S") || take_part(after_first).starts_with("__"))
    return is_about_runtime ? code_owner::runtime : code_owner::library;
  if (!rest.starts_with("7sojourn")) return code_owner::program;
  while (!take_part(rest).empty()) continue;
  const std::size_t arguments = rest.find('I');
  return arguments != rest.npos && names_program(rest.substr(arguments + 1))
             ? code_owner::runtime_for_program
             : code_owner::runtime;
}

code_owner owner_of_name(std::string_view text) {
  // A name that clang has mangled in a way that the library cannot demangle.
  if (text.starts_with("_Z")) {
    const code_owner owner = owner_of_symbol(text);
    return owner == code_owner::runtime_for_program ? code_owner::runtime : owner;
  }
  const std::string_view name = text.substr(name_begin(text));
  if (name.starts_with("sojourn::")) return code_owner::runtime;
  if (name.starts_with("std::") || name.starts_with("__gnu_cxx::"))
    return text.find("sojourn::detail::") != text.npos ? code_owner::runtime : code_owner::library;
  return owner_of_c_name(name);
}

code_owner owner_of_code(std::uint64_t code) {
  if (is_marked(code)) return code_owner::calls_program;
  static std::unordered_map<std::uint64_t, code_owner> known;
  const auto [entry, is_new] = known.try_emplace(code, code_owner::program);
  if (is_new) entry->second = owner_of_name(symbolise(code));
  return entry->second;
}

bool is_runtime_file(std::string_view file) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view sources = here.substr(0, here.rfind("frames/"));
  // If the compiler maps paths to relative ones, they stand behind the folder of the compilation.
  const std::size_t mapped = file.find("/./");
  return file.starts_with(sources) ||
         (mapped != file.npos && file.substr(mapped + 1).starts_with(sources)) ||
         file.find("include/sojourn/") != file.npos || file.starts_with("/usr/include/") ||
         file.starts_with("/usr/lib/");
}

bool is_in_program(std::uint64_t code) { return is_between(code, &__executable_start, &etext); }

namespace {

struct code_range {
  std::uint64_t begin;
  std::uint64_t end;
  code_owner owner;
};
/// The runtime's functions in the program's file, by address, without overlaps. Null: they are not
/// known.
const std::pmr::vector<code_range>* runtime_code = nullptr;

}  // namespace

void learn_code_owners() {
  const symbol_table program("/proc/self/exe");
  auto* all = new std::pmr::vector<code_range>(runtime_resource());
  program.each([&](const char* name, std::uint64_t begin, std::uint64_t end) {
    const code_owner owner = owner_of_symbol(name);
    if (owner != code_owner::runtime) return;
    if (!all->empty())
      begin = std::max(begin, all->back().end);  // one function may have several names
    if (begin < end) all->push_back({begin, end, owner});
  });
  if (!all->empty() && program.fixed_addresses()) runtime_code = all;
}

bool knows_code_owners() { return runtime_code != nullptr; }

code_owner owner_in_signal(std::uint64_t code) {
  if (is_marked(code)) return code_owner::calls_program;
  const auto after =
      std::upper_bound(runtime_code->begin(), runtime_code->end(), code,
                       [](std::uint64_t c, const code_range& r) { return c < r.begin; });
  if (after == runtime_code->begin() || code >= std::prev(after)->end) return code_owner::program;
  return std::prev(after)->owner;
}

}  // namespace sojourn::detail
