// SPDX-License-Identifier: Apache-2.0
// How often each key was seen, on all ranks together.
//
//     auto words = dist_counter<std::string>::make();
//     finish_all([&] {
//       for (const std::string& word : my_words) words.ff_add(word);
//     });
//     for (auto& [word, times] : words.top_all(10)) …               // the same on every rank
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/activate.hpp"
#include "sojourn/calls/bundle.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/count_table.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/future.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/threads/thread.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace containers {

/// Counts that wait to be sent, two for each of some hashes. A cache that is rarely of use is left
/// alone for a while.
template <class K>
class count_cache {
 public:
  struct count {
    K key{};
    long times = 0;  ///< 0: there is none.
  };
  bool is_paused() { return pause_ > 0 && pause_-- > 0; }
  /// Adds a count. False when `key` and `times` are to be sent: those of another key now, which has
  /// made room.
  bool adds(K& key, std::uint64_t hash, long& times) {
    if (counts_.empty()) counts_.resize(places);
    if (++asked_ == trial) judge();
    // Two places for each hash, so that two frequent keys do not put each other out.
    count* const two = &counts_[hash % (places / 2) * 2];
    for (count* place = two; place != two + 2; ++place) {
      if (place->times == 0) {
        *place = {std::move(key), times};
        return true;
      }
      if (place->key == key) {
        place->times += times;
        ++useful_;
        return true;
      }
    }
    count& rarer = two[two[0].times < two[1].times ? 0 : 1];
    std::swap(rarer.key, key);
    std::swap(rarer.times, times);
    return false;
  }

  /// Calls send(key, times) for each count, which is forgotten.
  template <class Send>
  void empty(Send send) {
    for (count& c : counts_)
      if (c.times != 0) send(c.key, std::exchange(c.times, 0));
  }

 private:
  static constexpr std::size_t places = 4096;
  static constexpr unsigned trial = 8 * places;
  static constexpr unsigned pause = 32 * trial;

  /// Below one count in four that need not be sent, the look at the cache is taken not to pay.
  void judge() {
    if (useful_ < trial / 4) pause_ = pause;
    asked_ = 0;
    useful_ = 0;
  }

  std::vector<count> counts_;
  unsigned asked_ = 0;
  unsigned useful_ = 0;
  unsigned pause_ = 0;
};

template <class K, class Hash>
struct unsent_counts;

/// One rank's part of a dist_counter: the counts of its keys, and what this rank has counted of all
/// keys and not sent.
template <class K, class Hash>
class counter_part {
 public:
  using table = count_table<K, Hash>;
  using unsent_type = unsent_counts<K, Hash>;

  counter_part();
  ~counter_part();
  /// Of the counters of this type: the one that this rank used last; and, if it keeps counts back,
  /// for which finish.
  struct used {
    sharded<counter_part> parts;
    counter_part* mine = nullptr;
    unsent_type* unsent = nullptr;
    finish_scope scope;
  };
  static inline used last_used;

  long count(const K& key) const { return counts.count(key); }
  void add(const K& key, long times) { counts.add(key, table::hash_of(key), times); }
  void add_all(batch<keyed<K, long>> items) {
    with_look_ahead(
        counts, items, [](const keyed<K, long>& item) -> const K& { return item.key; },
        [&](const keyed<K, long>& item, std::uint64_t hash) {
          counts.add(item.key, hash, std::get<0>(item.arguments));
        });
  }
  /// Adds 1 to each.
  void add_ones(batch<K> keys) {
    with_look_ahead(
        counts, keys, [](const K& key) -> const K& { return key; },
        [&](const K& key, std::uint64_t hash) { counts.add(key, hash, 1); });
  }

  table counts;
  std::unique_ptr<unsent_type> unsent;       ///< While there may be some.
  std::unique_ptr<unsent_type> spare;        ///< To be used next.
  std::vector<std::exception_ptr> failures;  ///< Of sending counts; the finish gets them.
};

/// Keys to whose counts 1 is to be added, where they go as bytes.
template <class Part, bool AreGathered>
struct keys_of_ones {
  struct type {
    explicit type(const sharded<Part>&) {}
    void begin(finish_scope) {}
    void flush() {}
    bool fits() const { return true; }
  };
};
template <class Part>
struct keys_of_ones<Part, true> {
  using type = gathered_calls<&Part::add_ones, Part>;
};

/// What a rank has counted and not sent, in one finish.
template <class K, class Hash>
struct unsent_counts {
  using part = counter_part<K, Hash>;
  static constexpr bool are_gathered = is_plain_item<K, long>;

  explicit unsent_counts(const sharded<part>& parts)
      : members(static_cast<std::uint64_t>(parts.rank_count())), ones(parts) {
    for (rank_t i = 0; i < parts.rank_count(); ++i) ranks.push_back(parts.rank_of(i));
  }
  /// As rank_of_hash (items.hpp), without a look at the names.
  rank_t rank_of_hash(std::uint64_t hash) const { return ranks[(hash >> 32) * members >> 32]; }

