// SPDX-License-Identifier: Apache-2.0
#include "command_doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compiled_json.hpp>

#include "doctor_parts.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/doctor.hpp"
#include "words.hpp"

#ifndef SOJOURN_VERSION
#define SOJOURN_VERSION "0.1.0"
#endif

namespace sojourn::tools {
namespace {

constexpr const char* help =
    R"(Checks whether jobs can run on this host, with the limits of this shell.

Usage: sojourn doctor [--json] [--hosts A,B | --hostfile FILE]

Each line is ok, a warning (jobs run, with less) or a failure (they do not), with what was found; a
second line says what to do. The last check is a job of two ranks.

  --json    the same as JSON: {"version", "failures", "warnings",
            "checks": [{"check", "status": "ok"|"warning"|"failure", "found", "remedy"}]}

  --hosts A,B, --hostfile FILE
            checks whether these hosts can have a job together, too: a job with a rank on each says
            how long a call to each takes, and what differs
  --agent COMMAND, --ports A-B, --network ADDRESS/BITS, --net tcp|ucx, --encrypt
            how they reach each other, as 'sojourn run' takes it

Examples:
  sojourn doctor
  sojourn doctor --hosts a,b,c
  sojourn doctor --json | jq -r '.checks[] | select(.status == "failure") | .remedy'

The exit status is 0, or 1 when there is a failure, or 2 for bad options.
)";

const char* word_of(severity level) {
  switch (level) {
    case severity::ok:
      return "ok";
    case severity::warning:
      return "warning";
    case severity::failure:
      break;
  }
  return "failure";
}

std::string as_text(const finding& f) {
  std::string text = fmt::format("{:<8} {:<23} {}\n", word_of(f.level), f.check, f.found);
  if (!f.remedy.empty()) text += fmt::format("{:33}remedy: {}\n", "", f.remedy);
  return text;
}

std::string counted(std::ptrdiff_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// "--hosts a,b" or "--hosts=a,b", of which `i` is left at the last word.
void take_option_with_value(hosts_to_check& hosts, const std::vector<std::string>& words,
                            std::size_t& i) {
  constexpr std::array known{"--hosts", "--hostfile", "--agent", "--ports", "--network", "--net"};
  const std::size_t equals = words[i].find('=');
  const std::string name = words[i].substr(0, equals);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw error(
        fmt::format("there is no option '{}'; 'sojourn doctor --help' lists them", words[i]));
  }
  std::string value;
  if (equals != std::string::npos) {
    value = words[i].substr(equals + 1);
  } else if (i + 1 < words.size()) {
    value = words[++i];
  }
  if (value.empty()) {
    throw error(fmt::format("{} takes a value; 'sojourn doctor --help' says which", name));
  }
  if (name == "--hosts") {
    hosts.list = value;
  } else if (name == "--hostfile") {
    hosts.file = value;
  } else {
    hosts.further.insert(hosts.further.end(), {name, value});
  }
}

}  // namespace

int doctor_command(const std::vector<std::string>& words) {
  bool json = false;
  hosts_to_check hosts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == as_rank) return be_rank();
    if (words[i] == as_rank_of_host) return be_rank_of_host();
    if (words[i] == "--help" || words[i] == "-h") {
      print(help);
      return 0;
    }
    if (words[i] == "--json") {
      json = true;
    } else if (words[i] == "--encrypt") {
      hosts.further.push_back(words[i]);
    } else {
      take_option_with_value(hosts, words, i);
    }
  }
  const bool are_named = !hosts.list.empty() || !hosts.file.empty();
  if (!hosts.list.empty() && !hosts.file.empty())
    throw error("--hosts and --hostfile exclude each other");
  if (!are_named && !hosts.further.empty()) {
    throw error(
        fmt::format("{} says how hosts are reached, and neither --hosts nor --hostfile names any",
                    hosts.further.front()));
  }

  std::vector<finding> findings = {check_build()};
  for (finding& f : diagnose()) findings.push_back(std::move(f));
  for (finding& f : check_optional_parts()) findings.push_back(std::move(f));
  findings.push_back(check_job());
  if (are_named) {
    for (finding& f : check_hosts(hosts)) findings.push_back(std::move(f));
  }
  auto of_level = [&](severity level) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const finding& f) { return f.level == level; });
  };
  std::ptrdiff_t failures = of_level(severity::failure);
  std::ptrdiff_t warnings = of_level(severity::warning);

  if (json) {
    nlohmann::ordered_json all = {
        {"version", SOJOURN_VERSION}, {"failures", failures}, {"warnings", warnings}};
    all["checks"] = nlohmann::ordered_json::array();
    for (const finding& f : findings) {
      all["checks"].push_back({{"check", f.check},
                               {"status", word_of(f.level)},
                               {"found", f.found},
                               {"remedy", f.remedy}});
    }
    // Names of files and the words of programs may be anything.
    print(all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    for (const finding& f : findings) print(as_text(f));
    print(fmt::format("\n{}, {}\n", counted(failures, "failure"), counted(warnings, "warning")));
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace sojourn::tools
