// SPDX-License-Identifier: Apache-2.0
//
// MPI's message cost: blocking send and receive between two ranks.
//
//   ping     round trip of `bytes` bytes each way, received in the user's buffer
//
// Between two commands every rank sleeps in read() on its own FIFO, because a rank that waited in
// MPI would spin on a core that is being measured.

#define OMPI_SKIP_MPICXX 1  // The C API alone: the C++ bindings are gone from MPI 3 on.
#include <mpi.h>

#include <algorithm>

#include "common/command_channel.hpp"

namespace {

void ping_pong(int me, std::uint64_t round_trips, std::vector<char>& out, std::vector<char>& in,
               std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  const int other = 1 - me;
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    if (me == 0) {
      MPI_Send(out.data(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(in.data(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in.data(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out.data(), count, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
  }
}

std::vector<double> measure(int me, const bench::batch_plan& plan) {
  std::vector<char> out(std::max<std::size_t>(plan.bytes, 1), 'x');
  std::vector<char> in(out.size());
  MPI_Barrier(MPI_COMM_WORLD);
  return bench::time_batches(
      plan, [&](std::uint64_t count) { ping_pong(me, count, out, in, plan.bytes); });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bench::process_options options = bench::parse_options(argc, argv, "ping");
  if (ranks != 2 || options.cpus.size() < 2) {
    if (me == 0) std::fprintf(stderr, "peer_mpi_pingpong: needs 2 ranks and 2 cores\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (!bench::pin_to_cpu(options.cpus[static_cast<std::size_t>(me)])) {
    std::perror("peer_mpi_pingpong: cannot pin to the core given with --cpus");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (options.commands.empty()) {
    const std::vector<double> round_trips = measure(me, options.plan);
    if (me == 0) bench::print_samples("mpi", options, round_trips);
  } else {
    bench::command_channel channel(options, me);
    while (auto next = channel.next()) {
      const std::vector<double> round_trips = measure(me, next->plan);
      if (me == 0) channel.answer(round_trips);
    }
  }
  MPI_Finalize();
  return 0;
}
