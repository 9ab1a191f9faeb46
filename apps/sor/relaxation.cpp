// SPDX-License-Identifier: Apache-2.0
#include "sor/relaxation.hpp"

#include "common/fault.hpp"

namespace apps::sor {
namespace {

using sojourn::future;
using sojourn::global_ptr;
using index = std::uint32_t;

struct point {
  double value = 0;
  double next = 0;

  double read() const { return value; }
};

/// The points of all ranks; this one's lie here.
class grid {
 public:
  /// Collective. Suspends.
  explicit grid(const settings& s)
      : chosen_(s),
        where_(s, sojourn::rank_count()),
        own_(sojourn::make_array<point>(sojourn::rank_me(), where_.count_at(sojourn::rank_me()))) {
    for (const index row : where_.rows_at(sojourn::rank_me())) {
      for (const index column : where_.columns_at(sojourn::rank_me())) {
        own(row, column).value = first_value(s, row, column);
      }
    }
    // Nobody has another's address before its values are there.
    of_rank_ = sojourn::all_gather(own_);
  }
  ~grid() { sojourn::destroy_array(own_, where_.count_at(sojourn::rank_me())); }
  grid(const grid&) = delete;
  grid& operator=(const grid&) = delete;

  /// Collective. Suspends.
  void iterate() {
    for_each_point([this](index row, index column) {
      const auto value_of = [this](index r, index c) { return at(r, c).call<&point::read>(); };
      const double north = value_of(row - 1, column);
      const double west = value_of(row, column - 1);
      const double east = value_of(row, column + 1);
      const double south = value_of(row + 1, column);
      point& mine = own(row, column);
      mine.next = relaxed(mine.value, north, west, east, south);
    });
    for_each_point([this](index row, index column) {
      point& mine = own(row, column);
      mine.value = mine.next;
    });
  }

  /// What differs from one loop's values in this rank's points.
  std::string difference() {
    const std::vector<double> wanted = compute_alone(chosen_);
    for (const index row : where_.rows_at(sojourn::rank_me())) {
      for (const index column : where_.columns_at(sojourn::rank_me())) {
        const double found = own(row, column).value;
        const double right = wanted[std::size_t{row} * chosen_.size + column];
        if (found != right) {
          return fmt::format(
              "the point in row {} and column {} has the value {}, but one loop "
              "computes {}",
              row, column, found, right);
        }
      }
    }
    return {};
  }

 private:
  global_ptr<point> at(index row, index column) const {
    return of_rank_[where_.rank_of(row, column)] +
           static_cast<std::ptrdiff_t>(where_.place_of(row, column));
  }
  point& own(index row, index column) { return own_.local()[where_.place_of(row, column)]; }

  /// A child for each point of this rank that is not on the border. Those of a row are a set: all
  /// of them have begun before any is waited for. All ranks have ended on return.
  template <class Body>
  void for_each_point(const Body& body) {
    std::vector<future<void>> children;
    for (const index row : where_.rows_at(sojourn::rank_me())) {
      if (is_border(chosen_, row)) continue;
      for (const index column : where_.columns_at(sojourn::rank_me())) {
        if (is_border(chosen_, column)) continue;
        children.push_back(sojourn::fork([&body, row, column] { body(row, column); }));
      }
      join(children);
    }
    sojourn::barrier();
  }

  settings chosen_;
  layout where_;
  global_ptr<point> own_;
  std::vector<global_ptr<point>> of_rank_;
};

}  // namespace

result relax(const settings& chosen) {
  grid points(chosen);
  for (std::uint32_t i = 0; i < chosen.warm_up; ++i) points.iterate();
  execution_meter meter;
  meter.start();
  for (std::uint32_t i = 0; i < chosen.iterations; ++i) {
    points.iterate();
    meter.lap();
  }
  const executions measured = meter.stop();
  return {measured, first_fault(points.difference())};
}

}  // namespace apps::sor
