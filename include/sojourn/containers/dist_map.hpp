// SPDX-License-Identifier: Apache-2.0
// A hash table whose elements are dealt out over ranks.
//
//     auto seen = dist_map<std::uint64_t, long>::make();              // on all ranks together
//     finish_all([&] {
//       for (std::uint64_t key : my_keys)
//         seen.ff_update(key, [](long& times) { ++times; });          // one-way
//     });
//     std::optional<long> times = seen.find(42);                      // waits
//     for (auto& [key, times] : seen) …                               // this rank's elements
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/hash_table.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace containers {

/// One rank's part of a dist_map. Its methods are what the map does at the rank of a key.
template <class K, class V, class Hash>
class map_part {
 public:
  using table = hash_table<K, V, Hash>;

  std::optional<V> find(const K& key) const {
    const auto* const element = elements.find(key);
    return element == nullptr ? std::nullopt : std::optional<V>(element->second);
  }
  bool insert(const K& key, const V& value) {
    return elements.find_or_make(key, table::hash_of(key), value).second;
  }
  bool assign(const K& key, const V& value) {
    const auto [element, is_new] = elements.find_or_make(key, table::hash_of(key), value);
    if (!is_new) element->second = value;
    return is_new;
  }
  bool erase(const K& key) { return elements.erase(key, table::hash_of(key)); }

  template <class F, class... A>
  result_at_element<F, K, V, A...> visit(const K& key, A... arguments) {
    V& value = elements.find_or_make(key, table::hash_of(key)).first->second;
    return call_for_element<F>(key, value, std::move(arguments)...);
  }
  template <class F, class R, class... A>
  R visit_if_present(const K& key, A... arguments) {
    auto* const element = elements.find(key);
    if (element == nullptr) return R();
    if constexpr (std::is_same_v<R, bool>) {
      call_for_element<F>(key, element->second, std::move(arguments)...);
      return true;
    } else {
      return call_for_element<F>(key, element->second, std::move(arguments)...);
    }
  }

  /// Does Op to one element, or to many.
  template <class Op, class... A>
  void do_to(const K& key, A... arguments) {
    const nonblocking<> promise;
    Op::run(elements, key, table::hash_of(key), std::move(arguments)...);
  }
  template <class Op, class... A>
  void do_to_all(batch<keyed<K, A...>> items) {
    with_look_ahead(
        elements, items, [](const keyed<K, A...>& item) -> const K& { return item.key; },
        [&](const keyed<K, A...>& item, std::uint64_t hash) {
          std::apply([&](const A&... a) { Op::run(elements, item.key, hash, a...); },
                     item.arguments);
        });
  }

  table elements;
};

// What a map does at a key without an answer.
struct insert_element {
  template <class Table, class K, class V>
  static void run(Table& table, const K& key, std::uint64_t hash, const V& value) {
    table.find_or_make(key, hash, value);
  }
};
struct assign_element {
  template <class Table, class K, class V>
  static void run(Table& table, const K& key, std::uint64_t hash, const V& value) {
    const auto [element, is_new] = table.find_or_make(key, hash, value);
    if (!is_new) element->second = value;
  }
};
struct erase_element {
  template <class Table, class K>
  static void run(Table& table, const K& key, std::uint64_t hash) {
    table.erase(key, hash);
  }
};
template <class F>
struct update_element {
  template <class Table, class K, class... A>
  static void run(Table& table, const K& key, std::uint64_t hash, A... arguments) {
    call_for_element<F>(key, table.find_or_make(key, hash).first->second, std::move(arguments)...);
  }
};
template <class F>
struct update_element_if_present {
  template <class Table, class K, class... A>
  static void run(Table& table, const K& key, std::uint64_t hash, A... arguments) {
    if (auto* const element = table.find(key, hash))
      call_for_element<F>(key, element->second, std::move(arguments)...);
  }
};

}  // namespace containers

