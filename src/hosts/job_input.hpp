// SPDX-License-Identifier: Apache-2.0
// The input of a job on several hosts: what this process reads is passed on to where rank 0 runs,
// by a pipe. No more is read than has been taken there, so that what rank 0 does not read stays for
// others. Nothing here blocks.
#pragma once

#include <unistd.h>

#include <string>

namespace sojourn::detail {

class job_input {
 public:
  /// Does not own `from`.
  explicit job_input(int from = STDIN_FILENO) : from_(from) {}
  ~job_input();
  job_input(const job_input&) = delete;
  job_input& operator=(const job_input&) = delete;

  /// Owns `pipe`, which must not block. It is closed when all input has been passed on.
  void pass_to(int pipe) { to_ = pipe; }

  /// More is to be read.
  bool wants_more() const { return is_open_ && read_.empty(); }
  /// It is not read from a terminal that is another job's at the moment. Nothing tells when that
  /// changes.
  bool may_read() const;
  void read_some();

  /// What to wait for until it takes more; -1 when there is nothing for it.
  int waits_to_write() const { return read_.empty() ? -1 : to_; }
  void write_some();

 private:
  int from_;
  int to_ = -1;
  bool is_open_ = true;
  std::string read_;  ///< What has not been passed on.
};

}  // namespace sojourn::detail
