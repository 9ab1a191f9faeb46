// SPDX-License-Identifier: Apache-2.0
// mpirun -n 4 water_mpi --variant prefetch
// Water for MPI, with the exchanges of the other forms.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "common/mpi/application.hpp"
#include "water/kernel/molecules.hpp"
#include "water/kernel/options.hpp"

namespace {

using namespace apps::water;

/// What a rank has of the system.
struct simulation {
  explicit simulation(const settings& s)
      : chosen(s),
        ranks(apps::mpi::rank_count()),
        space(s),
        near(s, ranks, apps::mpi::rank_me()),
        moving(s, near.first, near.own),
        positions(near.slots()),
        forces(near.slots()) {}

  std::span<sites> own_positions() { return std::span(positions).first(near.own); }
  std::span<sites> own_forces() { return std::span(forces).first(near.own); }
  double predict() {
    std::fill(forces.begin() + near.own, forces.end(), sites{});
    return moving.predict(own_positions(), own_forces());
  }

  const settings chosen;
  const int ranks;
  const box space;
  const neighbourhood near;
  motion moving;
  std::vector<sites> positions;  // by slot
  std::vector<sites> forces;
};

constexpr int sites_doubles = 9;
static_assert(sizeof(sites) == sites_doubles * sizeof(double));
double* doubles(sites* first) { return first->at[0].data(); }

constexpr int tag_position = 1;
constexpr int tag_force = 2;
constexpr int tag_asked = 3;

/// A request and an answer for each molecule that a pair needs, a message for each force. Whoever
/// waits answers the others meanwhile.
class exchange_by_requests {
 public:
  explicit exchange_by_requests(simulation& sim)
      : sim_(sim),
        sent_(static_cast<std::size_t>(sim.ranks)),
        expected_(static_cast<std::size_t>(sim.ranks)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &requests_);
    listen();
  }
  ~exchange_by_requests() {
    MPI_Cancel(&incoming_);
    MPI_Wait(&incoming_, MPI_STATUS_IGNORE);
    MPI_Comm_free(&requests_);
  }

  energies step() {
    const settings& s = sim_.chosen;
    const neighbourhood& near = sim_.near;
    energies e;
    e.intra = sim_.predict();
    barrier();
    bool in_reach = false;
    for (std::uint32_t i = 0; i < near.own; ++i) {
      for (std::uint32_t k = 1; k <= partners(s, near.first + i); ++k) {
        const std::uint32_t j = (near.first + i + k) % s.molecules;
        const std::uint32_t slot = near.slot_of[j];
        if (slot < near.own) {
          e.inter += interact(sim_.space, sim_.positions[i], sim_.positions[slot], sim_.forces[i],
                              sim_.forces[slot], &in_reach);
          continue;
        }
        const int owner = owner_of(s, sim_.ranks, j);
        const sites position = ask(owner, j);
        message m{j, {}};
        e.inter +=
            interact(sim_.space, sim_.positions[i], position, sim_.forces[i], m.force, &in_reach);
        if (!in_reach) continue;
        ++sent_[static_cast<std::size_t>(owner)];
        MPI_Send(&m, sizeof m, MPI_BYTE, owner, tag_force, requests_);
      }
    }
    // Who takes part in this has done its last read.
    MPI_Request counts;
    MPI_Ialltoall(sent_.data(), 1, MPI_INT, expected_.data(), 1, MPI_INT, MPI_COMM_WORLD, &counts);
    answer_until(counts);
    int expected = 0;
    for (const int n : expected_) expected += n;
    while (arrived_ < expected) answer_one();
    arrived_ = 0;
    std::ranges::fill(sent_, 0);
    e.kinetic = sim_.moving.correct(sim_.own_forces());
    return e;
  }

 private:
  struct message {
    std::uint64_t molecule;
    sites force;
  };

