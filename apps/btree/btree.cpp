// SPDX-License-Identifier: Apache-2.0
#include "btree/btree.hpp"

#include <array>
#include <utility>

#include "common/random.hpp"

namespace apps {

using sojourn::activate;
using sojourn::global_ptr;
using sojourn::via;

template <class Key, class Value>
bool anchor<Key, Value>::raise(root_page<Key, Value> above) {
  if (above.level != root_.level + 1) return false;
  root_ = above;
  return true;
}

namespace {

// -------------------------------------------------------------------------------------------------
// The root: each rank remembers the roots of the trees it has used, so that a search need not begin
// at the anchor. An old root is good too, the links lead on from it.
// -------------------------------------------------------------------------------------------------

/// Which tree, and its root. A program has few trees, so few of them share a place; those that do
/// only ask the anchor more often.
template <class Key, class Value>
struct known_root {
  global_ptr<anchor<Key, Value>> tree;
  root_page<Key, Value> root;
  replicated_levels<Key, Value> upper;
};
template <class Key, class Value>
std::array<known_root<Key, Value>, 16> roots_here;

template <class Key, class Value>
known_root<Key, Value>& place_of(global_ptr<anchor<Key, Value>> a) {
  return roots_here<Key, Value>[mix64(a.address()) % roots_here<Key, Value>.size()];
}

template <class Key, class Value>
void remember_root(global_ptr<anchor<Key, Value>> a, root_page<Key, Value> root,
                   replicated_levels<Key, Value> upper) {
  known_root<Key, Value>& known = place_of(a);
  if (known.tree != a || root.level > known.root.level) known = {a, root, upper};
}

template <class Key, class Value>
void forget_root(global_ptr<anchor<Key, Value>> a) {
  if (place_of(a).tree == a) place_of(a) = {};
}

/// Not inlined, so that the frames of a search, which travel, have no room for what is rarely done.
template <class Key, class Value>
[[gnu::noinline]] void ask_for_root(const btree<Key, Value>& tree) {
  const auto a = tree.the_anchor();
  const auto known = a.template call<&anchor<Key, Value>::all>(via::rpc);
  remember_root(a, known.root, known.upper);
}

template <class Key, class Value>
known_root<Key, Value> known_of(const btree<Key, Value>& tree) {
  const auto a = tree.the_anchor();
  while (place_of(a).tree != a) ask_for_root(tree);
  return place_of(a);
}

/// Where this rank's copy of the upper levels says that a search begins; no page when it says
/// nothing. Not inlined, because the first read waits for a version, and stays here meanwhile.
template <class Key, class Value>
[[gnu::noinline]] root_page<Key, Value> start_in(replicated_levels<Key, Value> upper,
                                                 const Key& key, int level) {
  return upper.read([&](const upper_levels<Key, Value>& u) { return u.start(key, level); });
}

/// Where a search begins for the page at `level` that covers the key: the root, or a page below it.
template <class Key, class Value>
root_page<Key, Value> find_start(const btree<Key, Value>& tree, const Key& key, int level) {
  const known_root<Key, Value> known = known_of(tree);
  if (known.upper) {
    const auto start = start_in(known.upper, key, level);
    if (start.page) return start;
  }
  return known.root;
}

/// A page at `level` has been entered one level up.
template <class Key, class Value>
[[gnu::noinline]] void note_entry(const btree<Key, Value>& tree, int level, const Key& low,
                                  child<Key, Value> page) {
  const auto upper = known_of(tree).upper;
  if (!upper) return;
  using levels = upper_levels<Key, Value>;
  if (!upper.read([level](const levels& u) { return u.keeps(level); })) return;
  upper.template update<&levels::enter>(level, low, page);
}

/// The root, at `level` or above: the tree grows by a page that has the old root as its only child.
/// What else belongs into it is entered by those who split that root.
template <class Key, class Value>
[[gnu::noinline]] root_page<Key, Value> raise_root(const btree<Key, Value>& tree, int level) {
  const global_ptr<anchor<Key, Value>> a = tree.the_anchor();
  root_page<Key, Value> root = tree.root();
  while (root.level < level) {
    root_page<Key, Value> above;
    above.level = root.level + 1;
    const auto made = sojourn::make<branch_page<Key, Value>>(a.where(), above.level, tree.fanout(),
                                                             Key{}, std::optional<Key>(),
                                                             global_ptr<branch_page<Key, Value>>());
    made.template call<&branch_page<Key, Value>::put>(via::rpc, Key{}, root.page);
    above.page = made;
    if (a.template call<&anchor<Key, Value>::raise>(via::rpc, above)) {
      note_entry(tree, root.level, Key{}, root.page);
      root = above;
    } else {  // Another one was faster.
      sojourn::destroy(made);
      root = tree.root();
    }
  }
  const auto upper = known_of(tree).upper;
  for (sojourn::rank_t r = 0; r < sojourn::rank_count(); ++r) {
    sojourn::rpc(r, remember_root<Key, Value>, a, root, upper).get();
  }
  return root;
}

// -------------------------------------------------------------------------------------------------
// The operations. Everything in these frames is a value, so they can move at any access.
// -------------------------------------------------------------------------------------------------

/// The page at `level` that covers the key, or one to the left of it when it has just been split.
template <class Key, class Value>
child<Key, Value> descend(const btree<Key, Value>& tree, const Key& key, int level, via how) {
  using branch = branch_page<Key, Value>;
  root_page<Key, Value> at = find_start(tree, key, level);
  if (at.level < level) at = raise_root(tree, level);
  while (at.level > level) {
    const auto step = at.page.branch.template call<&branch::route>(how, key);
    if (step.right) {
      at.page.branch = step.right;
    } else {
      at.page = step.item;
      --at.level;
    }
  }
  return at.page;
}

/// Splits a page that was full and enters the new page one level up. The new page can be reached
/// from its left neighbour already, so there is no hurry, and no lock is held meanwhile.
template <class Key, class Value, class Item>
[[gnu::noinline]] void make_room(const btree<Key, Value>& tree, global_ptr<page<Key, Item>> full,
                                 const Key& key, via how);

/// A page on its way to rank `where` has been answered for when that rank answers this.
void wait_for_split(sojourn::rank_t where) {
  sojourn::rpc(where, [] {}).get();
}

/// Puts an entry into the page that covers its key, `at` or right of it. True when the key is new.
template <class Key, class Value, class Item>
bool put_entry(const btree<Key, Value>& tree, global_ptr<page<Key, Item>> at, const Key& key,
               const Item& item, via how) {
  using outcome = typename page<Key, Item>::outcome;
  for (;;) {
    const auto done = at.template call<&page<Key, Item>::put>(how, key, item);
    switch (done.what) {
      case outcome::absent:
        return true;
      case outcome::present:
        return false;
      case outcome::right:
        at = done.right;
        break;
      case outcome::full:
        make_room(tree, at, key, how);
        break;
      case outcome::busy:
        wait_for_split(done.where);
        break;
    }
  }
}

template <class Key, class Value, class Item>
void make_room(const btree<Key, Value>& tree, global_ptr<page<Key, Item>> full, const Key& key,
               via how) {
  const auto split =
      full.template call<&page<Key, Item>::split>(how, tree.place_for_split(full.where(), key));
  if (!split.made) return;
  const auto parent = descend(tree, split.low, split.level + 1, how).branch;
  put_entry(tree, parent, split.low, child<Key, Value>(split.made), how);
  note_entry(tree, split.level, split.low, child<Key, Value>(split.made));
}

std::uint64_t hash_of(const text_key& key) { return hash_text(key.view()); }
std::uint64_t hash_of(std::uint64_t key) { return mix64(key); }

}  // namespace

template <class Key, class Value>
bool insert_entry(const btree<Key, Value>& tree, const Key& key, const Value& value, via how) {
  return put_entry(tree, descend(tree, key, 0, how).leaf, key, value, how);
}

template <class Key, class Value>
std::optional<Value> lookup_key(const btree<Key, Value>& tree, const Key& key, via how) {
  using leaf = leaf_page<Key, Value>;
  for (global_ptr<leaf> at = descend(tree, key, 0, how).leaf;;) {
    const auto found = at.template call<&leaf::find>(how, key);
    if (found.present) return found.item;
    if (!found.right) return std::nullopt;
    at = found.right;
  }
}

template <class Key, class Value>
bool erase_key(const btree<Key, Value>& tree, const Key& key, via how) {
  using leaf = leaf_page<Key, Value>;
  using outcome = typename leaf::outcome;
  for (global_ptr<leaf> at = descend(tree, key, 0, how).leaf;;) {
    const auto done = at.template call<&leaf::erase>(how, key);
    if (done.what == outcome::right) {
      at = done.right;
    } else if (done.what == outcome::busy) {
      wait_for_split(done.where);
    } else {
      return done.what == outcome::present;
    }
  }
}

template <class Key, class Value>
scan_result<Key, Value> scan_some(const btree<Key, Value>& tree, scan_position<Key, Value> position,
                                  std::size_t limit, via how) {
  using leaf = leaf_page<Key, Value>;
  if (!position.leaf) position.leaf = descend(tree, position.from, 0, how).leaf;
  for (;;) {
    const auto run =
        position.leaf.template call<&leaf::read>(how, position.from, position.inclusive, limit);
    if (run.entries.count > 0) {
      position.from = run.entries.keys[run.entries.count - 1];
      position.inclusive = false;
    }
    if (!run.more) position.leaf = run.right;
    const bool end = !position.leaf;
    if (end || run.entries.count > 0) return {run.entries, position, end};
  }
}

// -------------------------------------------------------------------------------------------------
// The tree
// -------------------------------------------------------------------------------------------------

template <class Key, class Value>
btree<Key, Value> btree<Key, Value>::create(const btree_options& options,
                                            const std::vector<Key>& boundaries) {
  using leaf = leaf_page<Key, Value>;
  using branch = branch_page<Key, Value>;
  const sojourn::rank_t here = sojourn::rank_me();
  const std::optional<Key> no_end;
  btree tree;
  tree.fanout_ = options.fanout;
  tree.placement_ = options.placement;
  replicated_levels<Key, Value> upper;
  if (options.replicated > 0)
    upper = sojourn::make_replicated<upper_levels<Key, Value>>(options.replicated);

  if (options.placement == layout::random) {
    const auto root =
        sojourn::make<leaf>(here, 0, options.fanout, Key{}, no_end, global_ptr<leaf>());
    tree.anchor_ = sojourn::make<anchor<Key, Value>>(here, root_page<Key, Value>{root, 0}, upper);
    return tree;
  }

  // A branch with one leaf on each rank, under a root; from right to left, for the links.
  const auto root =
      sojourn::make<branch>(here, 2, options.fanout, Key{}, no_end, global_ptr<branch>());
  tree.anchor_ = sojourn::make<anchor<Key, Value>>(here, root_page<Key, Value>{root, 2}, upper);
  global_ptr<leaf> last_leaf;
  global_ptr<branch> last_branch;
  std::optional<Key> high;
  for (int rank = static_cast<int>(boundaries.size()); rank >= 0; --rank) {
    const Key low = rank == 0 ? Key{} : boundaries[static_cast<std::size_t>(rank) - 1];
    last_leaf = sojourn::make<leaf>(rank, 0, options.fanout, low, high, last_leaf);
    last_branch = sojourn::make<branch>(rank, 1, options.fanout, low, high, last_branch);
    last_branch.template call<&branch::put>(via::rpc, low, child<Key, Value>(last_leaf));
    put_entry(tree, descend(tree, low, 2, via::rpc).branch, low, child<Key, Value>(last_branch),
              via::rpc);
    note_entry(tree, 0, low, child<Key, Value>(last_leaf));
    note_entry(tree, 1, low, child<Key, Value>(last_branch));
    high = low;
  }
  return tree;
}

namespace {
template <class Page>
void destroy_level(global_ptr<Page> first) {
  while (first) {
    const auto right = first.template call<&Page::describe>(via::rpc).right;
    sojourn::destroy(std::exchange(first, right));
  }
}
}  // namespace

template <class Key, class Value>
void btree<Key, Value>::destroy() const {
  using branch = branch_page<Key, Value>;
  root_page<Key, Value> at = root();
  while (at.level > 0) {
    const auto first = at.page.branch;
    const auto run = first.template call<&branch::read>(via::rpc, Key{}, true, std::size_t{1});
    at = {run.entries.items[0], at.level - 1};
    destroy_level(first);
  }
  destroy_level(at.page.leaf);
  for (sojourn::rank_t r = 0; r < sojourn::rank_count(); ++r) {
    sojourn::rpc(r, forget_root<Key, Value>, anchor_).get();
  }
  if (const auto upper = anchor_.template call<&anchor<Key, Value>::all>(via::rpc).upper)
    upper.destroy();
  sojourn::destroy(anchor_);
}

template <class Key, class Value>
bool btree<Key, Value>::insert(const Key& key, const Value& value, via how) const {
  return activate(insert_entry<Key, Value>, *this, key, value, how);
}

template <class Key, class Value>
std::optional<Value> btree<Key, Value>::lookup(const Key& key, via how) const {
  return activate(lookup_key<Key, Value>, *this, key, how);
}

template <class Key, class Value>
bool btree<Key, Value>::erase(const Key& key, via how) const {
  return activate(erase_key<Key, Value>, *this, key, how);
}

template <class Key, class Value>
std::vector<std::pair<Key, Value>> btree<Key, Value>::scan(const Key& from, std::size_t limit,
                                                           via how) const {
  std::vector<std::pair<Key, Value>> all;
  scan_result<Key, Value> some;
  some.next.from = from;
  while (!some.end && all.size() < limit) {
    some = activate(scan_some<Key, Value>, *this, some.next, limit - all.size(), how);
    for (std::uint32_t i = 0; i < some.entries.count; ++i) {
      all.emplace_back(some.entries.keys[i], some.entries.items[i]);
    }
  }
  return all;
}

template <class Key, class Value>
root_page<Key, Value> btree<Key, Value>::root() const {
  return anchor_.template call<&anchor<Key, Value>::root>(via::rpc);
}

template <class Key, class Value>
sojourn::rank_t btree<Key, Value>::place_for_split(sojourn::rank_t now, const Key& key) const {
  if (placement_ == layout::subtree) return now;
  return static_cast<sojourn::rank_t>(hash_of(key) %
                                      static_cast<std::uint64_t>(sojourn::rank_count()));
}

#define APPS_BTREE_FOR(KEY, VALUE)                                                                \
  template class anchor<KEY, VALUE>;                                                              \
  template class btree<KEY, VALUE>;                                                               \
  template bool insert_entry(const btree<KEY, VALUE>&, const KEY&, const VALUE&, via);            \
  template std::optional<VALUE> lookup_key(const btree<KEY, VALUE>&, const KEY&, via);            \
  template bool erase_key(const btree<KEY, VALUE>&, const KEY&, via);                             \
  template scan_result<KEY, VALUE> scan_some(const btree<KEY, VALUE>&, scan_position<KEY, VALUE>, \
                                             std::size_t, via)

APPS_BTREE_FOR(text_key, text_value);
APPS_BTREE_FOR(std::uint64_t, std::uint64_t);

}  // namespace apps
