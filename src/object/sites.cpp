// SPDX-License-Identifier: Apache-2.0
#include "object/sites.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/settings.hpp"
#include "frames/code_place.hpp"
#include "object/call_places.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

namespace {

struct site_rule {
  std::string name;  // "node::child", "child" or "file.cpp:120"; "": every access
  via how;
  bool matched = false;
};
std::vector<site_rule> rules;

/// True when `name` is `full`, or the end of it after a "::" or a "/".
bool names(std::string_view name, std::string_view full) {
  if (!full.ends_with(name)) return false;
  if (full.size() == name.size()) return true;
  char before = full[full.size() - name.size() - 1];
  return before == ':' || before == '/';
}

/// An access that has been made.
struct site {
  std::string method;
  std::string line;  ///< "file.cpp:120"; "" when nobody has looked.
  int rule;          ///< Which it follows: an index, or -1.
};
/// By the address to which it returns, and the compiler's name of the method: calls of two methods
/// may return to one address.
std::map<std::pair<const void*, const char*>, site> known;

struct word {
  std::string_view name;
  via how;
};
constexpr std::array words{word{"rpc", via::rpc}, word{"migrate", via::migrate},
                           word{"cache", via::cache}, word{"fetch", via::fetch},
                           word{"automatic", via::automatic}};

std::optional<via> policy_named(std::string_view text) {
  for (const word& w : words) {
    if (w.name == text) return w.how;
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// The last parts of `full`, which `separator`s divide: as many parts as `name` has.
std::string_view alike(std::string_view full, std::string_view name, std::string_view separator) {
  std::size_t begin = full.size();
  for (std::size_t at = 0; at != std::string_view::npos;) {
    begin = begin == 0 ? std::string_view::npos : full.rfind(separator, begin - 1);
    if (begin == std::string_view::npos) return full;
    at = name.find(separator, at);
    if (at != std::string_view::npos) at += separator.size();
  }
  return full.substr(begin + separator.size());
}

}  // namespace

std::vector<site_rule_use> site_rule_uses() {
  std::vector<site_rule_use> uses;
  for (const site_rule& rule : rules) {
    if (rule.name.empty()) continue;
    site_rule_use use{rule.name, rule.matched, "", std::string_view::npos};
    auto consider = [&](std::string_view candidate) {
      std::size_t edits = edits_between(rule.name, candidate);
      if (edits >= use.edits || !is_near(rule.name, edits)) return;
      use.edits = edits;
      use.nearest = candidate;
    };
    if (!rule.matched) {
      for (const auto& [where, access] : known) {
        consider(alike(access.method, rule.name, "::"));
        consider(alike(access.line, rule.name, "/"));
      }
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

std::string unmatched_rule_text(std::string_view name, std::string_view nearest) {
  std::string text = "SOJOURN_VIA: no access to another rank's objects was to `" +
                     std::string(name) + "`, as a method or as a line";
  if (!nearest.empty()) text += "; did you mean `" + std::string(nearest) + "`?";
  return text;
}

void attach_sites() {
  const char* stats = std::getenv("SOJOURN_STATS");
  if (stats != nullptr && std::string_view(stats) == "on") job.overrides |= job_view::counts_calls;
  const char* text = std::getenv("SOJOURN_VIA");
  if (text == nullptr || *text == 0) return;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t comma = rest.find_first_of(",;");
    std::string_view part = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = part.rfind('=');
    const bool has_name = equals != std::string_view::npos;
    const std::string_view name = has_name ? trimmed(part.substr(0, equals)) : "";
    const std::optional<via> how = policy_named(has_name ? trimmed(part.substr(equals + 1)) : part);
    if (!how || (has_name && name.empty())) {
      throw error(
          format("SOJOURN_VIA: `%.*s` is neither name=WORD, where name is a method such as "
                 "node::child or a line such as tree.cpp:120, nor WORD alone, for every access; "
                 "the words are rpc, migrate, cache, fetch and automatic",
                 static_cast<int>(part.size()), part.data()));
    }
    // What names nothing yields to what does.
    const auto end_of_nameless = std::find_if(rules.begin(), rules.end(),
                                              [](const site_rule& r) { return !r.name.empty(); });
    rules.insert(has_name ? rules.end() : end_of_nameless, {std::string(name), *how, false});
  }
  if (!rules.empty()) job.overrides |= job_view::overrides_words;
}

std::string_view method_name_in(std::string_view pretty) {
  // "… Method = &node::child]"; gcc, when a cast is needed:
  // "… Method = (R (node::*)())(& node::child)]".
  constexpr std::string_view key = "Method = ";
  std::size_t begin = pretty.find(key);
  if (begin == std::string_view::npos || !pretty.ends_with(']')) return {};
  std::string_view value = pretty.substr(begin + key.size());
  value.remove_suffix(1);
  if (!value.starts_with('&')) {
    std::size_t cast = value.rfind("(&");
    if (cast == std::string_view::npos || !value.ends_with(')')) return {};
    value = value.substr(cast + 1);
    value.remove_suffix(1);
  }
  value.remove_prefix(1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

namespace {

/// Where the access is written. One that names no word does not say so itself (it would name the
/// line in global_ptr.hpp), so that the program's line numbers are asked.
std::string line_of(const access& at, const void* code) {
  const std::string_view file = at.where.file_name();
  if (!file.ends_with("sojourn/global_ptr.hpp"))
    return format("%s:%u", at.where.file_name(), static_cast<unsigned>(at.where.line()));
  static code_places places("/proc/self/exe");
  const auto address = reinterpret_cast<std::uint64_t>(code);
  for (const code_place& place : places.of(&address, 1)) {
    if (place.line != 0) return format("%s:%d", place.file.c_str(), place.line);
  }
  return "";
}

const site& site_at(const access& at, const char* method, const void* code) {
  auto [entry, fresh] =
      known.try_emplace({code, method}, site{std::string(method_name_in(method)), "", -1});
  site& it = entry->second;
  if (!fresh) return it;
  const bool names_lines = std::any_of(rules.begin(), rules.end(), [](const site_rule& r) {
    return r.name.find('.') != std::string::npos;
  });
  if (names_lines) it.line = line_of(at, code);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string& name = rules[i].name;
    if (!name.empty() && !names(name, it.method) && !names(name, it.line)) continue;
    it.rule = static_cast<int>(i);
    rules[i].matched = true;
  }
  return it;
}

}  // namespace

via override_access(const access& at, const char* method, const void* code, bool is_elsewhere) {
  via how = at.how;
  if ((job.overrides & job_view::overrides_words) != 0) {
    if (const int rule = site_at(at, method, code).rule; rule >= 0) {
      const via said = rules[static_cast<std::size_t>(rule)].how;
      if (said.how() != how.how() || how.is_unsaid()) how = said;
    }
  }
  if (is_elsewhere && (job.overrides & job_view::counts_calls) != 0)
    note_said(reinterpret_cast<std::uint64_t>(code), method, at.how, how);
  return how;
}

void bad_access(std::uint64_t address, const char* method) {
  std::string name(method_name_in(method));
  if (!is_in_job()) refuse_outside_job("a call");
  if (address == 0) throw error(format("an access to %s through a null global_ptr", name.c_str()));
  throw error(format("an access to %s through a global_ptr 0x%llx that lies in no heap of this job",
                     name.c_str(), static_cast<unsigned long long>(address)));
}

}  // namespace sojourn::detail
