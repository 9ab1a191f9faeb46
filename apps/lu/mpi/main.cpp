// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 lu_mpi
#include <algorithm>
#include <memory>
#include <vector>

#include "common/cpu_meter.hpp"
#include "common/mpi/application.hpp"
#include "lu/kernel/options.hpp"

namespace {

using apps::lu::layout;
using apps::lu::part;

enum tag { pivot_tag, column_tag, row_tag, check_tag };

/// Requests that are waited for together.
class requests {
 public:
  void send(const double* from, std::size_t count, int to, int tag) {
    MPI_Isend(from, static_cast<int>(count), MPI_DOUBLE, to, tag, MPI_COMM_WORLD,
              &all_.emplace_back());
  }
  void receive(double* to, std::size_t count, int from, int tag) {
    MPI_Irecv(to, static_cast<int>(count), MPI_DOUBLE, from, tag, MPI_COMM_WORLD,
              &all_.emplace_back());
  }
  void wait() {
    MPI_Waitall(static_cast<int>(all_.size()), all_.data(), MPI_STATUSES_IGNORE);
    all_.clear();
  }

 private:
  std::vector<MPI_Request> all_;
};

/// What both ways have: my blocks, and room for those of others.
struct state {
  explicit state(const layout& l)
      : numbers(l.count(apps::mpi::rank_me()) * l.block_numbers()),
        pivot_room(l.block_numbers()),
        visitors(2 * l.blocks() * l.block_numbers()),
        packed(2 * l.blocks() * l.block_numbers()),
        mine(l, apps::mpi::rank_me(), numbers.data()) {}

  const layout& shape() const { return mine.shape(); }
  std::size_t block() const { return shape().block_numbers(); }

