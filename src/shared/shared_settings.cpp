// SPDX-License-Identifier: Apache-2.0
#include "shared/shared_settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail::pages {

namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise, std::uint64_t least,
                      std::uint64_t most) {
  const char* set = std::getenv(name);
  if (set == nullptr || *set == 0) return otherwise;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(set, &end, 10);
  if (*end != 0 || *set == '-' || value < least || value > most)
    throw error(format("%s=%s is no number from %llu to %llu", name, set,
                       static_cast<unsigned long long>(least),
                       static_cast<unsigned long long>(most)));
  return value;
}

const char* text_or_null(const char* name) {
  const char* set = std::getenv(name);
  return set != nullptr && *set != 0 ? set : nullptr;
}

/// Returns a file's name that SOJOURN_SHARED_REPORT_JSON gives, or null. Errors: sojourn::error
/// when the name is "on", "off" or a number, which is a mistake, or when rank 0 cannot write the
/// file.
const char* file_or_null(const char* name) {
  const char* set = text_or_null(name);
  if (set == nullptr) return nullptr;
  const std::string_view wanted = set;
  if (wanted == "on" || wanted == "off" || wanted.find_first_not_of("0123456789") == wanted.npos)
    throw error(format("%s=%s is not the name of a file: give one, or ./%s for one of that name",
                       name, set, set));
  if (job.me != 0) return set;
  // Pipes are not opened for a trial: that would wait for a reader, or show the reader the end of
  // the file.
  struct stat status{};
  const bool is_there = lstat(set, &status) == 0;
  if (is_there && !S_ISREG(status.st_mode)) return set;
  const int file =
      open(set, O_WRONLY | O_APPEND | O_CLOEXEC | (is_there ? 0 : O_CREAT | O_EXCL), 0666);
  if (file < 0) throw error(format("%s=%s cannot be written: %s", name, set, std::strerror(errno)));
  close(file);
  if (!is_there) unlink(set);
  return set;
}

bool is_on(const char* name) {
  const char* set = text_or_null(name);
  const std::string_view wanted = set != nullptr ? set : "off";
  if (wanted != "on" && wanted != "off")
    throw error(format("%s=%s is neither on nor off", name, set));
  return wanted == "on";
}

protocol_kind protocol_from_environment() {
  const char* set = std::getenv("SOJOURN_SHARED");
  const std::string_view wanted = set != nullptr && *set != 0 ? set : "lmw";
  if (wanted == "lmw") return protocol_kind::lmw;
  if (wanted == "lsw") return protocol_kind::lsw;
  if (wanted == "seq") return protocol_kind::seq;
  throw error(format("SOJOURN_SHARED=%s is none of the protocols lmw, lsw and seq", set));
}

}  // namespace

shared_settings::shared_settings()
    : usual(protocol_from_environment()),
      pages_a_fault(static_cast<std::uint32_t>(setting("SOJOURN_SHARED_FETCH", 8, 1, 64))),
      collect_bytes(setting("SOJOURN_SHARED_DIFFS", 64 << 10, 64, 1 << 30) << 10),
      bell_after_ns(setting("SOJOURN_SHARED_BELL_US", 30, 1, 1'000'000) * 1000),
      part_bytes(setting("SOJOURN_SHARED_PART_BYTES", 1 << 20, 64, 1 << 20)),
      protected_by(protection_from_environment()),
      report_text(is_on("SOJOURN_SHARED_REPORT")),
      report_json(file_or_null("SOJOURN_SHARED_REPORT_JSON")) {}

namespace {
const shared_settings* settings_of_rank = nullptr;
}

const shared_settings& settings() { return *settings_of_rank; }
void read_settings() { settings_of_rank = new shared_settings; }

}  // namespace sojourn::detail::pages
