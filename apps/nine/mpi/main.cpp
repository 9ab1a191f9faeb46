// SPDX-License-Identifier: Apache-2.0
// mpirun -n 2 nine_mpi --size paper
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "nine/kernel/share.hpp"
#include "nine/kernel/sor.hpp"

namespace {

using apps::nine::share;
using apps::nine::sor_input;

/// The rows of one rank in one array a colour, with a row above and one below of its neighbours.
class part {
 public:
  explicit part(const sor_input& input)
      : side_(input.side),
        half_(input.side / 2),
        rows_(apps::nine::share_of(side_, apps::mpi::rank_count(), apps::mpi::rank_me())),
        first_row_(rows_.first == 0 ? 0 : rows_.first - 1),
        all_rows_(std::min(rows_.end + 1, side_) - first_row_),
        above_(rows_.first == 0 ? MPI_PROC_NULL : apps::mpi::rank_me() - 1),
        below_(rows_.end == side_ ? MPI_PROC_NULL : apps::mpi::rank_me() + 1) {}

  /// Each rank computes the first values of its neighbours' rows, too.
  void fill() {
    for (auto& c : colours_) c.resize(all_rows_ * half_);
    for (std::size_t row = first_row_; row < first_row_ + all_rows_; ++row) {
      for (std::size_t column = 0; column < side_; ++column) {
        row_of((row + column) % 2, row)[column / 2] =
            apps::nine::sor_first_value(side_, row, column);
      }
    }
  }

  /// Half a sweep: what neighbours wait for comes first, and is on its way while the rest is
  /// computed.
  void relax(std::size_t parity) {
    const share top{rows_.first, std::min(rows_.first + 1, rows_.end)};
    const share bottom{std::max(top.end, rows_.end - 1), rows_.end};
    relax(parity, top);
    relax(parity, bottom);
    std::array<MPI_Request, 4> requests;
    MPI_Irecv(row_of(parity, rows_.first == 0 ? 0 : rows_.first - 1), count(), MPI_DOUBLE, above_,
              0, MPI_COMM_WORLD, requests.data());
    MPI_Irecv(row_of(parity, std::min(rows_.end, side_ - 1)), count(), MPI_DOUBLE, below_, 0,
              MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(row_of(parity, rows_.first), count(), MPI_DOUBLE, above_, 0, MPI_COMM_WORLD,
              &requests[2]);
    MPI_Isend(row_of(parity, rows_.end - 1), count(), MPI_DOUBLE, below_, 0, MPI_COMM_WORLD,
              &requests[3]);
    relax(parity, {top.end, bottom.first});
    MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
  }

  /// On rank 0: the sum of all points, row by row, as nine's. Collective.
  double checksum() {
    double all = 0;
    for (int r = 0; r < apps::mpi::rank_count(); ++r) {
      const share of = apps::nine::share_of(side_, apps::mpi::rank_count(), r);
      for (std::size_t row = of.first; row < of.end; ++row) all = sum_of(r, row, all);
    }
    return all;
  }

 private:
  int count() const { return static_cast<int>(half_); }
  double* row_of(std::size_t parity, std::size_t row) {
    return colours_[parity].data() + (row - first_row_) * half_;
  }
  void relax(std::size_t parity, share rows) {
    if (rows.first >= rows.end) return;
    apps::nine::sor_relax(side_, parity, rows, first_row_, colours_[parity].data(),
                          colours_[1 - parity].data());
  }
  double sum_of(int owner, std::size_t row, double before) {
    std::array<std::vector<double>, 2> came;
    std::array<const double*, 2> points{};
    for (std::size_t parity : {0u, 1u}) {
      if (owner == apps::mpi::rank_me()) {
        points[parity] = row_of(parity, row);
        if (owner != 0) MPI_Send(points[parity], count(), MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
      } else if (apps::mpi::rank_me() == 0) {
        came[parity].resize(half_);
        MPI_Recv(came[parity].data(), count(), MPI_DOUBLE, owner, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        points[parity] = came[parity].data();
      }
    }
    if (apps::mpi::rank_me() != 0) return 0;
    for (std::size_t column = 0; column < side_; ++column)
      before += points[(row + column) % 2][column / 2];
    return before;
  }

  std::size_t side_;
  std::size_t half_;
  share rows_;
  std::size_t first_row_;
  std::size_t all_rows_;
  int above_;
  int below_;
  std::array<std::vector<double>, 2> colours_;
};

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "The application sor of `nine` by MPI: the same half sweeps, and after each of them the "
      "rows\n"
      "at the edges of the ranks' parts go by MPI_Isend and MPI_Irecv, while the others are\n"
      "computed.",
      "nine_mpi");
  std::string size = "small";
  apps::mpi::json_report json;
  options.add("--size", size, "small, or paper: as nine has them").one_of({"small", "paper"});
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const sor_input input = apps::nine::sor_input_of(
        size == "paper" ? apps::nine::problem_size::paper : apps::nine::problem_size::small);
    if (static_cast<std::size_t>(apps::mpi::rank_count()) > input.side)
      throw apps::refusal(2, "nine_mpi: there are more ranks than rows: start fewer");
    part mine(input);
    apps::mpi::stopwatch watch;
    watch.start();
    mine.fill();
    for (int half = 0; half < 2 * input.iterations; ++half)
      mine.relax(static_cast<std::size_t>(half % 2));
    watch.stop();
    const double seconds = watch.seconds();
    const double checksum = mine.checksum();
    apps::mpi::say(json.readable(), fmt::format("sor, {} ranks: {:.3f} s, checksum {:.12g}\n",
                                                apps::mpi::rank_count(), seconds, checksum));
    json.write({{"application", "sor"},
                {"ranks", apps::mpi::rank_count()},
                {"seconds", seconds},
                {"checksum", checksum}});
    return 0;
  });
}
