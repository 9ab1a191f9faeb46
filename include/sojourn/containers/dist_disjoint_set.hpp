// SPDX-License-Identifier: Apache-2.0
// Which elements belong together: disjoint sets of 0 … n - 1, joined by all ranks.
//
//     const auto sets = dist_disjoint_set<>::make(vertices);           // on all ranks together
//     for (auto [u, v] : my_edges) sets.unite_here(u, v);              // no message
//     sets.compress_all();
//     for (auto [v, root] : sets) …                                    // this rank's elements
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sojourn/collectives.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/layouts.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace containers {

/// Disjoint sets of 0 … n - 1 on one rank. The least member of a set is its root. Memory is used
/// for the pages of elements that were joined, until they are taken apart.
template <class Index>
class local_forest {
 public:
  explicit local_forest(std::size_t size) : size_(size) {}

  /// Joins the sets of two elements, whose parents are mostly the same already. Where they are not,
  /// the element with the greater parent gets the lesser one instead, and the next look is at the
  /// parent that it had (Rem's algorithm).
  [[gnu::always_inline]] inline void unite(Index a, Index b) {
    if (less_ == nullptr) [[unlikely]] {
      if (a == b) return;
      allocate();
    }
    Index* const less = less_.get();
    Index above_a = a - less[a];
    Index above_b = b - less[b];
    while (above_a != above_b) {
      if (above_a < above_b) {
        std::swap(a, b);
        std::swap(above_a, above_b);
      }
      less[a] = a - above_b;
      if (a == above_a) return note_joined(a);
      a = above_a;
      above_a = a - less[a];
    }
  }
  /// How many elements were joined to a lesser one.
  std::size_t joined() const { return joined_; }
  /// Calls see(i, root) for each element that was joined to a lesser one, the least first. Then all
  /// are alone again.
  template <class See>
  void take_apart(See see) {
    Index* const less = less_.get();
    for (std::size_t block = 0; block < touched_.size(); ++block) {
      if (touched_[block] == 0) continue;
      const std::size_t end = std::min(size_, (block + 1) * elements_of_a_block);
      for (std::size_t at = block * elements_of_a_block; at < end; ++at) {
        if (less[at] == 0) continue;
        // The parent is less than its child: its own parent is the root already.
        const auto i = static_cast<Index>(at);
        const Index parent = i - less[i];
        const Index root = parent - less[parent];
        less[i] = i - root;
        see(i, root);
      }
    }
    std::vector<char>().swap(touched_);
    less_.reset();
    joined_ = 0;
  }

 private:
  static constexpr std::size_t elements_of_a_block = 4096 / sizeof(Index);

  struct freed {
    void operator()(void* p) const { std::free(p); }
  };
  [[gnu::noinline]] void allocate() {
    touched_.resize((size_ + elements_of_a_block - 1) / elements_of_a_block);
    // Zeros that nobody has touched take no memory, where there are many.
    less_.reset(static_cast<Index*>(std::calloc(size_, sizeof(Index))));
    if (less_ == nullptr) throw std::bad_alloc();
  }
  void note_joined(Index i) {
    touched_[i / elements_of_a_block] = 1;
    ++joined_;
  }

  std::size_t size_;
  /// By how much the parent of each is less; 0: it is a root. Null: all are alone.
  std::unique_ptr<Index[], freed> less_;
  std::vector<char> touched_;  ///< 1 for each block in which some were joined to a lesser one.
  std::size_t joined_ = 0;
};

/// One rank's part of a dist_disjoint_set.
template <class Index, class Layout>
class disjoint_set_part {
 public:
  disjoint_set_part(std::size_t size_of_all, std::size_t members, std::size_t number)
      : size(size_of_all),
        layout(size_of_all, members),
        member(number),
        parents(layout.count_of(number, size_of_all)),
        joined_here(size_of_all) {
    for (std::size_t place = 0; place < parents.size(); ++place)
      parents[place] = static_cast<Index>(layout.index_of(number, place));
  }
  ~disjoint_set_part() {
    if (last_used.mine == this) last_used = {};
  }
  /// Of the sets of this type: those in which this rank joined elements last.
  struct used {
    sharded<disjoint_set_part> parts;
    disjoint_set_part* mine = nullptr;
  };
  static inline used last_used;

  bool is_here(std::size_t i) const { return layout.member_of(i) == member; }
  Index& parent(std::size_t i) { return parents[layout.place_of(i, member)]; }
  Index parent(std::size_t i) const { return parents[layout.place_of(i, member)]; }
  /// The parent, or whichever is behind it on this rank.
  Index ancestor(std::size_t i) const {
    for (;;) {
      const Index above = parent(i);
      if (above == i || !is_here(above)) return above;
      i = above;
    }
  }

  const std::size_t size;  ///< Of all parts together.
  const Layout layout;
  const std::size_t member;
  std::vector<Index> parents;       ///< Of the elements of this rank; at most the element itself.
  local_forest<Index> joined_here;  ///< What the other ranks do not know yet.
};

/// Goes over this rank's elements.
template <class Index, class Layout>
class disjoint_set_iterator {
  using part = disjoint_set_part<Index, Layout>;

 public:
  struct member {
    Index element;
    Index root;
  };
  using value_type = member;
  using difference_type = std::ptrdiff_t;
  using reference = member;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;

  disjoint_set_iterator() = default;
  disjoint_set_iterator(const part& of, std::size_t place) : of_(&of), place_(place) {}
  member operator*() const {
    return {static_cast<Index>(of_->layout.index_of(of_->member, place_)), of_->parents[place_]};
  }
  disjoint_set_iterator& operator++() {
    ++place_;
    return *this;
  }
  disjoint_set_iterator operator++(int) {
    const disjoint_set_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const disjoint_set_iterator& a, const disjoint_set_iterator& b) {
    return a.place_ == b.place_;
  }

 private:
  const part* of_ = nullptr;
  std::size_t place_ = 0;
};

}  // namespace containers

