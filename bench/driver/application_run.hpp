// SPDX-License-Identifier: Apache-2.0
//
// One run of an application, which says on a file what it measured.
#pragma once

#include <compiled_json.hpp>
#include <string>

#include "driver/installation.hpp"
#include "driver/process.hpp"

namespace bench {

/// Started by the constructor, so that several can run side by side. Ranks are not bound: two jobs
/// side by side would get the same core, and those of MPI are not bound either.
class application_run {
 public:
  /// A job of `sojourn run`. Errors: failure when it cannot be started.
  static application_run of_sojourn(const installation& here, int ranks, const std::string& program,
                                    const arguments& options, const environment& extra = {}) {
    arguments words{here.program("sojourn"), "run",       "-n",
                    std::to_string(ranks),   "--no-bind", here.program(program)};
    words.insert(words.end(), options.begin(), options.end());
    return {program, words, extra};
  }
  /// The program without a job. Errors: failure when it cannot be started.
  static application_run alone(const installation& here, const std::string& program,
                               const arguments& options, const environment& extra = {}) {
    arguments words{here.program(program)};
    words.insert(words.end(), options.begin(), options.end());
    return {program, words, extra};
  }
  /// A job of `mpirun`. Errors: failure when it cannot be started.
  static application_run of_mpi(const installation& here, int ranks, const std::string& program,
                                const arguments& options) {
    arguments words = here.mpi_job(ranks, program);
    words.insert(words.end(), options.begin(), options.end());
    return {program, words, {}};
  }

  /// `words` that start it, however. Errors: failure when it cannot be started.
  application_run(std::string program, arguments words, const environment& extra = {})
      : program_(std::move(program)),
        file_((folder_.path() / "figures.json").string()),
        process_(with_file(std::move(words), file_), extra) {}

  /// Waits for the end. Errors: failure when it did not end well.
  nlohmann::json figures();
  double nanoseconds() { return figures().at("seconds").get<double>() * 1e9; }

 private:
  static arguments with_file(arguments words, const std::string& file) {
    words.insert(words.end(), {"--json", file});
    return words;
  }

  std::string program_;
  temporary_directory folder_;
  std::string file_;
  child_process process_;
};

}  // namespace bench