  sites ask(int owner, std::uint64_t molecule) {
    sites position;
    MPI_Request coming;
    MPI_Irecv(doubles(&position), sites_doubles, MPI_DOUBLE, owner, tag_position, MPI_COMM_WORLD,
              &coming);
    MPI_Send(&molecule, sizeof molecule, MPI_BYTE, owner, tag_asked, requests_);
    answer_until(coming);
    return position;
  }
  void barrier() {
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    answer_until(all);
  }
  void listen() {
    MPI_Irecv(&incoming_message_, sizeof incoming_message_, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
              requests_, &incoming_);
  }
  void answer_until(MPI_Request& done) {
    for (;;) {
      MPI_Request both[] = {done, incoming_};
      int which = 0;
      MPI_Status status;
      MPI_Waitany(2, both, &which, &status);
      if (which == 0) return;
      answer(status);
    }
  }
  void answer_one() {
    MPI_Status status;
    MPI_Wait(&incoming_, &status);
    answer(status);
  }
  void answer(const MPI_Status& status) {
    const message m = incoming_message_;
    listen();
    const std::size_t place = m.molecule - sim_.near.first;
    if (status.MPI_TAG == tag_force) {
      sim_.forces[place] += m.force;
      ++arrived_;
      return;
    }
    MPI_Send(doubles(&sim_.positions[place]), sites_doubles, MPI_DOUBLE, status.MPI_SOURCE,
             tag_position, MPI_COMM_WORLD);
  }

  simulation& sim_;
  std::vector<int> sent_;
  std::vector<int> expected_;
  int arrived_ = 0;
  message incoming_message_{};
  MPI_Request incoming_ = MPI_REQUEST_NULL;
  MPI_Comm requests_ = MPI_COMM_NULL;  // apart from answers
};

/// A message to each rank with all positions that it needs, and one back with all forces.
class exchange_in_bulk {
 public:
  /// `persistent`: the best that we know; the requests are made once.
  exchange_in_bulk(simulation& sim, bool persistent)
      : sim_(sim),
        persistent_(persistent),
        positions_(static_cast<std::size_t>(sim.ranks)),
        forces_(static_cast<std::size_t>(sim.ranks)) {
    for (std::size_t r = 0; r < forces_.size(); ++r) {
      positions_[r].resize(sim.near.given[r].size());
      forces_[r].resize(sim.near.given[r].size());
    }
    if (persistent_) {
      post_positions(MPI_Recv_init, MPI_Send_init);
      post_forces(MPI_Recv_init, MPI_Send_init);
    }
  }
  ~exchange_in_bulk() {
    if (!persistent_) return;
    for (auto* requests : {&position_requests_, &force_requests_}) {
      for (MPI_Request& r : *requests) MPI_Request_free(&r);
    }
  }
  exchange_in_bulk(const exchange_in_bulk&) = delete;
  exchange_in_bulk& operator=(const exchange_in_bulk&) = delete;

  energies step() {
    const neighbourhood& near = sim_.near;
    energies e;
    e.intra = sim_.predict();
    for (std::size_t r = 0; r < positions_.size(); ++r) {
      sites* value = positions_[r].data();
      for (const std::uint32_t place : near.given[r]) *value++ = sim_.positions[place];
    }
    begin(position_requests_, [&] { post_positions(MPI_Irecv, MPI_Isend); });
    const auto pairs = [&](with which) {
      return add_pairs(sim_.chosen, sim_.space, near, which, sim_.positions, sim_.forces);
    };
    e.inter = pairs(with::own);
    end(position_requests_);
    e.inter += pairs(with::others);
    begin(force_requests_, [&] { post_forces(MPI_Irecv, MPI_Isend); });
    end(force_requests_);
    for (std::size_t r = 0; r < forces_.size(); ++r) {
      const sites* force = forces_[r].data();
      for (const std::uint32_t place : near.given[r]) sim_.forces[place] += *force++;
    }
    e.kinetic = sim_.moving.correct(sim_.own_forces());
    return e;
  }

