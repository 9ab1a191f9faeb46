// SPDX-License-Identifier: Apache-2.0
//
// Child processes of the driver: start, wait, capture, and the processor time of a whole tree.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Something the driver needs went wrong; what() is one sentence for the user.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using arguments = std::vector<std::string>;
using environment = std::vector<std::pair<std::string, std::string>>;

/// A started process, ended and reaped by the destructor. Its standard input is empty, its standard
/// output thrown away unless captured, its standard error ours.
class child_process {
 public:
  /// Starts argv[0], looked up in PATH when it has no slash. `extra` is added to the environment.
  /// Errors: failure when it cannot be started.
  explicit child_process(const arguments& argv, const environment& extra = {}, int output_fd = -1);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process();

  pid_t pid() const { return pid_; }

  /// True until the process has ended.
  bool running();

  /// Waits for the end. Returns the exit status, or 128 and the signal's number.
  int wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool reaped_ = false;
};

/// What a program that ran to its end printed on standard output, and its exit status.
struct captured {
  int status = 0;
  std::string output;
};
captured run_and_capture(const arguments& argv, const environment& extra = {});

/// Processor time in seconds, user and system, that `root` and all its descendants have used.
double tree_cpu_seconds(pid_t root);

/// Whether a command of this name is in PATH.
bool in_path(const std::string& command);

/// A private directory that is removed with all it holds.
class temporary_directory {
 public:
  temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
