// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 em3d_mpi --variant bulk
// EM3D for MPI, with the exchanges of the other forms.
#include <array>
#include <span>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "em3d/kernel/graph.hpp"
#include "em3d/kernel/options.hpp"

namespace {

using namespace apps::em3d;

/// What a rank has of the graph.
struct field {
  explicit field(const settings& s) : chosen(s), ranks(apps::mpi::rank_count()) {
    const int me = apps::mpi::rank_me();
    own = count_at(s, ranks, me);
    for (const kind k : {e, h}) {
      part p = make_part(s, ranks, me, k);
      from[k] = make_exchange(s, ranks, me, k);
      p.nodes.resize(own + from[k].ghosts());
      all[k] = std::move(p.nodes);
      weights[k] = std::move(p.weights);
      neighbours[k] = std::move(p.neighbours);
    }
  }

  std::span<node> nodes(kind k) { return {all[k].data(), own}; }
  std::span<node> ghosts(kind k, std::size_t r) {
    const auto& first = from[k].first_ghost;
    return {all[k].data() + own + first[r], first[r + 1] - first[r]};
  }
  void update(kind k) {
    update_here(nodes(k), weights[k], chosen.degree, from[other(k)].sources, all[other(k)].data());
  }
  void collect(kind k, std::size_t r, std::vector<node>& into) const {
    const std::vector<std::uint32_t>& places = from[k].given[r];
    into.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) into[i] = all[k][places[i]];
  }

  const settings chosen;
  const int ranks;
  std::uint32_t own = 0;
  std::array<std::vector<node>, 2> all;  // own, and ghosts after them
  std::array<std::vector<double>, 2> weights;
  std::array<std::vector<place>, 2> neighbours;
  std::array<exchange, 2> from;
};

static_assert(sizeof(node) == sizeof(double));
double* doubles(node* first) { return &first->value; }

constexpr int tag_ask = 1;
constexpr int tag_value = 2;
constexpr int tag_ghosts = 3;  // and the kind

/// A request and an answer for each value. Whoever waits answers the others meanwhile.
class exchange_by_requests {
 public:
  explicit exchange_by_requests(field& f) : field_(f) { listen(); }
  ~exchange_by_requests() {
    MPI_Cancel(&asked_);
    MPI_Wait(&asked_, MPI_STATUS_IGNORE);
  }

  void phase(kind k) {
    const place* from = field_.neighbours[k].data();
    const auto me = static_cast<std::uint32_t>(apps::mpi::rank_me());
    const node* here = field_.all[other(k)].data();
    update_all(field_.nodes(k), field_.weights[k], field_.chosen.degree, [&](std::size_t edge) {
      const place p = from[edge];
      return p.rank == me ? here[p.index].value : ask(other(k), p);
    });
    MPI_Request barrier;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    answer_until(barrier);
  }

 private:
  struct question {
    std::uint32_t of;
    std::uint32_t index;
  };

  double ask(kind k, place p) {
    const int owner = static_cast<int>(p.rank);
    const question q{k, p.index};
    double value = 0;
    MPI_Request coming;
    MPI_Irecv(&value, 1, MPI_DOUBLE, owner, tag_value, MPI_COMM_WORLD, &coming);
    MPI_Send(&q, sizeof q, MPI_BYTE, owner, tag_ask, MPI_COMM_WORLD);
    answer_until(coming);
    return value;
  }
  void listen() {
    MPI_Irecv(&question_, sizeof question_, MPI_BYTE, MPI_ANY_SOURCE, tag_ask, MPI_COMM_WORLD,
              &asked_);
  }
  void answer_until(MPI_Request& done) {
    for (;;) {
      MPI_Request both[] = {done, asked_};
      int which = 0;
      MPI_Status status;
      MPI_Waitany(2, both, &which, &status);
      if (which == 0) return;
      const double value = field_.all[question_.of][question_.index].value;
      listen();
      MPI_Send(&value, 1, MPI_DOUBLE, status.MPI_SOURCE, tag_value, MPI_COMM_WORLD);
    }
  }

  field& field_;
  question question_{};
  MPI_Request asked_ = MPI_REQUEST_NULL;
};

