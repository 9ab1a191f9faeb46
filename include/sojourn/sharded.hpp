// SPDX-License-Identifier: Apache-2.0
// One object on each rank, as parts of one thing: of a table, say.
//
//     sharded<table_part> table = make_sharded<table_part>();       // on all ranks together
//     table.on(owner_of(key)).call<&table_part::find>(via::migrate, key);
//
// A `sharded<T>` is a name of 8 bytes, which travels. Its objects lie in the global heap and have
// addresses, so that all words at an access, one-way calls and walks that migrate work on them. (A
// dist_object lies in the memory of its rank, has no address, and is made without the others.)
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sojourn/collectives.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/team.hpp"

namespace sojourn {

namespace detail {

/// Names a list of shards: the number-th that was made by teams whose first member is `first`.
struct shards_name {
  std::uint32_t number = 0;  ///< From 1 on; 0: none.
  std::int32_t first = 0;
  friend constexpr bool operator==(const shards_name& a, const shards_name& b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);  // one comparison
  }
};

/// What this rank knows of the lists of one first member, by their numbers; or null. A list has the
/// addresses of the shards by rank, 0 where there is none; then how many members there are, and
/// their ranks.
struct known_shards {
  const std::uint64_t* const* lists = nullptr;
  std::uint32_t count = 0;
};
/// One for each rank.
extern const known_shards* shards_known;

/// The same when this rank does not know them. Suspends. Errors: sojourn::error when there are
/// none, or none any more; rank_lost.
const std::uint64_t* find_shards(const shards_name& name);
[[gnu::always_inline]] inline const std::uint64_t* shards_of(const shards_name& name) {
  const known_shards& known = shards_known[name.first];
  if (name.number < known.count && known.lists[name.number] != nullptr) [[likely]]
    return known.lists[name.number];
  return find_shards(name);
}
/// Collective: all members get the name of their shards, of which this member's is at `mine`.
shards_name name_shards(std::uint64_t mine, const team& members);
/// Errors: sojourn::error when this rank is none of them.
team members_of_shards(const shards_name& name);
/// Collective among the members that have shards: they are found no longer.
void forget_shards(const shards_name& name);
/// Throws sojourn::error.
[[noreturn]] void refuse_shard(const shards_name& name, rank_t rank);

}  // namespace detail

/// Names the objects that the members of a team have made together, one on each. Travels. The
/// objects live until destroy(), or the end of the job.
template <class T>
class sharded {
 public:
  using element_type = T;

  /// Names none.
  constexpr sharded() = default;

  /// The object of a rank of the job. Two loads, once this rank knows where the objects are, as all
  /// members do. Suspends: at the first use on a rank that is no member. Errors: sojourn::error
  /// when that rank has none, or this names none; on members also when they were destroyed.
  [[gnu::always_inline]] inline global_ptr<T> on(rank_t rank) const {
    if (static_cast<unsigned>(rank) >= static_cast<unsigned>(detail::job.count)) [[unlikely]]
      detail::refuse_shard(name_, rank);
    const std::uint64_t address = detail::shards_of(name_)[rank];
    if (address == 0) [[unlikely]]
      detail::refuse_shard(name_, rank);
    return global_ptr<T>::at(address);
  }
  /// The same, but null where that rank has none.
  global_ptr<T> find_on(rank_t rank) const {
    if (static_cast<unsigned>(rank) >= static_cast<unsigned>(detail::job.count)) return {};
    const std::uint64_t address = detail::shards_of(name_)[rank];
    return address == 0 ? global_ptr<T>() : global_ptr<T>::at(address);
  }
  /// How many members there are, and the rank of the i-th, as in their team. Requires: 0 <= i <
  /// rank_count(). Suspend: as on().
  [[gnu::always_inline]] inline rank_t rank_count() const {
    return static_cast<rank_t>(detail::shards_of(name_)[detail::job.count]);
  }
  [[gnu::always_inline]] inline rank_t rank_of(rank_t member) const {
    return static_cast<rank_t>(detail::shards_of(name_)[detail::job.count + 1 + member]);
  }
  /// The team that made them. Errors: sojourn::error on a rank that is no member.
  team members() const { return detail::members_of_shards(name_); }
  /// This rank's object. Its type does not move then (global_ptr::local).
  T& here() const { return *on(rank_me()).local(); }

  /// Collective among the members: destroys the objects when all members have called it. Suspends.
  /// Requires: nobody calls the objects any more. Errors: as all collective operations.
  void destroy() const {
    const global_ptr<T> mine = on(rank_me());
    detail::forget_shards(name_);
    sojourn::destroy(mine);
  }

  constexpr explicit operator bool() const { return name_.number != 0; }
  friend constexpr bool operator==(const sharded&, const sharded&) = default;

  explicit constexpr sharded(const detail::shards_name& name) : name_(name) {}  // For implementers.
  const detail::shards_name& name() const { return name_; }                     // Likewise.

 private:
  detail::shards_name name_;
};

/// Collective among `members`: each makes a T(arguments…) in its heap. Suspends. Errors: what the
/// constructor throws, on its rank, while the other members wait for it; as all collective
/// operations.
template <class T, class... A>
sharded<T> make_sharded(const team& members, A&&... arguments) {
  const global_ptr<T> mine = make<T>(rank_me(), std::forward<A>(arguments)...);
  return sharded<T>(detail::name_shards(mine.address(), members));
}
/// The same on all ranks.
template <class T, class... A>
  requires(!(std::is_same_v<std::remove_cvref_t<A>, team> || ...))
sharded<T> make_sharded(A&&... arguments) {
  return make_sharded<T>(team::world(), std::forward<A>(arguments)...);
}

}  // namespace sojourn

template <class T>
struct std::hash<sojourn::sharded<T>> {
  std::size_t operator()(const sojourn::sharded<T>& shards) const {
    const sojourn::detail::shards_name& name = shards.name();
    return std::hash<std::uint64_t>()(std::uint64_t{name.number} << 32 |
                                      static_cast<std::uint32_t>(name.first));
  }
};
