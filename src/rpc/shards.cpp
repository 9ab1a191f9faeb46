// SPDX-License-Identifier: Apache-2.0
#include "rpc/shards.hpp"

#include <algorithm>
#include <memory_resource>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/sharded.hpp"

namespace sojourn::detail {

namespace {

constexpr rank_t first_member = 0;

/// The objects of a name, on a rank that is one of the members, or has asked.
struct list_of_shards {
  std::pmr::vector<std::uint64_t> by_rank{runtime_resource()};
  team members;  ///< If this rank is one.
  bool is_destroyed = false;
};
/// Of one first member; a name's number is an index.
struct numbered_lists {
  std::pmr::vector<list_of_shards> all{1, runtime_resource()};
  /// What accesses look at: null where nothing is known, or nothing is left.
  std::pmr::vector<const std::uint64_t*> addresses{1, nullptr, runtime_resource()};
};
std::pmr::vector<numbered_lists>* by_first = nullptr;
std::pmr::vector<known_shards>* known = nullptr;

numbered_lists& lists_of(rank_t first) { return (*by_first)[static_cast<std::size_t>(first)]; }

void make_room_for(const shards_name& name) {
  numbered_lists& lists = lists_of(name.first);
  if (lists.all.size() > name.number) return;
  lists.all.resize(name.number + std::size_t{1});
  lists.addresses.resize(lists.all.size(), nullptr);
  (*known)[static_cast<std::size_t>(name.first)] = {
      lists.addresses.data(), static_cast<std::uint32_t>(lists.addresses.size())};
}

void note(const shards_name& name, const std::vector<std::uint64_t>& by_rank, const team& members) {
  make_room_for(name);
  numbered_lists& lists = lists_of(name.first);
  list_of_shards& list = lists.all[name.number];
  list.by_rank.assign(by_rank.begin(), by_rank.end());
  list.members = members;
  lists.addresses[name.number] = list.by_rank.data();
}

bool is_known(const shards_name& name) {
  const numbered_lists& lists = lists_of(name.first);
  return name.number < lists.addresses.size() && lists.addresses[name.number] != nullptr;
}

/// None when there are no such objects any more.
std::vector<std::uint64_t> addresses_here(const shards_name& name) {
  if (!is_known(name)) return {};
  const auto& by_rank = lists_of(name.first).all[name.number].by_rank;
  return {by_rank.begin(), by_rank.end()};
}

[[noreturn]] void refuse_destroyed(const shards_name& name) {
  throw error(format(
      "a container, or a sharded, is used after it was destroyed (number %u of those whose first "
      "member is rank %d)",
      name.number, name.first));
}

void check_name(const shards_name& name) {
  if (by_first == nullptr) throw error("a sharded is used outside of run()");
  if (name.number == 0)
    throw error(
        "this container, or sharded, was not made: take it from make or load_all, or from "
        "make_sharded");
}

constexpr known_shards nothing_known;

}  // namespace

const known_shards* shards_known = &nothing_known;

void attach_shards() {
  const auto ranks = static_cast<std::size_t>(job.count);
  by_first = new (runtime_memory(sizeof *by_first))
      std::pmr::vector<numbered_lists>(ranks, runtime_resource());
  known =
      new (runtime_memory(sizeof *known)) std::pmr::vector<known_shards>(ranks, runtime_resource());
  shards_known = known->data();
}

const std::uint64_t* find_shards(const shards_name& name) {
  check_name(name);
  const auto& lists = lists_of(name.first).all;
  // The first member knows those that there are.
  if (name.first == job.me || (name.number < lists.size() && lists[name.number].is_destroyed))
    refuse_destroyed(name);
  const std::vector<std::uint64_t> all = rpc(name.first, addresses_here, name).get();
  if (all.empty()) refuse_destroyed(name);
  if (!is_known(name)) note(name, all, team());  // another fiber may have asked, too
  return lists_of(name.first).addresses[name.number];
}

shards_name name_shards(std::uint64_t mine, const team& members) {
  struct of_member {
    std::uint64_t address;
    shards_name name;
  };
  of_member me{mine, {}};
  if (members.rank_me() == first_member) {
    me.name = {static_cast<std::uint32_t>(lists_of(job.me).all.size()), job.me};
    make_room_for(me.name);  // another fiber gets another number
  }
  const std::vector<of_member> all = all_gather(me, members);
  const shards_name name = all.front().name;
  std::vector<std::uint64_t> by_rank(static_cast<std::size_t>(job.count), 0);
  by_rank.push_back(all.size());
  for (rank_t member = 0; member < members.rank_count(); ++member)
    by_rank[static_cast<std::size_t>(members[member])] =
        all[static_cast<std::size_t>(member)].address;
  for (rank_t member = 0; member < members.rank_count(); ++member)
    by_rank.push_back(static_cast<std::uint64_t>(members[member]));
  note(name, by_rank, members);
  // Who gets the name from a member finds that the others know it.
  barrier(members);
  return name;
}

team members_of_shards(const shards_name& name) {
  check_name(name);
  if (!is_known(name)) refuse_destroyed(name);
  team members = lists_of(name.first).all[name.number].members;
  if (members.rank_count() == 0)
    throw error(
        format("an operation of all ranks that made a sharded is called on rank %d, which is none "
               "of them",
               job.me));
  return members;
}

void forget_shards(const shards_name& name) {
  const team members = members_of_shards(name);
  barrier(members);
  lists_of(name.first).addresses[name.number] = nullptr;
  list_of_shards gone;
  gone.is_destroyed = true;
  lists_of(name.first).all[name.number] = std::move(gone);
}

void refuse_shard(const shards_name& name, rank_t rank) {
  check_name(name);
  if (rank < 0 || rank >= job.count)
    throw error(format("sharded::on(%d): this job has ranks 0 to %d", rank, job.count - 1));
  throw error(format(
      "a container, or a sharded, has nothing on rank %d, which is none of those that made it",
      rank));
}

}  // namespace sojourn::detail
