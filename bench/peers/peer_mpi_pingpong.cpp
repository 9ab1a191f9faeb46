// SPDX-License-Identifier: Apache-2.0
//
// MPI's message cost between two ranks.
//
//   ping     round trip of `bytes` bytes each way by blocking send and receive, received in the
//            user's buffer
//   rate     one message of `bytes` bytes, one way, of many: MPI_Isend and MPI_Irecv in windows of
//            64 with one MPI_Waitall each, and at the end one message back
//
// Between two commands every rank sleeps in read() on its own FIFO, because a rank that waited in
// MPI would spin on a core that is being measured.

#define OMPI_SKIP_MPICXX 1  // The C API alone: the C++ bindings are gone from MPI 3 on.
#include <mpi.h>

#include <algorithm>
#include <array>

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

constexpr std::size_t window = 64;

/// Each message of a window has a buffer of its own, as MPI requires of what is under way.
void stream(int me, std::uint64_t messages, std::vector<char>& out, std::vector<char>& in,
            std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  std::array<MPI_Request, window> requests;
  for (std::uint64_t done = 0; done < messages;) {
    const std::size_t now = std::min<std::uint64_t>(window, messages - done);
    for (std::size_t i = 0; i < now; ++i) {
      if (me == 0)
        MPI_Isend(out.data() + i * bytes, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
      else
        MPI_Irecv(in.data() + i * bytes, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(static_cast<int>(now), requests.data(), MPI_STATUSES_IGNORE);
    done += now;
  }
  if (me == 0)
    MPI_Recv(in.data(), 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(out.data(), 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

std::vector<double> measure(int me, const bench::command& what) {
  const std::size_t bytes = what.plan.bytes;
  const bool one_way = what.operation == "rate";
  std::vector<char> out(std::max<std::size_t>(bytes * (one_way ? window : 1), 1), 'x');
  std::vector<char> in(out.size());
  MPI_Barrier(MPI_COMM_WORLD);
  return bench::time_batches(what.plan, [&](std::uint64_t count) {
    one_way ? stream(me, count, out, in, bytes) : ping_pong(me, count, out, in, bytes);
  });
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
    const std::vector<double> round_trips = measure(me, {options.operation, options.plan});
    if (me == 0) bench::print_samples("mpi", options, round_trips);
  } else {
    bench::command_channel channel(options, me);
    while (auto next = channel.next()) {
      const std::vector<double> round_trips = measure(me, *next);
      if (me == 0) channel.answer(round_trips);
    }
  }
  MPI_Finalize();
  return 0;
}
