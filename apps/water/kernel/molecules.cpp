// SPDX-License-Identifier: Apache-2.0
#include "water/kernel/molecules.hpp"

#include <algorithm>
#include <cmath>

#include "common/cpu_clock.hpp"
#include "common/random.hpp"

namespace apps::water {
namespace {

// SPC/Fw, in Å, kcal/mol, elementary charges and radians.
constexpr double bond_length = 1.012;
constexpr double bond_strength = 1059.162;
constexpr double angle_rest = 113.24 * 3.14159265358979323846 / 180;
constexpr double angle_strength = 75.90;
constexpr double charge[] = {-0.82, 0.41, 0.41};
constexpr double sigma2 = 3.165492 * 3.165492;
constexpr double epsilon = 0.1554253;
constexpr double coulomb = 332.06371;
constexpr double mass[] = {15.9994, 1.00794, 1.00794};
// Of kcal/mol/Å/u in Å/fs².
constexpr double acceleration = 4.184e-4;
constexpr double boltzmann = 1.987204e-3;

constexpr double spacing = 3.104;  // Å, that of liquid water when all places are taken
constexpr double reach = 2.6;      // Å: atoms are no further from each other than oxygens, and this

// Gear's coefficients for second-order equations, seven values.
constexpr double corrector[] = {863.0 / 6048, 665.0 / 1008, 1,        25.0 / 36,
                                35.0 / 144,   1.0 / 24,     1.0 / 360};

using vector = std::array<double, 3>;

vector operator-(const vector& a, const vector& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
double dot(const vector& a, const vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
void add(vector& to, double factor, const vector& what) {
  for (std::size_t x = 0; x < 3; ++x) to[x] += factor * what[x];
}

/// To the nearest integer; numbers here are small.
inline double rounded(double x) {
  constexpr double big = 6755399441055744.0;  // 1.5 × 2^52
  return (x + big) - big;
}

/// How many molecules lie along a side.
std::uint32_t lattice(const settings& s) {
  std::uint32_t n = 1;
  while (n * n * n < s.molecules) ++n;
  return n;
}

/// Forces of bonds and angle. Returns their energy.
double act_inside(const sites& p, sites& force) {
  double energy = 0;
  std::array<vector, 2> arm;
  std::array<double, 2> length{};
  for (std::size_t i = 0; i < 2; ++i) {
    arm[i] = p.at[i + 1] - p.at[0];
    length[i] = std::sqrt(dot(arm[i], arm[i]));
    const double stretch = length[i] - bond_length;
    energy += 0.5 * bond_strength * stretch * stretch;
    const double pull = bond_strength * stretch / length[i];
    add(force.at[i + 1], -pull, arm[i]);
    add(force.at[0], pull, arm[i]);
  }
  const double cosine = std::clamp(dot(arm[0], arm[1]) / (length[0] * length[1]), -1.0, 1.0);
  const double angle = std::acos(cosine);
  const double bend = angle - angle_rest;
  energy += 0.5 * angle_strength * bend * bend;
  // The derivative of the angle by an arm, times what drives it back.
  const double drive = angle_strength * bend / std::max(std::sqrt(1 - cosine * cosine), 1e-9);
  for (std::size_t i = 0; i < 2; ++i) {
    vector turn{};
    add(turn, drive / (length[0] * length[1]), arm[1 - i]);
    add(turn, -drive * cosine / (length[i] * length[i]), arm[i]);
    add(force.at[i + 1], 1, turn);
    add(force.at[0], -1, turn);
  }
  return energy;
}

}  // namespace

box::box(const settings& s) : side(spacing * lattice(s)), per_side(1 / side) {
  const double cutoff = side / 2;
  cutoff2 = cutoff * cutoff;
  skip2 = (cutoff + reach) * (cutoff + reach);
  field = 1 / (cutoff * cutoff * cutoff);
  field_offset = 1.5 / cutoff;
}

std::uint32_t first_at(const settings& s, int ranks, int rank) {
  return static_cast<std::uint32_t>(std::uint64_t{s.molecules} * static_cast<std::uint64_t>(rank) /
                                    static_cast<std::uint64_t>(ranks));
}

int owner_of(const settings& s, int ranks, std::uint32_t molecule) {
  int rank =
      static_cast<int>(std::uint64_t{molecule} * static_cast<std::uint64_t>(ranks) / s.molecules);
  while (molecule >= first_at(s, ranks, rank + 1)) ++rank;
  while (molecule < first_at(s, ranks, rank)) --rank;
  return rank;
}

double interact(const box& b, const sites& p, const sites& q, sites& force_p, sites& force_q,
                bool* in_reach) {
  const auto apart = [&](std::size_t i, std::size_t j) {
    vector d = p.at[i] - q.at[j];
    for (double& x : d) x -= b.side * rounded(x * b.per_side);
    return d;
  };
  const vector oxygens = apart(0, 0);
  const double r2_oxygens = dot(oxygens, oxygens);
  *in_reach = r2_oxygens < b.skip2;
  if (!*in_reach) return 0;
  double energy = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const vector d = apart(i, j);
      const double r2 = dot(d, d);
      if (r2 >= b.cutoff2) continue;
      const double charges = coulomb * charge[i] * charge[j];
      const double per_r = 1 / std::sqrt(r2);
      const double per_r2 = per_r * per_r;
      energy += charges * (per_r + 0.5 * b.field * r2 - b.field_offset);
      double push = charges * (per_r * per_r2 - b.field);
      if (i == 0 && j == 0) {
        const double s6 = sigma2 * per_r2 * (sigma2 * per_r2) * (sigma2 * per_r2);
        energy += 4 * epsilon * (s6 * s6 - s6);
        push += 24 * epsilon * (2 * s6 * s6 - s6) * per_r2;
      }
      add(force_p.at[i], push, d);
      add(force_q.at[j], -push, d);
    }
  }
  return energy;
}

motion::motion(const settings& s, std::uint32_t first, std::uint32_t count)
    : step_(s.step_fs), side_(box(s).side), molecules_(count) {
  const std::uint32_t n = lattice(s);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t molecule = first + i;
    random_source random(mix64((std::uint64_t{s.seed} << 32) + molecule));
    // Oxygens on a lattice; neighbours look in opposite directions.
    const std::array<std::uint32_t, 3> cell{molecule % n, molecule / n % n, molecule / (n * n)};
    const double way = (cell[0] + cell[1] + cell[2]) % 2 == 0 ? 1 : -1;
    for (std::size_t a = 0; a < 3; ++a) {
      atom& moving = molecules_[i][a];
      moving = {};
      for (std::size_t x = 0; x < 3; ++x) moving[0][x] = (cell[x] + 0.5) * spacing;
      if (a > 0) {
        const double half = angle_rest / 2;
        moving[0][0] += way * bond_length * std::cos(half);
        moving[0][1] += (a == 1 ? 1 : -1) * bond_length * std::sin(half);
      }
      // Maxwell's distribution, from sums of twelve even ones.
      const double speed = std::sqrt(boltzmann * s.kelvin / mass[a] * acceleration);
      for (std::size_t x = 0; x < 3; ++x) {
        double even = -6;
        for (int k = 0; k < 12; ++k) even += random.fraction();
        moving[1][x] = speed * even * step_;
      }
    }
  }
}

