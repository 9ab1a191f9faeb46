// SPDX-License-Identifier: Apache-2.0
// An array whose elements are dealt out over ranks, in blocks or in turn.
//
//     auto degree = dist_vector<long>::make(vertices);               // on all ranks together
//     finish_all([&] {
//       for (auto [u, v] : my_edges) degree.ff_update(v, [](long& d) { ++d; });
//     });
//     for (std::size_t v : degree.indices_here()) most = std::max(most, degree.here(v));
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/activate.hpp"
#include "sojourn/calls/batch.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/layouts.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/objects.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace containers {

/// One rank's part of a dist_vector.
template <class T, class Layout>
class vector_part {
 public:
  vector_part(std::size_t size_of_all, std::size_t members, std::size_t number, const T& value)
      : size(size_of_all),
        layout(size_of_all, members),
        member(number),
        count(layout.count_of(number, size_of_all)),
        elements(make_array<T>(rank_me(), count)) {
    try {
      std::fill_n(elements.local(), count, value);
    } catch (...) {
      destroy_array(elements, count);
      throw;
    }
  }
  vector_part(const vector_part&) = delete;
  vector_part& operator=(const vector_part&) = delete;
  ~vector_part() { destroy_array(elements, count); }

  T& element(std::size_t i) const { return elements.local()[layout.place_of(i, member)]; }
  T get(std::size_t i) const { return element(i); }
  void set(std::size_t i, const T& value) { element(i) = value; }
  template <class F, class... A>
  result_at_element<F, std::size_t, T, A...> visit(std::size_t i, A... arguments) {
    return call_for_element<F>(i, element(i), std::move(arguments)...);
  }
  template <class F, class... A>
  void update(std::size_t i, A... arguments) {
    const nonblocking<> promise;
    call_for_element<F>(i, element(i), std::move(arguments)...);
  }
  template <class F, class... A>
  void update_all(batch<keyed<std::size_t, A...>> items) {
    constexpr std::size_t ahead = 8;
    for (std::size_t n = 0; n < items.size(); ++n) {
      if (n + ahead < items.size()) __builtin_prefetch(&element(items[n + ahead].key), 1);
      const auto& item = items[n];
      std::apply([&](A... a) { call_for_element<F>(item.key, element(item.key), std::move(a)...); },
                 item.arguments);
    }
  }

  const std::size_t size;  ///< Of all parts together.
  const Layout layout;
  const std::size_t member;
  const std::size_t count;  ///< Of this part.
  const global_ptr<T> elements;
  std::vector<global_ptr<T>> elements_of;  ///< Those of each member.
};

}  // namespace containers

/// An array of a fixed length, dealt out over the ranks that made it: in `blocks`, or `cyclic`. A
/// name of 8 bytes, which travels. Elements are of a type that travels or is marshalled, and can be
/// made without arguments; they lie in the global heap of their rank, and at(i) points to one, for
/// one-sided access, atomic operations and calls. What names say, what is called at an element
/// (with the index in the key's place), and errors: as dist_map (dist_map.hpp). A vector is used on
/// ranks that made it. Errors: sojourn::error when there is no element i.
template <class T, class Layout = blocks>
class dist_vector {
  using part = containers::vector_part<T, Layout>;
  static_assert(!std::is_same_v<T, bool>, "sojourn: instead of bool, take char as the element");

 public:
  using value_type = T;

