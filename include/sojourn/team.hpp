// SPDX-License-Identifier: Apache-2.0
// Teams: ordered subsets of the ranks, among which collective operations are done.
#pragma once

#include <utility>

#include "sojourn/rank.hpp"

namespace sojourn {

namespace detail {
/// What each rank knows of a team; the runtime keeps more behind it.
struct team_view {
  int me = 0;     ///< The number of this rank in the team.
  int count = 0;  ///< How many ranks the team has.
};
void hold_team(team_view* record);
void drop_team(team_view* record);
int rank_of_member(const team_view& record, int member);
int member_of_rank(const team_view& record, int rank);
}  // namespace detail

/// An ordered subset of the ranks. Its members have numbers in it, 0 … rank_count() - 1; the root
/// of a collective operation of a team is such a number. Copies of a team are the same team. A team
/// ends with its last copy, on each rank by itself; operations that were begun before are
/// completed. A team belongs to its rank, as a std::vector does: another rank cannot use it.
class team {
 public:
  /// A team without members: rank_count() is 0.
  team() = default;
  team(const team& other) noexcept : record_(other.record_) { hold(); }
  team(team&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  team& operator=(team other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~team() {
    if (record_ != nullptr) detail::drop_team(record_);
  }

  /// All ranks of the job, each with its own number.
  static const team& world();

  /// The number of this rank in the team; -1 if the team has no members.
  rank_t rank_me() const { return record_ != nullptr ? record_->me : -1; }
  /// How many ranks the team has.
  rank_t rank_count() const { return record_ != nullptr ? record_->count : 0; }
  /// The rank of a member. Requires: 0 <= member < rank_count(). Errors: sojourn::error.
  rank_t operator[](rank_t member) const;
  /// The number in this team of a rank of the job; -1 when that is not a member.
  rank_t from_world(rank_t rank) const;

  /// Collective among this team: makes a team of those that pass the same colour, ordered by `key`
  /// and, where keys are equal, by their numbers in this team. A rank whose colour is negative gets
  /// a team without members. Suspends. Errors: as all collective operations.
  [[nodiscard]] team split(int colour, int key = 0) const;

  /// True for copies of one team.
  friend bool operator==(const team& a, const team& b) { return a.record_ == b.record_; }

  /// For implementers: takes over a record that counts this team already.
  explicit constexpr team(detail::team_view* record) : record_(record) {}
  detail::team_view* record() const { return record_; }

 private:
  void hold() const {
    if (record_ != nullptr) detail::hold_team(record_);
  }

  detail::team_view* record_ = nullptr;
};

namespace detail {
/// Never destroyed, because objects that are destroyed after main may still ask for the team.
union never_destroyed_team {
  team all;
  constexpr explicit never_destroyed_team(team_view* record) : all(record) {}
  never_destroyed_team(const never_destroyed_team&) = delete;
  never_destroyed_team& operator=(const never_destroyed_team&) = delete;
  ~never_destroyed_team() {}
};
extern never_destroyed_team team_of_all;
}  // namespace detail

inline const team& team::world() { return detail::team_of_all.all; }

}  // namespace sojourn