double motion::predict(std::span<sites> positions, std::span<sites> forces) {
  double energy = 0;
  for (std::size_t m = 0; m < molecules_.size(); ++m) {
    for (std::size_t a = 0; a < 3; ++a) {
      atom& d = molecules_[m][a];
      for (std::size_t k = 0; k + 1 < orders; ++k) {
        for (std::size_t l = orders - 1; l > k; --l) {
          for (std::size_t x = 0; x < 3; ++x) d[l - 1][x] += d[l][x];
        }
      }
    }
    for (std::size_t x = 0; x < 3; ++x) {
      // A molecule that leaves the box comes in on the other side.
      const double out = std::floor(molecules_[m][0][0][x] / side_) * side_;
      for (std::size_t a = 0; a < 3; ++a) {
        molecules_[m][a][0][x] -= out;
        positions[m].at[a][x] = molecules_[m][a][0][x];
      }
    }
    forces[m] = sites{};
    energy += act_inside(positions[m], forces[m]);
  }
  return energy;
}

double motion::correct(std::span<const sites> forces) {
  double kinetic = 0;
  for (std::size_t m = 0; m < molecules_.size(); ++m) {
    for (std::size_t a = 0; a < 3; ++a) {
      atom& d = molecules_[m][a];
      const double factor = 0.5 * step_ * step_ * acceleration / mass[a];
      for (std::size_t x = 0; x < 3; ++x) {
        const double missing = factor * forces[m].at[a][x] - d[2][x];
        for (std::size_t k = 0; k < orders; ++k) d[k][x] += corrector[k] * missing;
        const double velocity = d[1][x] / step_;
        kinetic += 0.5 * mass[a] / acceleration * velocity * velocity;
      }
    }
  }
  return kinetic;
}

namespace {

/// Places of each rank's molecules that pairs of `rank` need.
std::vector<std::vector<std::uint32_t>> wanted_by(const settings& s, int ranks, int rank) {
  std::vector<char> needed(s.molecules);
  const std::uint32_t first = first_at(s, ranks, rank);
  const std::uint32_t end = first_at(s, ranks, rank + 1);
  for (std::uint32_t i = first; i < end; ++i) {
    for (std::uint32_t k = 1; k <= partners(s, i); ++k) needed[(i + k) % s.molecules] = 1;
  }
  std::vector<std::vector<std::uint32_t>> wanted(static_cast<std::size_t>(ranks));
  for (std::uint32_t j = 0; j < s.molecules; ++j) {
    if (!needed[j] || (j >= first && j < end)) continue;
    const int owner = owner_of(s, ranks, j);
    wanted[static_cast<std::size_t>(owner)].push_back(j - first_at(s, ranks, owner));
  }
  return wanted;
}

}  // namespace

