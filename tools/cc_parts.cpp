// SPDX-License-Identifier: Apache-2.0
#include "cc_parts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>

#include "doctor_parts.hpp"
#include "sojourn/errors.hpp"

extern char** environ;

namespace sojourn::tools {

namespace fs = std::filesystem;

namespace {

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

/// Signals by which a user ends a command.
sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, s);
  return set;
}

/// Options of compilers whose value is the next word.
constexpr std::array valued = {
    "-include", "-imacros", "-isystem", "-idirafter", "-iprefix",       "-MF",        "-MT", "-MQ",
    "-x",       "--param",  "-D",       "-U",         "-Xpreprocessor", "-Xassembler"};
constexpr std::array valued_of_linker = {"-Xlinker", "-T", "-u", "-z", "-e"};
constexpr std::array stops = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"};

template <class Words>
bool is_one_of(const Words& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool is_for_linker(const std::string& word) {
  static constexpr std::array whole = {"-static",   "-rdynamic",      "-shared",      "-s",
                                       "-nostdlib", "-nodefaultlibs", "-nostartfiles"};
  return begins(word, "-Wl,") || is_one_of(whole, word);
}

}  // namespace

cc_config read_cc_config() {
  const fs::path bin = fs::path(own_file()).parent_path();
  cc_config config;
  config.folder = (bin / "../share/sojourn").lexically_normal();
  std::ifstream in(config.folder / "cc.conf");
  if (!in)
    throw error(
        fmt::format("'{}' is not there: the command has to lie where Sojourn is installed or "
                    "built, with share/sojourn beside its folder",
                    (config.folder / "cc.conf").string()));
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line[0] == '#') continue;
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    // Paths in an installed tree are as seen from there: it may be moved.
    const auto path = [&] { return (config.folder / value).lexically_normal(); };
    if (key == "include") config.include = path();
    if (key == "library") config.library = path();
    if (key == "compile") config.compile.push_back(value);
    if (key == "link") config.link.push_back(value);
  }
  return config;
}

cc_request parse_cc(const std::vector<std::string>& words) {
  cc_request r;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size())
        throw error(
            fmt::format("{} needs a word after it; 'sojourn cc --help' shows examples", word));
      return words[++i];
    };
    const auto folder = [&](std::size_t length, std::vector<fs::path>& folders) {
      const std::string name = word.size() > length ? word.substr(length) : value();
      folders.emplace_back(name);
      return name;
    };
    if (word == "--help") {
      r.wants_help = true;
    } else if (word == "--macros") {
      r.wants_macros = true;
    } else if (word == "--dynamic") {
      r.dynamic = true;
    } else if (word == "--verbose") {
      r.verbose = true;
    } else if (word == "--version" || word == "-dumpversion" || word == "-dumpmachine") {
      r.passes_on = true;
    } else if (word == "-r") {
      r.relocatable = true;
    } else if (is_one_of(stops, word)) {
      r.stop = word;
      if (word != "-c" && word != "-S" && word != "-E") r.compile_options.push_back(word);
    } else if (begins(word, "-o")) {
      r.output = word.size() > 2 ? word.substr(2) : value();
    } else if (begins(word, "-iquote")) {
      r.compile_options.push_back("-iquote" + folder(7, r.include_folders));
    } else if (begins(word, "-I")) {
      r.compile_options.push_back("-I" + folder(2, r.include_folders));
    } else if (begins(word, "-L")) {
      r.inputs.push_back("-L" + folder(2, r.library_folders));
    } else if (begins(word, "-l")) {
      r.inputs.push_back("-l" + (word.size() > 2 ? word.substr(2) : value()));
    } else if (is_one_of(valued, word)) {
      r.compile_options.push_back(word);
      r.compile_options.push_back(value());
    } else if (is_one_of(valued_of_linker, word)) {
      r.link_options.push_back(word);
      r.link_options.push_back(value());
    } else if (is_for_linker(word)) {
      r.link_options.push_back(word);
    } else if (begins(word, "-") && word != "-") {
      r.compile_options.push_back(word);
      if (!begins(word, "-M") && !begins(word, "-W") && !begins(word, "-D") && !begins(word, "-U"))
        r.link_options.push_back(word);
    } else if (is_source(word)) {
      r.sources.push_back(word);
      r.inputs.push_back(word);
    } else {
      r.inputs.push_back(word);
    }
  }
  return r;
}

temporary_folder::temporary_folder() {
  const char* where = std::getenv("TMPDIR");
  std::string name =
      (fs::path(where != nullptr && *where != 0 ? where : "/tmp") / "sojourn-cc-XXXXXX");
  const sigset_t ending = ending_signals();
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  if (mkdtemp(name.data()) == nullptr)
    throw error(fmt::format("cannot make a folder like '{}': {} (TMPDIR names another place)", name,
                            std::strerror(errno)));
  path_ = name;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  // A signal that came meanwhile ends the command now.
  const sigset_t ending = ending_signals();
  sigprocmask(SIG_UNBLOCK, &ending, nullptr);
}

int run_program(const std::vector<std::string>& words, const std::string& missing,
                const output_files& to) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [fd, file] :
       {std::pair{STDOUT_FILENO, &to.output}, std::pair{STDERR_FILENO, &to.errors}})
    if (!file->empty())
      posix_spawn_file_actions_addopen(&actions, fd, file->c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) throw error(missing);
  if (failure != 0)
    throw error(fmt::format("cannot start {}: {}", words[0], std::strerror(failure)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace sojourn::tools
