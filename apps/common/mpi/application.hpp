// SPDX-License-Identifier: Apache-2.0
// What the MPI forms of the applications share. They are programs of their own, apps/NAME/mpi,
// built without Sojourn's flags and library; the kernels (apps/NAME/kernel) are compiled again.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"

namespace apps::mpi {

inline int rank_me() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int rank_count() {
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

/// Says something on rank 0 only.
inline void say(std::FILE* stream, const std::string& text) {
  if (rank_me() != 0) return;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

/// As apps::run_application, between MPI_Init and MPI_Finalize.
template <class Body>
int run_application(command_line& options, int argc, char** argv, Body body) {
  MPI_Init(&argc, &argv);
  auto [status, last_words] = options.parse(argc, argv);
  if (last_words.empty()) {
    try {
      status = body();
    } catch (const refusal& e) {
      status = e.status();
      last_words = fmt::format("{}: {}\n", options.name(), e.what());
    }
  }
  if (!last_words.empty()) say(status == 0 ? stdout : stderr, last_words);
  MPI_Finalize();
  return status;
}

/// What rank 0 knows, on every rank.
inline bool broadcast(bool value) {
  int as_int = value ? 1 : 0;
  MPI_Bcast(&as_int, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return as_int != 0;
}
inline double sum(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value;
}
inline double greatest(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

/// `--json [FILE]`, see json_option; collective where others must be told.
class json_report : public json_option {
 public:
  void open() {
    if (path().empty()) return;
    if (!broadcast(rank_me() != 0 || open_file())) throw failure();
  }
  void write(const nlohmann::ordered_json& figures) {
    if (!given()) return;
    if (!broadcast(rank_me() != 0 || write_here(figures))) throw failure();
  }
};

/// Around the measured part of a run: begins and ends when all ranks are there.
class stopwatch {
 public:
  void start() {
    MPI_Barrier(MPI_COMM_WORLD);
    start_ = MPI_Wtime();
  }
  void stop() {
    MPI_Barrier(MPI_COMM_WORLD);
    seconds_ = MPI_Wtime() - start_;
  }
  /// Of the slowest rank. Collective.
  double seconds() const { return greatest(seconds_); }
  /// `cpu_seconds`: what this rank's computing takes alone; all else is net. Collective.
  time_split split(double cpu_seconds) const {
    const double ranks = rank_count();
    return split_of(sum(seconds_) / ranks, sum(cpu_seconds) / ranks, 0, 0, 0);
  }

 private:
  double start_ = 0;
  double seconds_ = 0;
};

}  // namespace apps::mpi