/// Disjoint sets of 0 … n - 1, each element on a rank: in turn, or in `blocks`. A name of 8 bytes,
/// which travels. Ranks join elements on their own, in memory: none of that is sent before
/// compress_all(), which makes one of what all ranks have joined. Until that ends, a rank that has
/// joined some uses up to sizeof(Index) bytes for each element that there is (for many elements:
/// only the pages in which it has joined some). In compress_all() it tells the ranks of these
/// elements what it has joined them to, which takes up to six times sizeof(Index) for each, here
/// and there. `Index` is std::uint64_t where there are more than four thousand million. What names
/// say, and errors: as dist_map (dist_map.hpp). Used on ranks that made it. Errors: sojourn::error
/// when there is no element i.
///
/// Source: Rem's algorithm (Dijkstra, A Discipline of Programming, 1976), whose links lead from the
/// greater to the lesser element, so that they can be joined in any order.
template <class Index = std::uint32_t, class Layout = cyclic>
class dist_disjoint_set {
  static_assert(std::unsigned_integral<Index>, "sojourn: an element is an unsigned integer");
  using part = containers::disjoint_set_part<Index, Layout>;

 public:
  using iterator = containers::disjoint_set_iterator<Index, Layout>;

  /// Names no sets.
  constexpr dist_disjoint_set() = default;
  /// Collective among `members`, which pass the same `size`: each element is alone. Suspends.
  /// Errors: sojourn::error when Index is too small for so many; std::bad_alloc, on its rank.
  static dist_disjoint_set make(std::size_t size, const team& members = team::world()) {
    if (size > 0 && size - 1 > std::numeric_limits<Index>::max())
      throw error("a dist_disjoint_set of " + std::to_string(size) +
                  " elements needs a greater type for them: dist_disjoint_set<std::uint64_t>");
    containers::check_same_size("dist_disjoint_set", size, members);
    dist_disjoint_set made;
    made.parts_ = make_sharded<part>(members, size, static_cast<std::size_t>(members.rank_count()),
                                     static_cast<std::size_t>(members.rank_me()));
    return made;
  }
  /// Collective: makes a dist_disjoint_set of what save_all() wrote to `path`, in this program, on
  /// however many ranks. Suspends. Errors, on all members: sojourn::error when the file is not a
  /// saved container, holds another type, or is incomplete or damaged.
  static dist_disjoint_set load_all(const std::string& path, const team& members = team::world()) {
    const dist_disjoint_set made = containers::load_by_calls<Index, Index>(
        path, "dist_disjoint_set", members,
        [&](const containers::saved_container& saved) { return make(saved.size, members); },
        [](const dist_disjoint_set& sets, Index i, Index root) { sets.unite_here(i, root); });
    made.compress_all();
    return made;
  }
  /// Collective. Requires: nobody uses the sets any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_disjoint_set&, const dist_disjoint_set&) = default;

