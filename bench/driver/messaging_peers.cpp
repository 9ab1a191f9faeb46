// SPDX-License-Identifier: Apache-2.0
#include "driver/messaging_peers.hpp"

namespace bench {
namespace {

/// Starts a peer of two processes, or tells why it cannot.
std::unique_ptr<worker> start(const installation& here, const std::string& peer,
                              const std::string& cpus, const std::string& why_not) {
  if (!why_not.empty()) return nullptr;
  return std::make_unique<worker>(peer, arguments{here.program(peer), "--cpus", cpus}, 1);
}

void add(std::vector<contender>& contenders, const char* name, worker* peer, const char* operation,
         const batch_plan& plan) {
  if (peer == nullptr) return;
  contenders.push_back({name, [=] { return peer->median_of(operation, plan); }});
}

}  // namespace

messaging_peers::messaging_peers(const installation& here, const std::string& cpus)
    : why_no_mpi_(here.mpi_missing("peer_mpi_pingpong")),
      why_no_mpich_(here.mpich_missing("peer_mpich_pingpong")),
      why_no_ucx_(here.peer_missing("peer_ucx_am", "UCX")),
      why_no_grpc_(here.peer_missing("peer_grpc", "gRPC")),
      why_no_capnp_(here.peer_missing("peer_capnp", "Cap'n Proto")),
      ucx_(start(here, "peer_ucx_am", cpus, why_no_ucx_)),
      grpc_(start(here, "peer_grpc", cpus, why_no_grpc_)),
      capnp_(start(here, "peer_capnp", cpus, why_no_capnp_)) {
  const auto start_job = [&](const char* peer, arguments words) {
    words.insert(words.end(), {"--cpus", cpus});
    return std::make_unique<worker>(peer, words, 2);
  };
  if (why_no_mpi_.empty()) {
    mpi_ = start_job("peer_mpi_pingpong", here.mpi_job(2, "peer_mpi_pingpong"));
  }
  if (why_no_mpich_.empty()) {
    mpich_ = start_job("peer_mpich_pingpong", here.mpich_job(2, "peer_mpich_pingpong"));
  }
}

void messaging_peers::add_messages(std::vector<contender>& contenders, std::uint64_t bytes,
                                   bool quick) const {
  const std::uint64_t full = bytes > 4096 ? 300 : 2000;
  const batch_plan plan{.iterations = quick ? full / 10 : full, .repeats = 5, .bytes = bytes};
  add(contenders, "mpi", mpi(), "ping", plan);
  add(contenders, "ucx", ucx(), "ping", plan);
}

void messaging_peers::add_round_trips(std::vector<contender>& contenders, std::uint64_t bytes,
                                      bool quick) const {
  add_messages(contenders, bytes, quick);
  add(contenders, "mpich", mpich(), "ping",
      {.iterations = quick ? 200u : 2000u, .repeats = 5, .bytes = bytes});
  // They go through the system, which takes a hundred times as long.
  const batch_plan plan{.iterations = quick ? 50u : 100u, .repeats = 5, .bytes = bytes};
  add(contenders, "grpc_sync", grpc(), "sync", plan);
  add(contenders, "grpc_async", grpc(), "async", plan);
  add(contenders, "grpc_poll", grpc(), "poll", plan);
  add(contenders, "capnp", capnp(), "ping", plan);
}

}  // namespace bench