  /// Names no vector.
  constexpr dist_vector() = default;
  /// Collective among `members`, which pass the same `size`. Each makes its part, with copies of
  /// the value that it passes. Suspends. Errors: sojourn::error where sizes differ; std::bad_alloc,
  /// on its rank.
  static dist_vector make(std::size_t size, const T& value = T(),
                          const team& members = team::world()) {
    containers::check_same_size("dist_vector", size, members);
    dist_vector made;
    made.parts_ = make_sharded<part>(members, size, static_cast<std::size_t>(members.rank_count()),
                                     static_cast<std::size_t>(members.rank_me()), value);
    part& mine = made.parts_.here();
    mine.elements_of = all_gather(mine.elements, members);
    barrier(members);
    return made;
  }
  /// Collective: makes a vector of what save_all() wrote to `path`, in this program, on however
  /// many ranks. Suspends. Errors, on all members: sojourn::error when the file is not a saved
  /// container, holds another type, or is incomplete or damaged.
  static dist_vector load_all(const std::string& path, const team& members = team::world()) {
    return containers::load_by_calls<std::size_t, T>(
        path, "dist_vector", members,
        [&](const containers::saved_container& saved) { return make(saved.size, T(), members); },
        [](const dist_vector& made, std::size_t i, const T& value) { made.ff_set(i, value); });
  }
  /// Collective. Requires: nobody uses the vector any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_vector&, const dist_vector&) = default;

  std::size_t size() const { return parts_.here().size; }
  /// The rank of an element.
  rank_t owner(std::size_t i) const { return parts_.rank_of(member_of(parts_.here(), i)); }
  global_ptr<T> at(std::size_t i) const {
    const part& mine = parts_.here();
    const rank_t member = member_of(mine, i);
    const auto number = static_cast<std::size_t>(member);
    return mine.elements_of[number] + static_cast<std::ptrdiff_t>(mine.layout.place_of(i, number));
  }

  // These wait.

  T get(via how, std::size_t i) const { return of(i).template call<&part::get>(how, i); }
  T get(std::size_t i) const { return get(via::unsaid, i); }
  future<T> async_get(std::size_t i) const { return of(i).template async<&part::get>(i); }
  void set(std::size_t i, const T& value) const {
    of(i).template call<&part::set>(via::rpc, i, value);
  }
  /// Returns f(element, arguments…), called at the element.
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(via how, std::size_t i, F, A... arguments) const {
    return of(i).template call<&part::template visit<F, A...>>(how, i, std::move(arguments)...);
  }
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(std::size_t i, F f, A... arguments) const {
    return visit(via::unsaid, i, f, std::move(arguments)...);
  }
  /// Copies the elements from `first` on, one-sided: it does not wait for calls that change them.
  /// Requires: T travels.
  void get_range(std::size_t first, std::span<T> to) const {
    const stay here;
    const part& mine = parts_.here();
    check_range(mine, first, to.size());
    if constexpr (Layout::is_in_order) {
      while (!to.empty()) {
        const auto member = mine.layout.member_of(first);
        const std::size_t end =
            mine.layout.index_of(member, 0) + mine.layout.count_of(member, mine.size);
        const std::size_t count = std::min(to.size(), end - first);
        sojourn::get(at(first), to.first(count));
        to = to.subspan(count);
        first += count;
      }
    } else {
      std::vector<T> theirs;
      const std::size_t members = mine.elements_of.size();
      for (std::size_t k = 0; k < std::min(members, to.size()); ++k) {
        theirs.resize((to.size() - k + members - 1) / members);
        sojourn::get(at(first + k), std::span<T>(theirs));
        for (std::size_t n = 0; n < theirs.size(); ++n) to[k + n * members] = theirs[n];
      }
    }
  }

  // These send and go on. They suspend only when the way to a rank is full.

  /// Calls f(element, arguments…). It promises not to wait nor to send.
  template <class F, class... A>
  [[gnu::always_inline]] inline void ff_update(std::size_t i, F, A... arguments) const {
    if constexpr (containers::is_plain_item<std::size_t, A...>) {
      of(i).template ff<&part::template update_all<F, A...>>(
          containers::keyed<std::size_t, A...>{i, std::tuple<A...>(std::move(arguments)...)});
    } else {
      of(i).template ff<&part::template update<F, A...>>(i, std::move(arguments)...);
    }
  }
  /// The same, but f may wait, call, and send in turn.
  template <class F, class... A>
  void ff_visit(std::size_t i, F, A... arguments) const {
    of(i).template ff<&part::template visit<F, A...>>(i, std::move(arguments)...);
  }
  void ff_set(std::size_t i, T value) const {
    ff_update(i, [](T& element, const T& to) { element = to; }, std::move(value));
  }

