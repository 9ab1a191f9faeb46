// SPDX-License-Identifier: Apache-2.0
//
// A long-lived benchmark process, ours or a peer's, that runs one batch when it is told to and
// sleeps otherwise (common/command_channel.hpp is its end of the conversation).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/timing.hpp"
#include "driver/process.hpp"

namespace bench {

class worker {
 public:
  /// Starts `argv` with `--commands` and `--answers` added. `listeners` ranks read commands: all of
  /// an MPI job's, one of ours. Errors: failure when it cannot be started.
  worker(std::string name, arguments argv, int listeners, const environment& extra = {});
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  /// Runs one command and returns its figures.
  /// Errors: failure when the process refuses, has ended, or says nothing for a minute.
  std::vector<double> ask(const std::string& operation, const batch_plan& plan) {
    tell(operation, plan);
    return answer_to(operation);
  }
  /// The two halves of ask(), for workers that run at the same time.
  void tell(const std::string& operation, const batch_plan& plan);
  std::vector<double> answer_to(const std::string& operation);

  /// The median of ask(): one batch's figure.
  double median_of(const std::string& operation, const batch_plan& plan);

  pid_t pid() const { return process_.pid(); }

 private:
  struct pipes;
  void send(const std::string& line);
  std::string receive();

  std::string name_;
  temporary_directory folder_;
  std::vector<int> commands_;
  int answers_ = -1;
  std::string received_;
  child_process process_;
};

}  // namespace bench
