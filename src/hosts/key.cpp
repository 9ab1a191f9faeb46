// SPDX-License-Identifier: Apache-2.0
#include "hosts/key.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include "base/printable.hpp"
#include "hosts/munge.hpp"
#include "sojourn/errors.hpp"
#include "transport/link/carriers.hpp"

// Weak: a strong reference makes the linker warn about every statically linked program.
#pragma weak getpwuid

namespace sojourn::detail {

namespace {

constexpr std::string_view by_munge = "munge:";
constexpr std::string_view by_key = "key:";
constexpr std::string_view in_the_open = "open:";

enum class trust { user, key, network };

trust wanted_trust() {
  const char* text = std::getenv("SOJOURN_TRUST");
  const std::string_view wanted = text == nullptr ? "user" : text;
  if (wanted == "user") return trust::user;
  if (wanted == "key") return trust::key;
  if (wanted == "network") return trust::network;
  throw error("SOJOURN_TRUST is 'user', 'key' or 'network', not '" + printable(text) + "'");
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw error("the key by which jobs of srun, mpirun and mpiexec know their own processes, " +
              printable(path) + ", " + why);
}

job_secret secret_of(const job_secret& key, std::string_view drawn) {
  const std::string text = "sojourn job " + std::string(drawn);
  return prove(key, std::as_bytes(std::span(text)));
}

}  // namespace

std::string key_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::string(config) + "/sojourn/key";
  const char* home = std::getenv("HOME");
  if ((home == nullptr || *home != '/') && &getpwuid != nullptr) {
    const passwd* user = getpwuid(geteuid());
    home = user == nullptr ? nullptr : user->pw_dir;
  }
  if (home == nullptr || *home != '/')
    throw error("there is no folder for the key of this user's jobs: set HOME, on all hosts");
  return std::string(home) + "/.config/sojourn/key";
}

std::optional<job_secret> read_key(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0) refuse_file(path, std::string("cannot be read: ") + std::strerror(errno));
  struct stat is{};
  char text[80];
  const bool is_known = fstat(file, &is) == 0;
  const ssize_t n = read(file, text, sizeof text);
  close(file);
  if (!is_known || !S_ISREG(is.st_mode) || is.st_uid != geteuid() || (is.st_mode & 077) != 0)
    refuse_file(path,
                "must be a file of this user that no other can read: chmod 600, or remove it");
  std::string_view digits(text, n < 0 ? 0 : static_cast<std::size_t>(n));
  if (digits.ends_with('\n')) digits.remove_suffix(1);
  const std::optional<job_secret> key = secret_from_hex(digits);
  if (!key)
    refuse_file(path, "does not hold 64 hexadecimal digits: remove it, and a new one is made");
  return key;
}

void make_key(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  // Complete before it has its name, so that nobody reads half of it.
  std::string draft = folder + "/.key.XXXXXX";
  const int file = mkostemp(draft.data(), O_CLOEXEC);
  if (file < 0) refuse_file(path, std::string("cannot be made: ") + std::strerror(errno));
  const std::string text = to_hex(new_secret()) + '\n';
  const bool is_written =
      write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(file) == 0;
  close(file);
  const bool is_there = is_written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int reason = errno;
  unlink(draft.c_str());
  if (!is_there) refuse_file(path, std::string("cannot be written: ") + std::strerror(reason));
}

told_secret draw_secret() {
  const trust wanted = wanted_trust();
  const job_secret secret = new_secret();
  if (wanted == trust::network && encrypts_job()) {
    throw error(
        "--encrypt protects nothing where SOJOURN_TRUST=network tells the job's secret to all: "
        "leave "
        "one of them out");
  }
  if (wanted == trust::network) return {secret, std::string(in_the_open) + to_hex(secret)};
  if (wanted == trust::user) {
    if (const auto credential = munge_encode(secret))
      return {secret, std::string(by_munge) + *credential};
  }
  const std::string path = key_file();
  if (!read_key(path)) make_key(path);
  const std::string drawn = to_hex(new_secret());
  return {secret_of(read_key(path).value(), drawn), std::string(by_key) + drawn};
}

job_secret learn_secret(const std::string& word) {
  const auto rest = [&word](std::string_view kind) { return word.substr(kind.size()); };
  if (word.starts_with(by_munge)) return munge_decode(rest(by_munge));
  if (word.starts_with(by_key)) {
    const std::string path = key_file();
    const std::optional<job_secret> key = read_key(path);
    if (!key)
      refuse_file(path,
                  "is not on this host, and the host of rank 0 has it: share that folder between "
                  "the hosts, copy the file, install munge on all hosts, or set "
                  "SOJOURN_TRUST=network where everybody in the network may be trusted");
    return secret_of(*key, rest(by_key));
  }
  if (word.starts_with(in_the_open) && wanted_trust() == trust::network) {
    if (const auto secret = secret_from_hex(rest(in_the_open))) return *secret;
  }
  throw error(
      "the process of rank 0 tells its secret in a way that this one does not trust: set "
      "SOJOURN_TRUST alike on all hosts (with OpenMPI: mpirun -x SOJOURN_TRUST)");
}

}  // namespace sojourn::detail
