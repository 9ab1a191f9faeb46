// SPDX-License-Identifier: Apache-2.0
// Items without an order, each on some rank: what is still to be done, a frontier, a list of edges.
//
//     auto work = dist_bag<task>::make();
//     …
//     while (std::optional<task> t = work.pop()) do_it(*t);   // takes over others', if none is
//     here
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/activate.hpp"
#include "sojourn/calls/batch.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/hash_table.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace containers {

/// One rank's part of a dist_bag. Items have numbers, in the order in which they came; those that
/// are taken out are the first ones, or the last.
template <class T>
class bag_part {
 public:
  void push(T item) { items.push_back(std::move(item)); }
  void push_all(batch<T> more) {
    for (const T& item : more) items.push_back(item);
  }
  std::size_t size() const { return items.size(); }
  std::optional<T> pop() {
    if (items.empty()) return std::nullopt;
    std::optional<T> last(std::move(items.back()));
    items.pop_back();
    return last;
  }
  /// Half of the items: those that have been here longest.
  std::vector<T> give_half() { return give((items.size() + 1) / 2); }
  std::vector<T> give(std::size_t count) {
    const auto end = items.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<T> given(std::make_move_iterator(items.begin()), std::make_move_iterator(end));
    items.erase(items.begin(), end);
    first += count;
    return given;
  }
  void append(std::vector<T>&& more) {
    items.insert(items.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }

  std::deque<T> items;      ///< References to items outlive what happens to others.
  std::uint64_t first = 0;  ///< The number of the first of them.
  std::uint32_t turn = 0;   ///< Which member comes next.
};

}  // namespace containers

/// Items of a type that travels or is marshalled, each on the rank to which it was given. A name of
/// 8 bytes, which travels. What names say, and errors: as dist_map (dist_map.hpp). All but ff_push
/// are called on ranks that made the bag.
template <class T>
class dist_bag {
  using part = containers::bag_part<T>;
  static_assert(!std::is_same_v<T, bool>, "sojourn: instead of bool, take char as the item");

 public:
  using value_type = T;

  /// Names no bag.
  constexpr dist_bag() = default;
  /// Collective among `members`. Suspends.
  static dist_bag make(const team& members = team::world()) {
    dist_bag made;
    made.parts_ = make_sharded<part>(members);
    return made;
  }
  /// Collective: makes a bag of what save_all() wrote to `path`, in this program, on however many
  /// ranks. Suspends. Errors, on all members: sojourn::error when the file is not a saved
  /// container, holds another type, or is incomplete or damaged. Where as many members load it as
  /// have saved it, each has its own items again.
  static dist_bag load_all(const std::string& path, const team& members = team::world()) {
    std::size_t parts = 0;
    const dist_bag made = containers::load_by_calls<T>(
        path, "dist_bag", members,
        [&](const containers::saved_container& saved) {
          parts = saved.parts;
          return make(members);
        },
        [](const dist_bag& all, const T& item) { all.push_here(item); });
    if (parts < static_cast<std::size_t>(members.rank_count())) made.rebalance_all();
    return made;
  }
  /// Collective. Requires: nobody uses the bag any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_bag&, const dist_bag&) = default;

  // These send and go on.

  void ff_push(rank_t to, T item) const {
    if constexpr (travels<T> && sizeof(T) <= 128 && alignof(T) <= 8) {
      parts_.on(to).template ff<&part::push_all>(item);
    } else {
      parts_.on(to).template ff<&part::push>(std::move(item));
    }
  }
  /// To the members in turn.
  void ff_push_anywhere(T item) const {
    part& mine = parts_.here();
    mine.turn = (mine.turn + 1) % static_cast<std::uint32_t>(parts_.rank_count());
    ff_push(parts_.rank_of(static_cast<rank_t>(mine.turn)), std::move(item));
  }

  // This rank's items.

  void push_here(T item) const { parts_.here().push(std::move(item)); }
  /// The latest of them, taken out; nothing when there is none.
  std::optional<T> pop_here() const { return parts_.here().pop(); }
  /// All of them, taken out.
  std::vector<T> take_here() const { return parts_.here().give(size_here()); }
  std::size_t size_here() const { return parts_.here().size(); }