  // This rank's elements.

  /// Errors: sojourn::error when it is on another rank.
  T& here(std::size_t i) const {
    const part& mine = parts_.here();
    if (i >= mine.size || mine.layout.member_of(i) != mine.member) [[unlikely]]
      refuse_here(mine, i);
    return mine.element(i);
  }
  containers::indices indices_here() const {
    const part& mine = parts_.here();
    return {mine.layout.index_of(mine.member, 0), mine.count,
            Layout::step(mine.elements_of.size())};
  }
  /// In the order of their indices.
  std::span<T> span_here() const {
    const part& mine = parts_.here();
    return {mine.elements.local(), mine.count};
  }
  T* begin() const { return span_here().data(); }
  T* end() const { return begin() + size_here(); }
  std::size_t size_here() const { return parts_.here().count; }

  // Collective. All require that nobody else uses the vector meanwhile. When they return, all ranks
  // have done their part.

  /// Collective: writes the elements to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Suspends. Errors, on all members: sojourn::error when a file cannot be written; then what was
  /// saved before is still there.
  void save_all(const std::string& path) const {
    containers::save_items<std::size_t, T>(path, "dist_vector", size(), parts_.members(),
                                           [&](auto put) {
                                             for (const std::size_t i : indices_here())
                                               put(i, here(i));
                                           });
  }
  void fill_all(const T& value) const {
    barrier(parts_.members());
    std::fill(begin(), end(), value);
    barrier(parts_.members());
  }
  /// op over all elements in their order; nothing when there are none. `op` is associative and has
  /// no captures.
  template <class Op>
  std::optional<T> reduce_all(Op) const {
    static_assert(Layout::is_in_order,
                  "sojourn: reduce_all and scan_all need a dist_vector in blocks");
    return reduce(sum_here<Op>(), of_either<Op>(), parts_.members());
  }
  /// Replaces each element by op over all elements up to it. `op` is associative and has no
  /// captures.
  template <class Op>
  void scan_all(Op) const {
    static_assert(Layout::is_in_order,
                  "sojourn: reduce_all and scan_all need a dist_vector in blocks");
    std::optional<T> before =
        exclusive_scan(sum_here<Op>(), std::nullopt, of_either<Op>(), parts_.members());
    for (T& element : *this) {
      before = of_either<Op>()(std::move(before), element);
      element = *before;
    }
    barrier(parts_.members());
  }
  /// Sorts the elements by `less`, which is the same everywhere. A sample of the elements says
  /// which go to which rank; where many are equal, one rank holds all of those for a while.
  template <class Less = std::less<>>
  void sort_all(Less less = {}) const {
    const team members = parts_.members();
    const auto count = static_cast<std::size_t>(members.rank_count());
    std::vector<T> mine(std::make_move_iterator(begin()), std::make_move_iterator(end()));
    std::sort(mine.begin(), mine.end(), less);

    std::vector<T> splitters = splitters_of(mine, count, less);
    std::vector<std::vector<T>> to(count);
    auto first = mine.begin();
    for (std::size_t member = 0; member < count; ++member) {
      const auto last = member < splitters.size()
                            ? std::upper_bound(first, mine.end(), splitters[member], less)
                            : mine.end();
      to[member].assign(std::make_move_iterator(first), std::make_move_iterator(last));
      first = last;
    }
    mine.clear();
    for (std::vector<T>& theirs : all_to_all(std::move(to), members)) {
      std::vector<T> merged;
      merged.reserve(mine.size() + theirs.size());
      std::merge(std::make_move_iterator(mine.begin()), std::make_move_iterator(mine.end()),
                 std::make_move_iterator(theirs.begin()), std::make_move_iterator(theirs.end()),
                 std::back_inserter(merged), less);
      mine = std::move(merged);
    }

    // Each knows now which indices its elements have; the ranks of these get them in order.
    std::size_t index = exclusive_scan(mine.size(), 0, std::plus<>(), members);
    to.assign(count, {});
    for (T& element : mine)
      to[parts_.here().layout.member_of(index++)].push_back(std::move(element));
    T* place = begin();
    for (std::vector<T>& theirs : all_to_all(std::move(to), members))
      place = std::move(theirs.begin(), theirs.end(), place);
    barrier(members);
  }
  /// All elements in their order, on the member `root`, and nothing elsewhere.
  std::vector<T> gather_all(rank_t root = 0) const {
    const part& mine = parts_.here();
    const team members = parts_.members();
    auto parts = gather(std::vector<T>(begin(), end()), root, members);
    std::vector<T> all;
    if (members.rank_me() != root) return all;
    all.reserve(mine.size);
    for (std::size_t i = 0; i < mine.size; ++i) {
      const std::size_t member = mine.layout.member_of(i);
      all.push_back(std::move(parts[member][mine.layout.place_of(i, member)]));
    }
    return all;
  }