 private:
  template <class Operation>
  static void post(std::vector<MPI_Request>& requests, Operation operation, std::span<sites> values,
                   std::size_t rank, int tag) {
    if (values.empty()) return;
    requests.emplace_back();
    operation(doubles(values.data()), static_cast<int>(values.size()) * sites_doubles, MPI_DOUBLE,
              static_cast<int>(rank), tag, MPI_COMM_WORLD, &requests.back());
  }
  std::span<sites> slots_of(std::vector<sites>& all, std::size_t r) {
    return std::span(all).subspan(sim_.near.first_slot[r], sim_.near.wanted[r].size());
  }
  template <class Receive, class Send>
  void post_positions(Receive receive, Send send) {
    for (std::size_t r = 0; r < positions_.size(); ++r) {
      post(position_requests_, receive, slots_of(sim_.positions, r), r, tag_position);
      post(position_requests_, send, positions_[r], r, tag_position);
    }
  }
  template <class Receive, class Send>
  void post_forces(Receive receive, Send send) {
    for (std::size_t r = 0; r < forces_.size(); ++r) {
      post(force_requests_, receive, forces_[r], r, tag_force);
      post(force_requests_, send, slots_of(sim_.forces, r), r, tag_force);
    }
  }
  template <class Post>
  void begin(std::vector<MPI_Request>& requests, Post post_all) {
    if (!persistent_) {
      requests.clear();
      post_all();
    } else if (!requests.empty()) {
      MPI_Startall(static_cast<int>(requests.size()), requests.data());
    }
  }
  static void end(std::vector<MPI_Request>& requests) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

  simulation& sim_;
  const bool persistent_;
  std::vector<std::vector<sites>> positions_;  // to each rank
  std::vector<std::vector<sites>> forces_;     // from each rank
  std::vector<MPI_Request> position_requests_;
  std::vector<MPI_Request> force_requests_;
};

struct outcome {
  apps::mpi::stopwatch watch;
  energies last;
};

template <class Step>
outcome run_steps(const settings& s, Step step) {
  outcome r;
  const auto steps = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const energies mine = step();
      double sum[] = {mine.intra, mine.inter, mine.kinetic};
      MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      r.last = {sum[0], sum[1], sum[2]};
    }
  };
  steps(s.warm_up);
  r.watch.start();
  steps(s.steps);
  r.watch.stop();
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Liquid water by molecular dynamics, for MPI: what water is compared with. atomic asks for\n"
      "each molecule with a message and answers others while it waits; prefetch sends one message\n"
      "to each rank.",
      "water_mpi");
  settings chosen;
  bool best = false;
  apps::mpi::json_report json;
  add_options(options, chosen);
  options.add_flag("--best", best, "prefetch with persistent requests");
  json.add_to(options);

  return apps::mpi::run_application(options, argc, argv, [&]() -> int {
    const int ranks = apps::mpi::rank_count();
    const int me = apps::mpi::rank_me();
    check_settings(chosen, ranks);
    json.open();
    simulation sim(chosen);
    outcome r;
    if (best || chosen.variant == "prefetch") {
      exchange_in_bulk exchange(sim, best);
      r = run_steps(chosen, [&] { return exchange.step(); });
    } else {
      exchange_by_requests exchange(sim);
      r = run_steps(chosen, [&] { return exchange.step(); });
    }
    const reference wanted = compute_alone(chosen, ranks, me);
    const std::string fault = difference(chosen, r.last, sim.own_positions(), wanted);
    if (!fault.empty()) fmt::print(stderr, "water_mpi: rank {}: {}\n", me, fault);
    if (apps::mpi::sum(fault.empty() ? 0 : 1) > 0) {
      throw apps::refusal(1, "energies or positions differ from those that one loop computes");
    }
    const std::string form = best ? "MPI, persistent" : "MPI";
    const double seconds = r.watch.seconds();
    const auto split = r.watch.split(wanted.seconds);
    apps::mpi::say(json.readable(), report_text(chosen, form, ranks, seconds, r.last, split));
    json.write(report_json(chosen, form, ranks, seconds, r.last, split));
    return 0;
  });
}
