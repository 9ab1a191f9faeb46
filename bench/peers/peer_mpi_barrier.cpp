// SPDX-License-Identifier: Apache-2.0
//
// MPI's barrier with more ranks than cores. OpenMPI yields the core while it waits when it knows
// that it is oversubscribed (mpirun --oversubscribe); ranks are left to the kernel's placement, as
// Sojourn's are then.
//
//   barrier  one MPI_Barrier over all ranks
//
// Between two commands every rank sleeps in read() on its own FIFO.

#define OMPI_SKIP_MPICXX 1  // The C API alone: the C++ bindings are gone from MPI 3 on.
#include <mpi.h>

#include "common/command_channel.hpp"

namespace {

std::vector<double> measure(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
  });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  const bench::process_options options = bench::parse_options(argc, argv, "barrier");
  if (options.commands.empty()) {
    const std::vector<double> nanoseconds = measure(options.plan);
    if (me == 0) bench::print_samples("mpi", options, nanoseconds);
  } else {
    bench::command_channel channel(options, me);
    while (auto next = channel.next()) {
      const std::vector<double> nanoseconds = measure(next->plan);
      if (me == 0) channel.answer(nanoseconds);
    }
  }
  MPI_Finalize();
  return 0;
}