  /// How many elements there are.
  std::size_t size() const { return parts_.here().size; }
  rank_t owner(std::size_t i) const {
    const part& mine = check(i);
    return parts_.rank_of(static_cast<rank_t>(mine.layout.member_of(i)));
  }

  /// Joins the sets of two elements, on whichever rank they are: on this rank at once, for the
  /// others with compress_all(). Does not suspend.
  [[gnu::always_inline]] inline void unite_here(std::size_t a, std::size_t b) const {
    if (part::last_used.parts != parts_ || !parts_) [[unlikely]]
      use();
    part& mine = check(*part::last_used.mine, std::max(a, b));
    mine.joined_here.unite(static_cast<Index>(a), static_cast<Index>(b));
  }

  // What follows tells what was joined before compress_all(), and nothing later.

  /// The least element of the set. Waits for the rank of the element.
  std::size_t root(via how, std::size_t i) const {
    return parts_.on(owner(i)).template call<&part::ancestor>(how, i);
  }
  std::size_t root(std::size_t i) const { return root(via::unsaid, i); }
  /// Two elements are in one set. Waits.
  bool same(std::size_t a, std::size_t b) const { return root(a) == root(b); }
  /// Errors: sojourn::error when the element is on another rank.
  std::size_t root_here(std::size_t i) const {
    const part& mine = check(i);
    if (!mine.is_here(i))
      throw error("dist_disjoint_set::root_here(" + std::to_string(i) + ") is called on rank " +
                  std::to_string(rank_me()) + ", and the element is on another one: use root");
    return mine.parent(i);
  }
  /// This rank's elements, each with its root: for (auto [element, root] : sets).
  iterator begin() const { return {parts_.here(), 0}; }
  iterator end() const { return {parts_.here(), size_here()}; }
  std::size_t size_here() const { return parts_.here().parents.size(); }

  // Collective.

  /// How many sets there are.
  std::size_t count_all() const {
    std::size_t roots = 0;
    for (const auto& [element, root] : *this) roots += element == root ? 1 : 0;
    return reduce(roots, std::plus<>(), parts_.members());
  }
  /// Collective: writes the sets to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Calls compress_all() first. Suspends. Errors, on all members: sojourn::error when a file
  /// cannot be written; then what was saved before is still there.
  void save_all(const std::string& path) const {
    compress_all();
    containers::save_items<Index, Index>(
        path, "dist_disjoint_set", size(), parts_.members(), [&](auto put) {
          for (const auto& [element, root] : *this)
            if (element != root) put(static_cast<Index>(element), static_cast<Index>(root));
        });
  }
  /// Makes one of what all ranks have joined: now each element has its root. Requires: nobody else
  /// uses the sets meanwhile. Suspends.
  void compress_all() const {
    const team members = parts_.members();
    part& mine = parts_.here();
    join_all(mine, members);
    find_roots(mine, members);
  }

 private:
  using lists = std::vector<std::vector<Index>>;

  [[gnu::noinline]] void use() const { part::last_used = {parts_, &parts_.here()}; }
  part& check(std::size_t i) const { return check(parts_.here(), i); }
  [[gnu::always_inline]] static inline part& check(part& mine, std::size_t i) {
    if (i >= mine.size) [[unlikely]]
      refuse(mine, i);
    return mine;
  }
  [[noreturn, gnu::noinline]] static void refuse(const part& mine, std::size_t i) {
    throw error("a dist_disjoint_set of " + std::to_string(mine.size) +
                " elements has no element " + std::to_string(i));
  }
  static bool is_any(bool here, const team& members) {
    return reduce(here ? 1 : 0, std::plus<>(), members) > 0;
  }