  finish_scope scope;
  std::uint64_t members;
  std::vector<rank_t> ranks;  ///< Of the members.
  count_cache<K> cache;
  typename keys_of_ones<part, are_gathered>::type ones;
};

template <class K, class Hash>
counter_part<K, Hash>::counter_part() = default;
template <class K, class Hash>
counter_part<K, Hash>::~counter_part() {
  if (last_used.mine == this) last_used = {};
}

}  // namespace containers

/// Counts of keys, each on the rank that its hash says. A name of 8 bytes, which travels. Each rank
/// adds up first what it counts itself, and sends it when it needs the place, and at the end of the
/// finish; where that is rarely of use it sends at once. What names say, and errors: as dist_map
/// (dist_map.hpp), but ff_add is called on ranks that made the counter.
template <class K, class Hash = std::hash<K>>
class dist_counter {
  static_assert(std::is_default_constructible_v<K> && std::is_move_assignable_v<K>,
                "sojourn: a key of a dist_counter can be made without arguments, and assigned");
  using part = containers::counter_part<K, Hash>;
  using unsent_type = typename part::unsent_type;

 public:
  using value_type = std::pair<K, long>;
  using iterator = typename part::table::iterator;

  /// Names no counter.
  constexpr dist_counter() = default;
  /// Collective among `members`. Suspends.
  static dist_counter make(const team& members = team::world()) {
    dist_counter made;
    made.parts_ = make_sharded<part>(members);
    return made;
  }
  /// Collective: makes a counter of what save_all() wrote to `path`, in this program, on however
  /// many ranks. Suspends. Errors, on all members: sojourn::error when the file is not a saved
  /// container, holds another type, or is incomplete or damaged.
  static dist_counter load_all(const std::string& path, const team& members = team::world()) {
    return containers::load_by_calls<K, long>(
        path, "dist_counter", members,
        [&](const containers::saved_container&) { return make(members); },
        [](const dist_counter& made, const K& key, long times) { made.ff_add(key, times); });
  }
  /// Collective. Requires: nobody uses the counter any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_counter&, const dist_counter&) = default;

  rank_t owner(const K& key) const { return containers::rank_of_key<Hash>(parts_, key); }

  /// Adds to the count of a key, which begins at 0. Sends and goes on. (A key whose counts add up
  /// to 0 may come to be there, with 0, or not.)
  [[gnu::always_inline]] inline void ff_add(K key, long times = 1) const {
    if constexpr (unsent_type::are_gathered) {
      // What most calls do, in so few instructions that it can stand in the caller's loop.
      const auto& last = part::last_used;
      if (times == 1 && last.parts == parts_ && last.unsent != nullptr &&
          last.scope == finish_scope::innermost() && last.unsent->cache.is_paused()) [[likely]] {
        const std::uint64_t hash = part::table::hash_of(key);
        return last.unsent->ones.to(last.unsent->rank_of_hash(hash), key);
      }
    }
    add(std::move(key), times);
  }
  /// The same, of a key that is made from another value: from a std::string_view, say.
  template <class Source>
    requires(!std::same_as<Source, K> && std::constructible_from<K, const Source&>)
  void ff_add(const Source& key, long times = 1) const {
    ff_add(K(key), times);
  }

  /// Waits for the rank of the key. Counts that have not been sent yet are not in it.
  long count(via how, const K& key) const {
    return parts_.on(owner(key)).template call<&part::count>(how, key);
  }
  long count(const K& key) const { return count(via::unsaid, key); }
  future<long> async_count(const K& key) const {
    return parts_.on(owner(key)).template async<&part::count>(key);
  }

  /// This rank's keys with their counts. Errors: sojourn::error when an iterator is used after so
  /// many keys were added that the table has grown.
  iterator begin() const { return iterator(parts_.here().counts); }
  iterator end() const { return {}; }
  std::size_t size_here() const { return parts_.here().counts.size(); }

  // Collective.

  /// Collective: writes the counts to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Requires: nobody counts meanwhile. Suspends. Errors, on all members: sojourn::error when a
  /// file cannot be written; then what was saved before is still there.
  void save_all(const std::string& path) const {
    containers::save_items<K, long>(path, "dist_counter", 0, parts_.members(), [&](auto put) {
      for (const auto& [key, times] : *this) put(key, times);
    });
  }
  /// How many keys there are.
  std::size_t size_all() const { return reduce(size_here(), std::plus<>(), parts_.members()); }
  /// The sum of all counts.
  long total_all() const {
    long sum = 0;
    for (const auto& [key, times] : *this) sum += times;
    return reduce(sum, std::plus<>(), parts_.members());
  }
  /// The `most` keys with the greatest counts, the greatest first; of equal ones the lesser key
  /// first, where keys are ordered. The same on every rank.
  std::vector<std::pair<K, long>> top_all(std::size_t most) const {
    std::vector<std::pair<K, long>> top;
    for (auto& theirs : all_gather(first_of({begin(), end()}, most), parts_.members()))
      top.insert(top.end(), std::make_move_iterator(theirs.begin()),
                 std::make_move_iterator(theirs.end()));
    return first_of(std::move(top), most);
  }
  /// Forgets all keys. Requires: nobody else uses the counter meanwhile.
  void clear_all() const {
    barrier(parts_.members());
    parts_.here().counts.clear();
    barrier(parts_.members());
  }

