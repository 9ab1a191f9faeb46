// SPDX-License-Identifier: Apache-2.0
//
// The peers that messages and remote calls are compared with. Each is there or it is not; what is
// not there is said.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/installation.hpp"
#include "driver/measure.hpp"
#include "driver/worker.hpp"

namespace bench {

class messaging_peers {
 public:
  /// Starts those that are installed, on these cores ("0,1").
  messaging_peers(const installation& here, const std::string& cpus);

  /// Null where it is missing.
  worker* mpi() const { return mpi_.get(); }
  worker* mpich() const { return mpich_.get(); }
  worker* ucx() const { return ucx_.get(); }
  worker* grpc() const { return grpc_.get(); }
  worker* capnp() const { return capnp_.get(); }

  /// Why a peer is missing, one sentence; empty when it is there.
  const std::string& why_no_mpi() const { return why_no_mpi_; }
  const std::string& why_no_mpich() const { return why_no_mpich_; }
  const std::string& why_no_ucx() const { return why_no_ucx_; }
  const std::string& why_no_grpc() const { return why_no_grpc_; }
  const std::string& why_no_capnp() const { return why_no_capnp_; }

  /// Adds the round trip of `bytes` bytes each way of all message layers that are there: "mpi" and
  /// "ucx".
  void add_messages(std::vector<contender>& contenders, std::uint64_t bytes, bool quick) const;
  /// The same with MPICH and the systems for remote calls: "mpich", "grpc_sync", "grpc_async",
  /// "grpc_poll", "capnp".
  void add_round_trips(std::vector<contender>& contenders, std::uint64_t bytes, bool quick) const;

 private:
  std::string why_no_mpi_, why_no_mpich_, why_no_ucx_, why_no_grpc_, why_no_capnp_;
  std::unique_ptr<worker> mpi_, mpich_, ucx_, grpc_, capnp_;
};

}  // namespace bench