/// MPI_Get on a window for each value.
class exchange_by_window {
 public:
  explicit exchange_by_window(field& f) : field_(f) {
    const MPI_Aint bytes = static_cast<MPI_Aint>(2 * f.own * sizeof(double));
    MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &values_, &window_);
    MPI_Win_lock_all(0, window_);
    for (const kind k : {e, h}) publish(k);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~exchange_by_window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  void phase(kind k) {
    const place* from = field_.neighbours[k].data();
    const auto me = static_cast<std::uint32_t>(apps::mpi::rank_me());
    const node* here = field_.all[other(k)].data();
    update_all(field_.nodes(k), field_.weights[k], field_.chosen.degree, [&](std::size_t edge) {
      const place p = from[edge];
      if (p.rank == me) return here[p.index].value;
      const int owner = static_cast<int>(p.rank);
      const MPI_Aint at = static_cast<MPI_Aint>(
          std::uint64_t{other(k)} * count_at(field_.chosen, field_.ranks, owner) + p.index);
      double value = 0;
      MPI_Get(&value, 1, MPI_DOUBLE, owner, at, 1, MPI_DOUBLE, window_);
      MPI_Win_flush(owner, window_);
      return value;
    });
    publish(k);
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  void publish(kind k) {
    for (std::size_t i = 0; i < field_.own; ++i) {
      values_[k * field_.own + i] = field_.all[k][i].value;
    }
    MPI_Win_sync(window_);
  }

  field& field_;
  double* values_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

/// A message for each ghost, all on their way before the first is waited for. Owners know who needs
/// what, so nobody has to ask.
class exchange_by_value {
 public:
  explicit exchange_by_value(field& f) : field_(f) {}

  void phase(kind k) {
    const kind needed = other(k);
    const int tag = tag_ghosts + static_cast<int>(needed);
    pending_.clear();
    const auto post = [&](auto operation, double* value, int rank) {
      pending_.emplace_back();
      operation(value, 1, MPI_DOUBLE, rank, tag, MPI_COMM_WORLD, &pending_.back());
    };
    for (int r = 0; r < field_.ranks; ++r) {
      for (node& ghost : field_.ghosts(needed, static_cast<std::size_t>(r))) {
        post(MPI_Irecv, &ghost.value, r);
      }
    }
    for (int r = 0; r < field_.ranks; ++r) {
      for (const std::uint32_t place : field_.from[needed].given[static_cast<std::size_t>(r)]) {
        post(MPI_Isend, &field_.all[needed][place].value, r);
      }
    }
    MPI_Waitall(static_cast<int>(pending_.size()), pending_.data(), MPI_STATUSES_IGNORE);
    field_.update(k);
  }

 private:
  field& field_;
  std::vector<MPI_Request> pending_;
};

/// A message for each pair of ranks, with all values.
class exchange_in_bulk {
 public:
  explicit exchange_in_bulk(field& f) : field_(f), values_(static_cast<std::size_t>(f.ranks)) {}

  void phase(kind k) {
    const kind needed = other(k);
    const int tag = tag_ghosts + static_cast<int>(needed);
    pending_.clear();
    for (int r = 0; r < field_.ranks; ++r) {
      const auto ghosts = field_.ghosts(needed, static_cast<std::size_t>(r));
      if (ghosts.empty()) continue;
      pending_.emplace_back();
      MPI_Irecv(doubles(ghosts.data()), static_cast<int>(ghosts.size()), MPI_DOUBLE, r, tag,
                MPI_COMM_WORLD, &pending_.back());
    }
    for (int r = 0; r < field_.ranks; ++r) {
      auto& values = values_[static_cast<std::size_t>(r)];
      field_.collect(needed, static_cast<std::size_t>(r), values);
      if (values.empty()) continue;
      pending_.emplace_back();
      MPI_Isend(doubles(values.data()), static_cast<int>(values.size()), MPI_DOUBLE, r, tag,
                MPI_COMM_WORLD, &pending_.back());
    }
    MPI_Waitall(static_cast<int>(pending_.size()), pending_.data(), MPI_STATUSES_IGNORE);
    field_.update(k);
  }

 private:
  field& field_;
  std::vector<std::vector<node>> values_;  // to each rank
  std::vector<MPI_Request> pending_;
};

/// The best that we know: the same messages, as persistent requests.
class exchange_persistent {
 public:
  explicit exchange_persistent(field& f) : field_(f) {
    for (const kind k : {e, h}) {
      values_[k].resize(static_cast<std::size_t>(f.ranks));
      for (int r = 0; r < f.ranks; ++r) {
        const auto i = static_cast<std::size_t>(r);
        const int tag = tag_ghosts + static_cast<int>(k);
        if (const auto ghosts = f.ghosts(k, i); !ghosts.empty()) {
          requests_[k].emplace_back();
          MPI_Recv_init(doubles(ghosts.data()), static_cast<int>(ghosts.size()), MPI_DOUBLE, r, tag,
                        MPI_COMM_WORLD, &requests_[k].back());
        }
      }
      for (int r = 0; r < f.ranks; ++r) {
        const auto i = static_cast<std::size_t>(r);
        const int tag = tag_ghosts + static_cast<int>(k);
        f.collect(k, i, values_[k][i]);
        if (values_[k][i].empty()) continue;
        requests_[k].emplace_back();
        MPI_Send_init(doubles(values_[k][i].data()), static_cast<int>(values_[k][i].size()),
                      MPI_DOUBLE, r, tag, MPI_COMM_WORLD, &requests_[k].back());
      }
    }
  }
  ~exchange_persistent() {
    for (auto& of_kind : requests_) {
      for (MPI_Request& r : of_kind) MPI_Request_free(&r);
    }
  }

  void phase(kind k) {
    const kind needed = other(k);
    for (std::size_t r = 0; r < values_[needed].size(); ++r) {
      field_.collect(needed, r, values_[needed][r]);
    }
    auto& requests = requests_[needed];
    const int count = static_cast<int>(requests.size());
    if (count > 0) MPI_Startall(count, requests.data());
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    field_.update(k);
  }

 private:
  field& field_;
  std::array<std::vector<std::vector<node>>, 2> values_;  // to each rank; they do not move
  std::array<std::vector<MPI_Request>, 2> requests_;
};

template <class Exchange>
apps::mpi::stopwatch run_steps(field& f) {
  apps::mpi::stopwatch watch;
  Exchange exchange(f);
  const auto steps = [&](std::uint32_t count) {
    for (std::uint32_t step = 0; step < count; ++step) {
      exchange.phase(e);
      exchange.phase(h);
    }
  };
  steps(f.chosen.warm_up);
  watch.start();
  steps(f.chosen.steps);
  watch.stop();
  return watch;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Electromagnetic waves on an irregular graph (EM3D), for MPI: what em3d is compared with.\n"
      "base asks for each value with a message and answers others while it waits; ghost sends "
      "each\n"
      "value in a message of its own; bulk sends one message to each rank.",
      "em3d_mpi");
  settings chosen;
  bool best = false;
  bool window = false;
  apps::mpi::json_report json;
  add_options(options, chosen);
  options.add_flag("--best", best, "Persistent requests of one message to each rank");
  options.add_flag("--window", window, "base with MPI_Get on a window").excludes("--best");
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    const int ranks = apps::mpi::rank_count();
    const int me = apps::mpi::rank_me();
    check_settings(chosen, ranks);
    if (window && chosen.variant != "base") {
      throw apps::refusal(2, "--window: only the variant base reads values one by one");
    }
    json.open();
    field f(chosen);
    const std::string form = best ? "MPI, persistent" : window ? "MPI, window" : "MPI";
    const auto watch = best                        ? run_steps<exchange_persistent>(f)
                       : window                    ? run_steps<exchange_by_window>(f)
                       : chosen.variant == "base"  ? run_steps<exchange_by_requests>(f)
                       : chosen.variant == "ghost" ? run_steps<exchange_by_value>(f)
                                                   : run_steps<exchange_in_bulk>(f);
    values_of_rank found;
    for (const kind k : {e, h}) {
      for (const node& n : f.nodes(k)) found[k].push_back(n.value);
    }
    const std::string fault = difference(found, compute_alone(chosen, ranks, me));
    if (!fault.empty()) fmt::print(stderr, "em3d_mpi: rank {}: {}\n", me, fault);
    if (apps::mpi::sum(fault.empty() ? 0 : 1) > 0) {
      throw apps::refusal(1, "values differ from those that one loop computes");
    }
    const double seconds = watch.seconds();
    const auto split = watch.split(seconds_alone(chosen, ranks, me));
    apps::mpi::say(json.readable(), report_text(chosen, form, ranks, seconds, split));
    json.write(report_json(chosen, form, ranks, seconds, split));
    return 0;
  });
}
