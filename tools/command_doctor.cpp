// SPDX-License-Identifier: Apache-2.0
#include "command_doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compiled_json.hpp>

#include "doctor_parts.hpp"
#include "sojourn/doctor.hpp"
#include "sojourn/errors.hpp"
#include "words.hpp"

#ifndef SOJOURN_VERSION
#define SOJOURN_VERSION "0.1.0"
#endif

namespace sojourn::tools {
namespace {

constexpr const char* help =
    R"(Checks whether jobs can run on this host, with the limits of this shell.

Usage: sojourn doctor [--json]

Each line is ok, a warning (jobs run, with less) or a failure (they do not), with what was found; a
second line says what to do. The last check is a job of two ranks.

  --json    the same as JSON: {"version", "failures", "warnings",
            "checks": [{"check", "status": "ok"|"warning"|"failure", "found", "remedy"}]}

Examples:
  sojourn doctor
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

}  // namespace

int doctor_command(const std::vector<std::string>& words) {
  bool json = false;
  for (const std::string& word : words) {
    if (word == as_rank) return be_rank();
    if (word == "--help" || word == "-h") {
      print(help);
      return 0;
    }
    if (word != "--json") {
      throw error(fmt::format("there is no option '{}'; 'sojourn doctor --help' lists them", word));
    }
    json = true;
  }

  std::vector<finding> findings = {check_build()};
  for (finding& f : diagnose()) findings.push_back(std::move(f));
  for (finding& f : check_optional_parts()) findings.push_back(std::move(f));
  findings.push_back(check_job());
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
