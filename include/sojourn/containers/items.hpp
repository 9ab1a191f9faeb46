// SPDX-License-Identifier: Apache-2.0
// What goes to the rank of a key, and how a rank handles many such items at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/batch.hpp"
#include "sojourn/calls/travels.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/hash_table.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"

namespace sojourn::containers {

/// A key, and what is to be done with its element.
template <class K, class... A>
struct keyed {
  K key;
  [[no_unique_address]] std::tuple<A...> arguments;
};

/// Such a key goes with its arguments as bytes, many in one message.
template <class K, class... A>
inline constexpr bool is_plain_item = travels<K> && (travels<A> && ...) &&
                                      sizeof(keyed<K, A...>) <= 128 && alignof(keyed<K, A...>) <= 8;

/// Calls handle(item, hash) for each item, in their order, and has the memory fetched that the next
/// ones need, so that the fetches overlap.
template <class Table, class Item, class KeyOf, class Handle>
void with_look_ahead(const Table& table, batch<Item> items, KeyOf key_of, Handle handle) {
  constexpr std::size_t ahead = 16;
  std::array<std::uint64_t, ahead> hashes;
  const std::size_t count = items.size();
  for (std::size_t i = 0; i < std::min(ahead, count); ++i) {
    hashes[i] = Table::hash_of(key_of(items[i]));
    table.prefetch(hashes[i]);
  }
  std::size_t i = 0;
  for (; i + ahead < count; ++i) {
    table.prefetch_element(hashes[(i + ahead / 2) % ahead]);
    const std::uint64_t next = Table::hash_of(key_of(items[i + ahead]));
    handle(items[i], std::exchange(hashes[i % ahead], next));
    table.prefetch(next);
  }
  for (; i < count; ++i) {
    if (i + ahead / 2 < count) table.prefetch_element(hashes[(i + ahead / 2) % ahead]);
    handle(items[i], hashes[i % ahead]);
  }
}

/// The rank that the upper half of a hash chooses.
template <class T>
[[gnu::always_inline]] inline rank_t rank_of_hash(const sharded<T>& parts, std::uint64_t hash) {
  const auto members = static_cast<std::uint64_t>(parts.rank_count());
  return parts.rank_of(static_cast<rank_t>((hash >> 32) * members >> 32));
}
/// The rank of a key: keys for which Place gives the same number are on one rank.
template <class Place, class K, class T>
[[gnu::always_inline]] inline rank_t rank_of_key(const sharded<T>& parts, const K& key) {
  return rank_of_hash(parts, spread_bits(static_cast<std::uint64_t>(Place()(key))));
}

/// Collective: throws sojourn::error on all members when they have passed different sizes.
inline void check_same_size(const char* container, std::size_t size, const team& members) {
  struct range {
    std::size_t least;
    std::size_t most;
  };
  const range all = reduce(
      range{size, size},
      [](range a, range b) { return range{std::min(a.least, b.least), std::max(a.most, b.most)}; },
      members);
  if (all.least != all.most)
    throw error(std::string("the ranks that make a ") + container + " together pass sizes from " +
                std::to_string(all.least) + " to " + std::to_string(all.most) +
                ": all must pass the same");
}

/// What a program may pass to be called at an element.
template <class F>
inline constexpr bool is_element_function =
    std::is_class_v<F> && std::is_empty_v<F> && std::is_default_constructible_v<F>;

/// Calls a program's function for an element: with the value and the arguments, or with the key in
/// front of them.
template <class F, class K, class V, class... A>
decltype(auto) call_for_element(const K& key, V& value, A&&... arguments) {
  static_assert(is_element_function<F>,
                "sojourn: what is called at an element of a container is a lambda, or an object of "
                "a class, without captures: pass what it needs as arguments behind it");
  if constexpr (!is_element_function<F>) {
    return;
  } else if constexpr (std::is_invocable_v<F, V&, A...>) {
    return F()(value, std::forward<A>(arguments)...);
  } else {
    static_assert(std::is_invocable_v<F, const K&, V&, A...>,
                  "sojourn: what is called at an element of a container takes a reference to the "
                  "value, or the key and that reference, and then the arguments that are passed");
    return F()(key, value, std::forward<A>(arguments)...);
  }
}
template <class F, class K, class V, class... A>
using result_at_element = std::decay_t<decltype(call_for_element<F>(
    std::declval<const K&>(), std::declval<V&>(), std::declval<A>()...))>;

}  // namespace sojourn::containers

namespace sojourn {

/// std::tuple is copied by a constructor.
template <class K, class... A>
inline constexpr bool travels<containers::keyed<K, A...>> = travels<K> && (travels<A> && ...);

}  // namespace sojourn
