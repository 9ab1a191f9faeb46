// SPDX-License-Identifier: Apache-2.0
//
// Parts of `sojourn bench policies`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "driver/benchmarks.hpp"

namespace bench {

inline constexpr const char* policies_group = "policies";
inline constexpr double paper_word_bytes = 4;

/// A way in which a program reaches its objects, and the options that choose it.
struct policy_row {
  std::string name;
  arguments options;
  std::uint64_t operations;
};
/// The rows of a program: one for each word of apps/common/policies.hpp, and, where it has that
/// form, `shared`.
std::vector<policy_row> policy_rows(bool has_shared_form, std::uint64_t operations);

/// A program and the options that all its rows have.
struct policy_program {
  std::string name;
  arguments options;
  std::vector<policy_row> rows;
};

struct policy_outcome {
  double per_second = 0;
  double messages = 0;  ///< An operation.
  double words = 0;
  std::optional<double> hit_rate;
};
/// All runs of a row: the same place in two rows is the same round.
struct policy_runs {
  std::string row;
  std::vector<policy_outcome> rounds;

  double per_second(double quantile_of = 0.5) const;
  double messages() const;
  double words() const;
  std::optional<double> hit_rate() const;
  std::vector<double> nanoseconds() const;
};

/// Runs the rows on so many ranks in turns, every second round in reverse order. Each run checks
/// itself. Errors: failure when one does not end well.
std::vector<policy_runs> run_in_turns(const installation& here, const policy_program& what,
                                      int ranks, int rounds);
/// Null where there is no such row.
const policy_runs* find_row(const std::vector<policy_runs>& all, const std::string& row);

nlohmann::json json_of(const policy_runs& runs, int ranks);

/// How via::automatic compares with the best of the words, which one would have to know.
class automatic_choices {
 public:
  /// `all`: the runs of a program's rows.
  void add(const std::string& program, const std::vector<policy_runs>& all);
  void add_to(report& result) const;

 private:
  struct choice {
    std::string program;
    std::string best;  ///< The word.
    comparison over_best;
  };
  std::vector<choice> all_;
};

/// What the parts measure.
struct policy_plan {
  std::vector<int> ranks;
  int rounds;  ///< On up to 4 ranks.
  bool quick;

  /// Runs of more ranks take long, because these share the cores.
  int rounds_on(int on_ranks) const { return on_ranks > 4 ? std::min(rounds, 5) : rounds; }

  /// How many operations a run has on so many ranks, of a program that does `on_four` on 4: the
  /// more ranks share the cores, the longer each takes.
  std::uint64_t operations(std::uint64_t on_four, int on_ranks) const {
    return on_four * 4 / static_cast<std::uint64_t>(on_ranks) / (quick ? 4 : 1);
  }
};

void add_policies_btree(report& result, const installation& here, const policy_plan& plan,
                        double ticks_a_ns, automatic_choices& choices);
void add_policies_network(report& result, const installation& here, const policy_plan& plan,
                          const std::filesystem::path& figures, automatic_choices& choices);
void add_policies_programs(report& result, const installation& here, const policy_plan& plan,
                           automatic_choices& choices);
/// What single accesses via::cache cost.
void add_policies_accesses(report& result, const installation& here, const settings& chosen);

}  // namespace bench