 private:
  static std::vector<std::pair<K, long>> first_of(std::vector<std::pair<K, long>> counts,
                                                  std::size_t most) {
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>(std::min(most, counts.size()));
    std::partial_sort(counts.begin(), end, counts.end(), [](const auto& a, const auto& b) {
      if (a.second != b.second) return a.second > b.second;
      if constexpr (std::totally_ordered<K>) {
        return a.first < b.first;
      } else {
        return false;
      }
    });
    counts.erase(end, counts.end());
    return counts;
  }

  /// parts_.here(), but for the counter that was used last it is at hand.
  part& here() const {
    auto& last = part::last_used;
    if (last.parts != parts_ || !parts_) [[unlikely]]
      last = {parts_, &parts_.here(), nullptr, {}};
    return *last.mine;
  }

  /// ff_add().
  [[gnu::noinline]] void add(K key, long times) const {
    if (times == 0) return;
    unsent_type* unsent = here().unsent.get();
    const finish_scope scope = finish_scope::innermost();
    if (unsent == nullptr || unsent->scope != scope) [[unlikely]] {
      unsent = begin(scope);
      if (unsent == nullptr) return send(key, times);
    }
    (void)here();  // another counter may have been used while begin() waited
    part::last_used.unsent = unsent;
    part::last_used.scope = scope;
    std::uint64_t hash = part::table::hash_of(key);
    if (!unsent->cache.is_paused()) {
      if (unsent->cache.adds(key, hash, times)) return;
      hash = part::table::hash_of(key);  // another key now
    }
    if constexpr (unsent_type::are_gathered) {
      if (times == 1) return unsent->ones.to(unsent->rank_of_hash(hash), key);
    }
    send(key, times);
  }

  void send(const K& key, long times) const {
    const global_ptr<part> to = parts_.on(owner(key));
    if constexpr (!containers::is_plain_item<K, long>) {
      to.template ff<&part::add>(key, times);
    } else if (times == 1) {
      to.template ff<&part::add_ones>(key);
    } else {
      to.template ff<&part::add_all>(containers::keyed<K, long>{key, {times}});
    }
  }

  /// Where counts of this finish are kept back; null when another one has some here. The finish
  /// waits for a thread, which sends them when this rank has nothing else to do.
  [[gnu::noinline]] unsent_type* begin(finish_scope scope) const {
    const stay on_this_rank;  // where spawn may wait
    part& mine = here();
    // In a window each count is a call by itself, which has to be sent to be over.
    if (!scope || scope.has_window() || mine.unsent != nullptr) return nullptr;
    if (mine.spare != nullptr && !mine.spare->ones.fits()) mine.spare.reset();
    mine.unsent = std::exchange(mine.spare, nullptr);
    if (mine.unsent == nullptr) mine.unsent = std::make_unique<unsent_type>(parts_);
    mine.unsent->scope = scope;
    mine.unsent->ones.begin(scope);
    std::exception_ptr failure;
    try {
      spawn({.name = "counts to be sent", .pinned = true}, send_unsent, *this).detach();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure != nullptr) {
      send_unsent(*this);  // what other fibers have counted meanwhile
      std::rethrow_exception(failure);
    }
    // It may have been sent already.
    return mine.unsent != nullptr && mine.unsent->scope == scope ? mine.unsent.get() : nullptr;
  }
  /// What is thrown goes to the finish; what a lost rank was to get is left out.
  static void send_unsent(dist_counter counter) {
    const stay here;
    part& mine = counter.parts_.here();
    // Others count meanwhile, perhaps in another finish: not in these.
    std::unique_ptr<unsent_type> unsent = std::move(mine.unsent);
    if (part::last_used.mine == &mine) part::last_used.unsent = nullptr;
    std::exception_ptr failure;
    const auto try_to = [&](auto send) {
      try {
        send();
      } catch (...) {
        if (failure == nullptr) failure = std::current_exception();
      }
    };
    unsent->cache.empty(
        [&](const K& key, long times) { try_to([&] { counter.send(key, times); }); });
    try_to([&] { unsent->ones.flush(); });
    if (failure == nullptr) {
      mine.spare = std::move(unsent);
      return;
    }
    mine.failures.push_back(failure);
    rpc_ff(rank_me(), throw_failure, counter);
  }
  static void throw_failure(dist_counter counter) {
    auto& failures = counter.parts_.here().failures;
    const std::exception_ptr failure = failures.back();
    failures.pop_back();
    std::rethrow_exception(failure);
  }

  sharded<part> parts_;
};

}  // namespace sojourn
