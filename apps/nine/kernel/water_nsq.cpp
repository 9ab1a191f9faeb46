// SPDX-License-Identifier: Apache-2.0
// Water by forces between all pairs of molecules, O(n²), in the manner of SPLASH-2's
// Water-Nsquared. Thread t has the t-th part of the molecules and moves them. It computes the pairs
// of each of them with the half of all molecules that comes next, so that each pair is computed
// once. Forces are added up in memory of its own, and then to the shared ones, under a lock for
// each molecule.
#include <algorithm>
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/share.hpp"
#include "nine/kernel/water_program.hpp"

namespace apps::nine {
namespace water {
namespace {

class water_nsq final : public program {
 public:
  using program::program;

  void prepare(machine& m) override {
    positions_ = m.array<sites>(in_.molecules(), "positions");
    velocities_ = m.array<sites>(in_.molecules(), "velocities");
    forces_ = m.array<sites>(in_.molecules(), "forces");
    history_ = m.array<energies>(in_.steps + 1, "energies");
  }

  void run(machine& m, int thread) override {
    const share mine = share_of(in_.molecules(), m.threads(), thread);
    for (std::size_t i = mine.first; i < mine.end; ++i) {
      positions_[i] = first_position(in_, i);
      velocities_[i] = first_velocity(i);
    }
    std::vector<sites> pushes;
    for (std::size_t step = 0;; ++step) {
      energies e;
      for (std::size_t i = mine.first; i < mine.end; ++i) {
        forces_[i] = {};
        e.intra += act_inside(positions_[i], forces_[i]);
      }
      m.barrier(thread);
      pushes.assign(in_.molecules(), {});
      e.inter = add_pairs(mine, pushes);
      // Threads begin with their own molecules and so seldom wait for each other.
      const std::size_t own = mine.end - mine.first;
      const std::size_t touched =
          own == 0 ? 0 : std::min(own + in_.molecules() / 2, in_.molecules());
      for (std::size_t k = 0; k < touched; ++k) {
        const std::size_t i = (mine.first + k) % in_.molecules();
        m.lock(thread, lock_of(i));
        forces_[i] += pushes[i];
        m.unlock(thread, lock_of(i));
      }
      m.barrier(thread);
      for (std::size_t i = mine.first; i < mine.end; ++i) {
        if (step > 0) kick(velocities_[i], forces_[i], in_.step_fs / 2);
        e.kinetic += kinetic_energy(velocities_[i]);
      }
      m.lock(thread, energy_lock);
      history_[step] += e;
      m.unlock(thread, energy_lock);
      if (step == in_.steps) return;
      for (std::size_t i = mine.first; i < mine.end; ++i) {
        kick(velocities_[i], forces_[i], in_.step_fs / 2);
        drift(in_, positions_[i], velocities_[i], in_.step_fs);
      }
    }
  }

  results gather() const override {
    return {{positions_.begin(), positions_.end()},
            {velocities_.begin(), velocities_.end()},
            {history_.begin(), history_.end()}};
  }

 private:
  static constexpr int energy_lock = machine::locks_max - 1;
  static int lock_of(std::size_t molecule) { return static_cast<int>(molecule) % energy_lock; }

  /// Adds the forces of the pairs of a thread's molecules, and returns their energy.
  double add_pairs(const share& mine, std::vector<sites>& forces) const {
    const std::size_t n = in_.molecules();
    const interaction act(in_);
    double energy = 0;
    for (std::size_t i = mine.first; i < mine.end; ++i) {
      // With an even number the molecule opposite is a partner of one of the two only.
      const std::size_t partners = (n - 1) / 2 + (n % 2 == 0 && i < n / 2 ? 1 : 0);
      for (std::size_t k = 1; k <= partners; ++k) {
        const std::size_t j = i + k < n ? i + k : i + k - n;
        energy += act(positions_[i], positions_[j], forces[i], forces[j]);
      }
    }
    return energy;
  }

  std::span<sites> positions_;
  std::span<sites> velocities_;
  std::span<sites> forces_;
  std::span<energies> history_;
};

}  // namespace

std::unique_ptr<program> make_water_nsq(const input& in) { return std::make_unique<water_nsq>(in); }

}  // namespace water

std::unique_ptr<application> make_water_nsq(problem_size size) {
  return water::make_water_nsq(size == problem_size::small
                                   ? water::input{.per_side = 6, .cutoff = 9.3, .steps = 20}
                                   : water::input{.per_side = 8, .cutoff = 12.4, .steps = 300});
}

}  // namespace apps::nine