  /// Goes over this rank's items, also those that are added meanwhile, in the order in which they
  /// came. Errors: sojourn::error when the item that it is at was taken out.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = T&;
    using pointer = T*;
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;
    explicit iterator(part& of) : part_(&of), number_(of.first) {}
    reference operator*() const {
      if (number_ < part_->first || has_ended()) [[unlikely]]
        throw error("an iterator of a dist_bag is used after its item was taken out");
      return part_->items[number_ - part_->first];
    }
    pointer operator->() const { return &**this; }
    iterator& operator++() {
      number_ = std::max(number_ + 1, part_->first);
      return *this;
    }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) {
      const bool a_ended = a.has_ended();
      return a_ended == b.has_ended() && (a_ended || a.number_ == b.number_);
    }

   private:
    bool has_ended() const {
      return part_ == nullptr || number_ >= part_->first + part_->items.size();
    }

    part* part_ = nullptr;
    std::uint64_t number_ = 0;
  };
  iterator begin() const { return iterator(parts_.here()); }
  iterator end() const { return {}; }

  // This waits.

  /// An item of this rank or, when it has none, of another one, of which it takes over half of the
  /// items. Nothing when each member had none at the moment when it was asked. That does not mean
  /// that there are none: some may be on their way from one rank to another, and what is being done
  /// may make more. (docs/containers.md)
  std::optional<T> pop() const {
    const stay here;
    if (std::optional<T> mine = pop_here()) return mine;
    const auto members = static_cast<std::uint32_t>(parts_.rank_count());
    const std::uint64_t first = containers::spread_bits(++parts_.here().turn);
    for (std::uint32_t i = 0; i < members; ++i) {
      const rank_t victim = parts_.rank_of(static_cast<rank_t>((first + i) % members));
      if (victim == rank_me()) continue;
      parts_.here().append(parts_.on(victim).template call<&part::give_half>(via::rpc));
      if (std::optional<T> mine = pop_here()) return mine;
    }
    return std::nullopt;
  }

  // Collective.

  /// Collective: writes the items to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Requires: nobody changes the bag meanwhile. Suspends. Errors, on all members: sojourn::error
  /// when a file cannot be written; then what was saved before is still there.
  void save_all(const std::string& path) const {
    containers::save_items<T>(path, "dist_bag", 0, parts_.members(), [&](auto put) {
      for (const T& item : *this) put(item);
    });
  }
  /// How many items there are on all ranks.
  std::size_t size_all() const { return reduce(size_here(), std::plus<>(), parts_.members()); }
  /// Deals the items out again, so that no member has more than one more than another. Requires:
  /// nobody else uses the bag meanwhile.
  void rebalance_all() const {
    const team members = parts_.members();
    const auto count = static_cast<std::size_t>(members.rank_count());
    const std::size_t before = exclusive_scan(size_here(), 0, std::plus<>(), members);
    std::vector<std::vector<T>> to(count);
    std::size_t number = before;
    for (T& item : take_here()) to[number++ % count].push_back(std::move(item));
    for (std::vector<T>& theirs : all_to_all(std::move(to), members))
      parts_.here().append(std::move(theirs));
    barrier(members);
  }
  /// All items, on the member `root`, and nothing elsewhere. They stay in the bag, too.
  std::vector<T> gather_all(rank_t root = 0) const {
    std::vector<T> all;
    std::vector<T> mine(parts_.here().items.begin(), parts_.here().items.end());
    for (std::vector<T>& theirs : gather(std::move(mine), root, parts_.members()))
      all.insert(all.end(), std::make_move_iterator(theirs.begin()),
                 std::make_move_iterator(theirs.end()));
    return all;
  }
  /// Requires: nobody else uses the bag meanwhile.
  void clear_all() const {
    barrier(parts_.members());
    parts_.here().give(size_here());
    barrier(parts_.members());
  }

 private:
  sharded<part> parts_;
};

}  // namespace sojourn