  /// Links an element of this rank to a lesser one. What it was linked to is in the same set then:
  /// both are joined on this rank, for the next round.
  static void link(part& mine, Index i, Index to) {
    Index& parent = mine.parent(i);
    if (parent != i && parent != to) mine.joined_here.unite(parent, to);
    parent = std::min(parent, to);
  }
  /// Each round sends of each element that has a lesser one in its set, as this rank knows, which
  /// is the least of them. It ends because what goes on to the next round is less than the element.
  static void join_all(part& mine, const team& members) {
    const auto count = static_cast<std::size_t>(members.rank_count());
    while (is_any(mine.joined_here.joined() > 0, members)) {
      lists to(count);
      // Room for a pair for each element, if they are evenly spread, and an eighth more.
      for (std::vector<Index>& theirs : to)
        theirs.reserve(mine.joined_here.joined() / count * 9 / 4 + 16);
      mine.joined_here.take_apart([&](Index i, Index root) {
        std::vector<Index>& theirs = to[mine.layout.member_of(i)];
        theirs.push_back(i);
        theirs.push_back(root);
      });
      for (const std::vector<Index>& pairs : all_to_all(std::move(to), members))
        for (std::size_t k = 0; k < pairs.size(); k += 2) link(mine, pairs[k], pairs[k + 1]);
    }
  }
  /// Each round asks the ranks of the parents for the parents of these, or for a root, if they have
  /// it. They have moved up meanwhile, too, so that few rounds find the roots.
  static void find_roots(part& mine, const team& members) {
    const auto count = static_cast<std::size_t>(members.rank_count());
    // Gives the element at a place the parent of its parent, if the parent is of this rank. True
    // when that is a root. Places are in the order of the elements, and parents are less than their
    // children, so the parent has climbed already: to a root of this rank, or to an element of
    // another one.
    const auto climb = [&](Index place) {
      Index& parent = mine.parents[place];
      if (mine.is_here(parent)) parent = mine.parent(parent);
      return mine.is_here(parent);
    };
    std::vector<Index> open;  // the places of elements whose roots are not known yet
    for (std::size_t place = 0; place < mine.parents.size(); ++place)
      if (!climb(static_cast<Index>(place))) open.push_back(static_cast<Index>(place));

    while (is_any(!open.empty(), members)) {
      std::vector<Index> asked;
      for (const Index place : open) {
        const Index parent = mine.parents[place];
        if (asked.empty() || asked.back() != parent) asked.push_back(parent);
      }
      std::sort(asked.begin(), asked.end());
      asked.erase(std::unique(asked.begin(), asked.end()), asked.end());

      lists to(count);
      for (const Index i : asked) to[mine.layout.member_of(i)].push_back(i);
      lists questions = all_to_all(to, members);
      for (std::vector<Index>& theirs : questions)
        for (Index& i : theirs) i = mine.ancestor(i);
      const lists answers = all_to_all(std::move(questions), members);

      Index found = 0;
      Index above = 0;  // the answer for `found`: many elements have the same parent as the last
      bool is_root = false;
      bool is_known = false;
      std::erase_if(open, [&](Index place) {
        Index& parent = mine.parents[place];
        if (!is_known || parent != found) {
          const std::size_t member = mine.layout.member_of(parent);
          const auto at = std::lower_bound(to[member].begin(), to[member].end(), parent);
          above = answers[member][static_cast<std::size_t>(at - to[member].begin())];
          // A member answers with an element of its own only when that is a root (ancestor).
          is_root = mine.layout.member_of(above) == member;
          found = parent;
          is_known = true;
        }
        parent = above;
        return is_root || climb(place);
      });
    }
  }

  sharded<part> parts_;
};

}  // namespace sojourn
