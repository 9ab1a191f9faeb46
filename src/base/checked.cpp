// SPDX-License-Identifier: Apache-2.0
#include "base/checked.hpp"

#include <malloc.h>

#include <cstdlib>
#include <vector>

#include "base/check.hpp"
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
    // The colon before the reason is the first one that is not half of a "::".
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
