// SPDX-License-Identifier: Apache-2.0
#include "object/sites.hpp"

#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/settings.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

namespace {

struct site_rule {
  std::string name;  // "node::child", "child" or "file.cpp:120"
  via::mechanism how;
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

/// An access: the compiler's name of the method, and where it is written. The names are literals,
/// and compared by their addresses.
struct site {
  const char* method;
  const char* file;
  unsigned line;
  friend bool operator==(const site&, const site&) = default;
};
struct site_hash {
  std::size_t operator()(const site& s) const {
    return std::hash<const void*>()(s.method) * 31 + std::hash<const void*>()(s.file) * 7 + s.line;
  }
};

std::unordered_map<site, int, site_hash> known;

std::optional<via::mechanism> mechanism_named(std::string_view word) {
  if (word == "rpc") return via::mechanism::rpc;
  if (word == "migrate") return via::mechanism::migrate;
  if (word == "cache") return via::mechanism::cache;
  if (word == "fetch") return via::mechanism::fetch;
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
    site_rule_use use{rule.name, rule.matched, "", std::string_view::npos};
    auto consider = [&](std::string_view candidate) {
      std::size_t edits = edits_between(rule.name, candidate);
      if (edits >= use.edits || !is_near(rule.name, edits)) return;
      use.edits = edits;
      use.nearest = candidate;
    };
    if (!rule.matched) {
      for (const auto& [access, index] : known) {
        consider(alike(method_name_in(access.method), rule.name, "::"));
        consider(alike(format("%s:%u", access.file, access.line), rule.name, "/"));
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
  const char* text = std::getenv("SOJOURN_VIA");
  if (text == nullptr || *text == 0) return;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t comma = rest.find_first_of(",;");
    std::string_view part = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    std::size_t equals = part.rfind('=');
    std::string_view how = equals == std::string_view::npos ? "" : trimmed(part.substr(equals + 1));
    std::string_view name = trimmed(part.substr(0, equals == std::string_view::npos ? 0 : equals));
    const std::optional<via::mechanism> mechanism = mechanism_named(how);
    if (name.empty() || !mechanism) {
      throw error(
          format("SOJOURN_VIA: `%.*s` is not name=rpc, name=migrate, name=cache or name=fetch, "
                 "where name is a "
                 "method such as node::child or a line such as tree.cpp:120",
                 static_cast<int>(part.size()), part.data()));
    }
    rules.push_back({std::string(name), *mechanism, false});
  }
  job.overrides = !rules.empty();
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

via override_access(const access& at, const char* method) {
  auto [entry, fresh] = known.try_emplace({method, at.where.file_name(), at.where.line()}, -1);
  if (fresh) {
    std::string line = format("%s:%u", at.where.file_name(), at.where.line());
    std::string_view name = method_name_in(method);
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (names(rules[i].name, name) || names(rules[i].name, line)) {
        entry->second = static_cast<int>(i);
        rules[i].matched = true;
      }
    }
  }
  if (entry->second < 0) return at.how;
  via::mechanism how = rules[static_cast<std::size_t>(entry->second)].how;
  if (how == at.how.how()) return at.how;
  switch (how) {
    case via::mechanism::rpc:
      return via::rpc;
    case via::mechanism::migrate:
      return via::migrate;
    case via::mechanism::cache:
      return via::cache;
    case via::mechanism::fetch:
      return via::fetch;
  }
  return at.how;
}

void bad_access(std::uint64_t address, const char* method) {
  std::string name(method_name_in(method));
  if (!is_in_job()) refuse_outside_job("a call");
  if (address == 0) throw error(format("an access to %s through a null global_ptr", name.c_str()));
  throw error(format("an access to %s through a global_ptr 0x%llx that lies in no heap of this job",
                     name.c_str(), static_cast<unsigned long long>(address)));
}

}  // namespace sojourn::detail
