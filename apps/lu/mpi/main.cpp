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
        mine(l, apps::mpi::rank_me(), numbers.data()) {}

  const layout& shape() const { return mine.shape(); }
  std::size_t block() const { return shape().block_numbers(); }

  std::vector<double> numbers;
  std::vector<double> pivot_room;
  std::vector<double> visitors;
  requests receives;
  requests sends;
  part mine;
};

void send_pivot(state& s, std::size_t k) {
  s.mine.for_consumers(k, k, k,
                       [&](int to) { s.sends.send(s.mine.at(k, k), s.block(), to, pivot_tag); });
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

/// As the other forms: block by block, each as soon as it is solved. With `next_pivot_first` that
/// block is updated, factored and sent before the others are updated.
void factorize(state& s, bool next_pivot_first) {
  part& mine = s.mine;
  const auto make_pivot = [&](std::size_t k) {
    if (k == s.shape().blocks() || !mine.is_mine(k, k)) return;
    mine.factor_pivot(k);
    send_pivot(s, k);
  };
  for (std::size_t k = 0; k < s.shape().blocks(); ++k) {
    if (k == 0 || !next_pivot_first) make_pivot(k);
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
    if (next_pivot_first) {
      mine.update_next_pivot(k);
      make_pivot(k + 1);
      mine.update_others(k);
    } else {
      mine.update_inner(k, [] {});
    }
    s.sends.wait();
  }
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
  apps::command_line options(
      "The factorization of `lu` by MPI: blocks go by MPI_Isend and MPI_Irecv as soon as they are\n"
      "solved; with --best the next pivot block is made before the other blocks are updated.",
      "lu_mpi");
  apps::lu::options chosen;
  bool best = false;
  apps::mpi::json_report json;
  chosen.add_to(options);
  options.add_flag("--best", best,
                   "Use the fastest algorithm instead of the one of the other forms");
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
      factorize(s, best);
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