/// Keys with values, each on the rank that its key says. The map is a name of 8 bytes, which
/// travels: as an argument, in frames that migrate. Keys and values are of types that travel or are
/// marshalled. `Place` gives a number for a key; keys with the same number are on one rank. By
/// default it is the hash, which puts keys anywhere; one that gives the same number to keys which
/// are visited together saves messages (docs/containers.md).
///
/// Names say what a function does. Those that begin with ff_ send and go on: a surrounding finish
/// or finish_all waits for them, and bundles them. Those that end in _all are collective among the
/// ranks that made the map. Those that end in _here look at this rank's elements only. All others
/// wait for the rank of the key, and take a `via` first (rpc or migrate; the elements themselves
/// neither move nor are copied).
///
/// References to elements stay right until the element is erased.
///
/// What is called at an element is a lambda without captures. It takes a reference to the value, or
/// the key and that reference, and then the arguments that are passed behind the lambda. In
/// ff_update and ff_update_if_present it promises not to wait nor to send; in visits it may.
/// Errors: of all that reach another rank, rank_lost; of waiting ones, what is thrown there. The
/// finish rethrows what a one-way call throws: then the calls that arrived in the same message
/// behind it may be left out.
template <class K, class V, class Hash = std::hash<K>, class Place = Hash>
class dist_map {
  using part = containers::map_part<K, V, Hash>;

 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<const K, V>;
  using iterator = typename part::table::iterator;

  /// Names no map.
  constexpr dist_map() = default;
  /// Collective among `members`. Suspends.
  static dist_map make(const team& members = team::world()) {
    dist_map made;
    made.parts_ = make_sharded<part>(members);
    return made;
  }
  /// Collective: makes a map of what save_all() wrote to `path`, in this program, on however many
  /// ranks. Suspends. Errors, on all members: sojourn::error when the file is not a saved
  /// container, holds another type, or is incomplete or damaged.
  static dist_map load_all(const std::string& path, const team& members = team::world()) {
    return containers::load_by_calls<K, V>(
        path, "dist_map", members,
        [&](const containers::saved_container&) { return make(members); },
        [](const dist_map& made, const K& key, const V& value) { made.ff_insert(key, value); });
  }
  /// Collective. Requires: nobody uses the map any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_map&, const dist_map&) = default;

  /// The rank of a key.
  rank_t owner(const K& key) const { return containers::rank_of_key<Place>(parts_, key); }

  // These wait.

  /// A copy of the value; nothing when there is none.
  [[gnu::always_inline]] inline std::optional<V> find(via how, const K& key) const {
    return at(key).template call<&part::find>(how, key);
  }
  [[gnu::always_inline]] inline std::optional<V> find(const K& key) const {
    return find(via::unsaid, key);
  }
  /// The same, as a future. Does not wait.
  future<std::optional<V>> async_find(const K& key) const {
    return at(key).template async<&part::find>(key);
  }
  /// False when there is one already, which stays as it is.
  bool insert(const K& key, const V& value) const {
    return at(key).template call<&part::insert>(via::rpc, key, value);
  }
  /// False when there was one already, which gets this value.
  bool assign(const K& key, const V& value) const {
    return at(key).template call<&part::assign>(via::rpc, key, value);
  }
  /// False when there is none.
  bool erase(const K& key) const { return at(key).template call<&part::erase>(via::rpc, key); }
  /// Returns f(value, arguments…), called at the element, which is made as V() if there is none.
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(via how, const K& key, F, A... arguments) const {
    return at(key).template call<&part::template visit<F, A...>>(how, key, std::move(arguments)...);
  }
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(const K& key, F f, A... arguments) const {
    return visit(via::unsaid, key, f, std::move(arguments)...);
  }
  /// The same, but returns an optional, and nothing when there is no such element; or, where f
  /// returns void, whether there is one.
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit_if_present(via how, const K& key, F,
                                                      A... arguments) const {
    using R = containers::result_at_element<F, K, V, A...>;
    using found = std::conditional_t<std::is_void_v<R>, std::type_identity<bool>,
                                     std::type_identity<std::optional<R>>>::type;
    return at(key).template call<&part::template visit_if_present<F, found, A...>>(
        how, key, std::move(arguments)...);
  }
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit_if_present(const K& key, F f, A... arguments) const {
    return visit_if_present(via::unsaid, key, f, std::move(arguments)...);
  }

