// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 fft_mpi
#include <algorithm>
#include <span>
#include <vector>

#include "common/cpu_meter.hpp"
#include "common/mpi/application.hpp"
#include "fft/kernel/options.hpp"

namespace {

using apps::fft::complex;

int count_of(const apps::fft::layout& l) { return static_cast<int>(2 * l.chunk()); }

/// The schedule of the other forms: all send to their next, then to the one after it, …
void remap_staggered(apps::fft::part& mine) {
  const int ranks = mine.shape().processors;
  const int count = count_of(mine.shape());
  std::vector<MPI_Request> requests;
  for (int round = 1; round < ranks; ++round) {
    const int from = mine.partner(ranks - round);
    MPI_Irecv(mine.incoming(from), count, MPI_DOUBLE, from, 0, MPI_COMM_WORLD,
              &requests.emplace_back());
  }
  for (int round = 1; round < ranks; ++round) {
    const int to = mine.partner(round);
    MPI_Isend(mine.outgoing(to), count, MPI_DOUBLE, to, 0, MPI_COMM_WORLD,
              &requests.emplace_back());
  }
  mine.keep_own();
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

/// One collective: the library chooses the schedule.
void remap_all_to_all(apps::fft::part& mine) {
  if (mine.shape().processors == 1) return;
  const int count = count_of(mine.shape());
  MPI_Alltoall(mine.outgoing(0), count, MPI_DOUBLE, mine.incoming(0), count, MPI_DOUBLE,
               MPI_COMM_WORLD);
}

/// On rank 0, of all ranks' blocks.
apps::fft::errors check(const apps::fft::layout& shape, std::uint64_t seed,
                        std::vector<complex>& block) {
  const int count = static_cast<int>(2 * shape.share());
  if (apps::mpi::rank_me() != 0) {
    MPI_Send(block.data(), count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    return {};
  }
  std::vector<complex> spectrum(shape.points());
  for (int r = 0; r < shape.processors; ++r) {
    if (r > 0) MPI_Recv(block.data(), count, MPI_DOUBLE, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    put_in_order(shape, r, block.data(), spectrum);
  }
  return compare(shape, seed, spectrum);
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "The transform of `fft` by MPI: chunks go by MPI_Isend and MPI_Irecv in the same order, or,\n"
      "with --best, by MPI_Alltoall.",
      "fft_mpi");
  apps::fft::options chosen;
  bool best = false;
  apps::mpi::json_report json;
  chosen.add_to(options);
  options.add_flag("--best", best,
                   "Use the fastest algorithm instead of the one of the other forms");
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    json.open();
    apps::fft::report report{.shape = chosen.shape(apps::mpi::rank_count()),
                             .form = best ? "mpi, best" : "mpi",
                             .repeats = chosen.repeats};
    std::vector<complex> rows(report.shape.share());
    std::vector<complex> block(report.shape.processors == 1 ? 0 : report.shape.share());
    std::vector<complex>& results = report.shape.processors == 1 ? rows : block;
    apps::fft::part mine(report.shape, apps::mpi::rank_me(), rows.data(), results.data());

    struct measured {
      double seconds;
      apps::time_split split;
    };
    std::vector<measured> all;
    for (int i = 0; i < chosen.repeats; ++i) {
      mine.fill(chosen.seed);
      apps::cpu_meter cpu;
      apps::mpi::stopwatch watch;
      watch.start();
      cpu.add([&] { mine.first_steps(); });
      best ? remap_all_to_all(mine) : remap_staggered(mine);
      cpu.add([&] { mine.last_steps(); });
      watch.stop();
      all.push_back({watch.seconds(), watch.split(cpu.seconds())});
    }
    std::ranges::sort(all, {}, &measured::seconds);
    report.seconds = all[all.size() / 2].seconds;
    report.split = all[all.size() / 2].split;
    report.fastest = all.front().seconds;
    report.found = check(report.shape, chosen.seed, results);
    apps::mpi::say(json.readable(), report.text());
    json.write(report.json());
    const auto wrong = apps::mpi::rank_me() == 0 ? fault(report.shape, report.found) : std::nullopt;
    if (apps::mpi::broadcast(!wrong)) return 0;
    throw apps::refusal(1, wrong.value_or("the spectrum is wrong"));
  });
}