neighbourhood::neighbourhood(const settings& s, int ranks, int rank)
    : first(first_at(s, ranks, rank)),
      own(count_at(s, ranks, rank)),
      slot_of(s.molecules, none),
      wanted(wanted_by(s, ranks, rank)) {
  for (std::uint32_t i = 0; i < own; ++i) slot_of[first + i] = i;
  std::uint32_t slot = own;
  for (int r = 0; r < ranks; ++r) {
    first_slot.push_back(slot);
    for (const std::uint32_t place : wanted[static_cast<std::size_t>(r)]) {
      slot_of[first_at(s, ranks, r) + place] = slot++;
    }
    const auto theirs = wanted_by(s, ranks, r);
    std::uint32_t before = count_at(s, ranks, r);
    for (int q = 0; q < rank; ++q) {
      before += static_cast<std::uint32_t>(theirs[static_cast<std::size_t>(q)].size());
    }
    given_slot.push_back(before);
    given.push_back(r == rank ? std::vector<std::uint32_t>{}
                              : theirs[static_cast<std::size_t>(rank)]);
  }
  first_slot.push_back(slot);
}

double add_pairs(const settings& s, const box& b, const neighbourhood& n, with which,
                 std::span<const sites> positions, std::span<sites> forces) {
  double energy = 0;
  bool in_reach = false;
  for (std::uint32_t i = 0; i < n.own; ++i) {
    const std::uint32_t count = partners(s, n.first + i);
    for (std::uint32_t k = 1; k <= count; ++k) {
      std::uint32_t j = n.first + i + k;
      if (j >= s.molecules) j -= s.molecules;
      const std::uint32_t slot = n.slot_of[j];
      if ((slot < n.own) != (which == with::own)) continue;
      energy += interact(b, positions[i], positions[slot], forces[i], forces[slot], &in_reach);
    }
  }
  return energy;
}

reference compute_alone(const settings& s, int ranks, int rank) {
  const box b(s);
  motion all(s, 0, s.molecules);
  std::vector<sites> positions(s.molecules);
  std::vector<sites> forces(s.molecules);
  const std::uint32_t first = first_at(s, ranks, rank);
  const std::uint32_t own = count_at(s, ranks, rank);
  const double share = static_cast<double>(own) / s.molecules;
  reference r;
  bool in_reach = false;
  for (std::uint32_t step = 0; step < s.all_steps(); ++step) {
    energies e;
    const double start = cpu_seconds_now();
    e.intra = all.predict(positions, forces);
    double took = (cpu_seconds_now() - start) * share;
    const auto pairs_of = [&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t i = begin; i < end; ++i) {
        for (std::uint32_t k = 1; k <= partners(s, i); ++k) {
          const std::uint32_t j = (i + k) % s.molecules;
          e.inter += interact(b, positions[i], positions[j], forces[i], forces[j], &in_reach);
        }
      }
    };
    pairs_of(0, first);
    const double mine = cpu_seconds_now();
    pairs_of(first, first + own);
    took += cpu_seconds_now() - mine;
    pairs_of(first + own, s.molecules);
    const double end = cpu_seconds_now();
    e.kinetic = all.correct(forces);
    took += (cpu_seconds_now() - end) * share;
    if (step >= s.warm_up) r.seconds += took;
    if (step == s.warm_up) r.first = e;
    r.last = e;
  }
  r.positions.assign(positions.begin() + first, positions.begin() + first + own);
  return r;
}

std::string difference(const settings& s, const energies& found, std::span<const sites> positions,
                       const reference& wanted) {
  // Sums are added up in another order, and what comes of that grows with time.
  constexpr double tolerance = 1e-9;
  const energies& e = wanted.last;
  const double scale = std::abs(e.intra) + std::abs(e.inter) + std::abs(e.kinetic);
  const auto differs = [&](double a, double b) { return !(std::abs(a - b) <= tolerance * scale); };
  const auto says = [](const char* what, double a, double b) {
    return std::string("the ") + what + " energy is " + std::to_string(a) +
           " kcal/mol, but one loop computes " + std::to_string(b);
  };
  if (differs(found.intra, e.intra)) return says("intramolecular", found.intra, e.intra);
  if (differs(found.inter, e.inter)) return says("intermolecular", found.inter, e.inter);
  if (differs(found.kinetic, e.kinetic)) return says("kinetic", found.kinetic, e.kinetic);
  const double side = box(s).side;
  if (positions.size() != wanted.positions.size()) return "the number of molecules differs";
  for (std::size_t m = 0; m < positions.size(); ++m) {
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t x = 0; x < 3; ++x) {
        // One of the two may have come in on the other side.
        double d = positions[m].at[a][x] - wanted.positions[m].at[a][x];
        d -= side * rounded(d / side);
        if (!(std::abs(d) <= tolerance * side)) {
          return "molecule " + std::to_string(m) + " is " + std::to_string(d) +
                 " angstroms from where one loop puts it";
        }
      }
    }
  }
  return "";
}

}  // namespace apps::water