 private:
  static rank_t member_of(const part& mine, std::size_t i) {
    if (i >= mine.size) [[unlikely]]
      refuse(mine, i);
    return static_cast<rank_t>(mine.layout.member_of(i));
  }
  [[gnu::always_inline]] inline global_ptr<part> of(std::size_t i) const {
    return parts_.on(parts_.rank_of(member_of(parts_.here(), i)));
  }
  [[noreturn]] static void refuse(const part& mine, std::size_t i) {
    throw error("a dist_vector of " + std::to_string(mine.size) + " elements has no element " +
                std::to_string(i));
  }
  [[noreturn]] static void refuse_here(const part& mine, std::size_t i) {
    if (i >= mine.size) refuse(mine, i);
    throw error("dist_vector::here(" + std::to_string(i) + ") is called on rank " +
                std::to_string(rank_me()) + ", and the element is on another one: use get or at");
  }
  static void check_range(const part& mine, std::size_t first, std::size_t count) {
    if (first > mine.size || count > mine.size - first) refuse(mine, first + count - 1);
  }

  /// Op of two values of which either may be missing.
  template <class Op>
  struct of_either {
    std::optional<T> operator()(std::optional<T> a, const std::optional<T>& b) const {
      if (!a.has_value()) return b;
      if (b.has_value()) a = Op()(std::move(*a), *b);
      return a;
    }
  };

  template <class Op>
  std::optional<T> sum_here() const {
    std::optional<T> sum;
    for (const T& element : *this) sum = of_either<Op>()(std::move(sum), element);
    return sum;
  }

  /// Elements that divide all of them into about equal parts, one less than there are members.
  template <class Less>
  std::vector<T> splitters_of(const std::vector<T>& sorted, std::size_t members, Less less) const {
    constexpr std::size_t samples_of_each = 64;
    std::vector<T> samples;
    const std::size_t wanted = std::min(sorted.size(), samples_of_each);
    for (std::size_t n = 0; n < wanted; ++n)
      samples.push_back(sorted[(2 * n + 1) * sorted.size() / (2 * wanted)]);
    std::vector<T> all;
    for (std::vector<T>& theirs : all_gather(std::move(samples), parts_.members()))
      all.insert(all.end(), std::make_move_iterator(theirs.begin()),
                 std::make_move_iterator(theirs.end()));
    std::sort(all.begin(), all.end(), less);
    std::vector<T> splitters;
    for (std::size_t n = 1; n < members && !all.empty(); ++n)
      splitters.push_back(all[n * all.size() / members]);
    return splitters;
  }

  sharded<part> parts_;
};

}  // namespace sojourn