  std::vector<double> numbers;
  std::vector<double> pivot_room;
  std::vector<double> visitors;
  std::vector<double> packed;
  requests receives;
  requests sends;
  part mine;
};

void send_pivot(state& s, std::size_t k) {
  s.mine.for_consumers(
      k, k, k, [&](int to) { s.sends.send(s.mine.at(k, k), s.block(), to, pivot_tag); });
}
/// The pivot block of step k; waits for it.
const double* pivot(state& s, std::size_t k) {
  if (s.mine.is_mine(k, k)) return s.mine.at(k, k);
  if (s.mine.has_border(k)) {
    MPI_Recv(s.pivot_room.data(), static_cast<int>(s.block()), MPI_DOUBLE, s.shape().owner(k, k),
             pivot_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return s.pivot_room.data();
}

/// As the other forms: block by block, each as soon as it is solved.
void factorize(state& s) {
  part& mine = s.mine;
  for (std::size_t k = 0; k < s.shape().blocks(); ++k) {
    if (mine.is_mine(k, k)) {
      mine.factor_pivot(k);
      send_pivot(s, k);
    }
    mine.for_missing(k, [&](std::size_t i, std::size_t j) {
      double* room = &s.visitors[(i == k ? s.shape().blocks() + j : i) * s.block()];
      s.receives.receive(room, s.block(), s.shape().owner(i, j), i == k ? row_tag : column_tag);
      mine.use(k, i, j, room);
    });
    mine.solve_border(k, pivot(s, k), [&](std::size_t i, std::size_t j) {
      mine.for_consumers(k, i, j, [&](int to) {
        s.sends.send(mine.at(i, j), s.block(), to, i == k ? row_tag : column_tag);
      });
    });
    mine.use_own_border(k);
    s.receives.wait();
    mine.update_inner(k, [] {});
    s.sends.wait();
  }
}

/// All blocks of a column or row that a rank has go in one message, and the next pivot block is
/// updated, factored and sent before the others are updated.
void factorize_best(state& s) {
  part& mine = s.mine;
  const std::size_t blocks = s.shape().blocks();
  const auto pack = [&](std::vector<const double*> from, double* to) {
    for (std::size_t n = 0; n < from.size(); ++n) std::copy_n(from[n], s.block(), to + n * s.block());
    return from.size() * s.block();
  };
  for (std::size_t k = 0; k < blocks; ++k) {
    if (k == 0 && mine.is_mine(0, 0)) {
      mine.factor_pivot(0);
      send_pivot(s, 0);
    }
    std::size_t columns = 0;
    std::size_t rows = 0;
    mine.for_missing(k, [&](std::size_t i, std::size_t j) {
      double* room = &s.visitors[(i == k ? blocks + rows++ : columns++) * s.block()];
      mine.use(k, i, j, room);
    });
    const int my_row = apps::mpi::rank_me() / s.shape().columns();
    const int my_column = apps::mpi::rank_me() % s.shape().columns();
    if (columns > 0) {
      s.receives.receive(s.visitors.data(), columns * s.block(),
                         s.shape().at(my_row, s.shape().column_of(k)), column_tag);
    }
    if (rows > 0) {
      s.receives.receive(&s.visitors[blocks * s.block()], rows * s.block(),
                         s.shape().at(s.shape().row_of(k), my_column), row_tag);
    }
    std::vector<const double*> of_column;
    std::vector<const double*> of_row;
    mine.solve_border(k, pivot(s, k), [&](std::size_t i, std::size_t j) {
      (i == k ? of_row : of_column).push_back(mine.at(i, j));
    });
    s.sends.wait();  // for what was packed in the step before
    if (!of_column.empty()) {
      const std::size_t count = pack(of_column, s.packed.data());
      mine.for_consumers(k, k + 1, k, [&](int to) {
        s.sends.send(s.packed.data(), count, to, column_tag);
      });
    }
    if (!of_row.empty()) {
      double* to_pack = &s.packed[blocks * s.block()];
      const std::size_t count = pack(of_row, to_pack);
      mine.for_consumers(k, k, k + 1,
                         [&](int to) { s.sends.send(to_pack, count, to, row_tag); });
    }
    mine.use_own_border(k);
    s.receives.wait();
    mine.update_next_pivot(k);
    if (k + 1 < blocks && mine.is_mine(k + 1, k + 1)) {
      mine.factor_pivot(k + 1);
      send_pivot(s, k + 1);
    }
    mine.update_others(k);
  }
  s.sends.wait();
}

/// On rank 0, of all ranks' blocks.
apps::lu::residual check_all(state& s, std::uint64_t seed) {
  const layout& l = s.shape();
  const auto count_of = [&](int r) { return static_cast<int>(l.count(r) * l.block_numbers()); };
  if (const int me = apps::mpi::rank_me(); me != 0) {
    MPI_Send(s.numbers.data(), count_of(me), MPI_DOUBLE, 0, check_tag, MPI_COMM_WORLD);
    return {};
  }
  std::vector<double> all(s.numbers);
  all.resize(l.size * l.size);
  double* at = all.data() + count_of(0);
  for (int r = 1; r < l.processors; at += count_of(r), ++r) {
    MPI_Recv(at, count_of(r), MPI_DOUBLE, r, check_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return check(l, seed, all);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App options(
      "The factorization of `lu` by MPI: blocks go by MPI_Isend and MPI_Irecv as soon as they are\n"
      "solved, or, with --best, all of a rank in one message, and the next pivot block first.",
      "lu_mpi");
  apps::lu::options chosen;
  bool best = false;
  apps::mpi::json_report json;
  chosen.add_to(options);
  options.add_flag("--best", best, "In the way that is fastest instead of the other forms' way");
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    json.open();
    apps::lu::report report{.shape = chosen.shape(apps::mpi::rank_count()),
                            .form = best ? "mpi, best" : "mpi",
                            .exchange = "send",
                            .repeats = chosen.repeats};
    state s(report.shape);
    std::vector<apps::mpi::stopwatch> watches(static_cast<std::size_t>(chosen.repeats));
    for (apps::mpi::stopwatch& watch : watches) {
      s.mine.fill(chosen.seed);
      watch.start();
      best ? factorize_best(s) : factorize(s);
      watch.stop();
    }
    apps::cpu_meter cpu;
    cpu.add([&] { part::compute_alone(report.shape, apps::mpi::rank_me()); });

    struct measured {
      double seconds;
      apps::time_split split;
    };
    std::vector<measured> all;
    for (const auto& watch : watches) all.push_back({watch.seconds(), watch.split(cpu.seconds())});
    std::ranges::sort(all, {}, &measured::seconds);
    report.seconds = all[all.size() / 2].seconds;
    report.split = all[all.size() / 2].split;
    report.fastest = all.front().seconds;
    report.found = check_all(s, chosen.seed);
    apps::mpi::say(json.readable(), report.text());
    json.write(report.json());
    const auto wrong = apps::mpi::rank_me() == 0 ? fault(report.found) : std::nullopt;
    if (apps::mpi::broadcast(!wrong)) return 0;
    throw apps::refusal(1, wrong.value_or("the factors are wrong"));
  });
}