  // These send and go on. They suspend only when the way to a rank is full.

  /// Calls f(value, arguments…) at the element, which is made as V() if there is none.
  template <class F, class... A>
  [[gnu::always_inline]] inline void ff_update(const K& key, F, A... arguments) const {
    send<containers::update_element<F>>(key, std::move(arguments)...);
  }
  /// The same, but does nothing when there is no such element.
  template <class F, class... A>
  [[gnu::always_inline]] inline void ff_update_if_present(const K& key, F, A... arguments) const {
    send<containers::update_element_if_present<F>>(key, std::move(arguments)...);
  }
  /// As ff_update, but f may wait, call, and send in turn.
  template <class F, class... A>
  void ff_visit(const K& key, F, A... arguments) const {
    at(key).template ff<&part::template visit<F, A...>>(key, std::move(arguments)...);
  }
  [[gnu::always_inline]] inline void ff_insert(const K& key, const V& value) const {
    send<containers::insert_element>(key, V(value));
  }
  [[gnu::always_inline]] inline void ff_assign(const K& key, const V& value) const {
    send<containers::assign_element>(key, V(value));
  }
  [[gnu::always_inline]] inline void ff_erase(const K& key) const {
    send<containers::erase_element>(key);
  }

  // This rank's elements. Errors: sojourn::error on a rank that is none of those that made the map.

  /// In the order in which they came, except that new ones fill the gaps of erased ones. The loop
  /// may wait: elements that are added meanwhile may be met or not. Errors: sojourn::error when an
  /// iterator is used whose element was erased, unless another one has taken its place.
  iterator begin() const { return parts_.here().elements.begin(); }
  iterator end() const { return {}; }
  std::size_t size_here() const { return parts_.here().elements.size(); }
  /// Null when it is on another rank, or nowhere.
  V* find_here(const K& key) const {
    auto* const element = parts_.here().elements.find(key);
    return element == nullptr ? nullptr : &element->second;
  }

  // Collective.

  /// Collective: writes the map to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Requires: nobody changes the map meanwhile. Suspends. Errors, on all members: sojourn::error
  /// when a file cannot be written; then what was saved before is still there.
  void save_all(const std::string& path) const {
    containers::save_items<K, V>(path, "dist_map", 0, parts_.members(), [&](auto put) {
      for (const auto& [key, value] : *this) put(key, value);
    });
  }
  /// How many elements there are on all ranks together.
  std::size_t size_all() const { return reduce(size_here(), std::plus<>(), parts_.members()); }
  /// Removes all elements. Requires: nobody else uses the map meanwhile.
  void clear_all() const {
    barrier(parts_.members());
    parts_.here().elements.clear();
    barrier(parts_.members());
  }
  /// All elements, on the member `root`, and nothing elsewhere.
  std::vector<std::pair<K, V>> gather_all(rank_t root = 0) const {
    std::vector<std::pair<K, V>> all;
    std::vector<std::pair<K, V>> mine(begin(), end());
    for (auto& theirs : gather(std::move(mine), root, parts_.members()))
      all.insert(all.end(), std::make_move_iterator(theirs.begin()),
                 std::make_move_iterator(theirs.end()));
    return all;
  }

 private:
  [[gnu::always_inline]] inline global_ptr<part> at(const K& key) const {
    return parts_.on(owner(key));
  }
  template <class Op, class... A>
  [[gnu::always_inline]] inline void send(const K& key, A... arguments) const {
    if constexpr (containers::is_plain_item<K, A...>) {
      at(key).template ff<&part::template do_to_all<Op, A...>>(
          containers::keyed<K, A...>{key, std::tuple<A...>(std::move(arguments)...)});
    } else {
      at(key).template ff<&part::template do_to<Op, A...>>(key, std::move(arguments)...);
    }
  }

  sharded<part> parts_;
};

}  // namespace sojourn
