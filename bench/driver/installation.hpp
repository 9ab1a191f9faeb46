// SPDX-License-Identifier: Apache-2.0
//
// Where the executables are, and which peers this machine has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/process.hpp"

namespace bench {

/// The executables that were built together with the driver, found beside it: in a build tree, or
/// where Sojourn is installed.
class installation {
 public:
  /// Errors: failure when the driver cannot tell where it lies.
  installation();

  /// Path of an executable. Errors: failure when it was not built.
  std::string program(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Where figures go unless told otherwise: beside the executables of a build tree, or here.
  std::filesystem::path figures() const;

  /// Words that start `program` as a job of `ranks`. The launcher binds ranks to cores when there
  /// are enough; for two ranks that is asked for, so that it says when it cannot.
  arguments job(int ranks, const std::string& program) const;

  /// Words that start an MPI peer, and why there is none: empty when there is one.
  arguments mpi_job(int ranks, const std::string& peer) const;
  std::string mpi_missing(const std::string& peer) const;
  /// The same of MPICH, which may be installed beside OpenMPI.
  arguments mpich_job(int ranks, const std::string& peer) const;
  std::string mpich_missing(const std::string& peer) const;

  /// Why a peer that is built where its library was found is not there: empty when it is.
  std::string peer_missing(const std::string& peer, const std::string& library) const;

 private:
  std::filesystem::path folder_;
  bool is_build_tree_;
};

/// "0,1" of {0, 1}, as the peers' option --cpus takes it.
std::string comma_list(const std::vector<double>& numbers);

}  // namespace bench
