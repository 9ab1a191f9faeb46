// SPDX-License-Identifier: Apache-2.0
#include "btree/shared_tree.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>

namespace apps {

namespace {
std::uint64_t visits = 0;

/// A word that is read without a lock, in memory where all ranks see stores in one order.
class word {
 public:
  std::uint64_t get() const { return value_.load(std::memory_order_acquire); }
  void set(std::uint64_t v) { value_.store(v, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> value_;
};

template <class T>
T* allocate_page() {
  static_assert(sizeof(T) <= 4096);
  return static_cast<T*>(sojourn::shared::allocate(4096, 4096, sojourn::shared::protocol::seq));
}
}  // namespace

struct shared_tree::found {
  bool covered;  ///< Else look into `right`.
  node* right;
  bool present;  ///< Whether there is an entry of this key.
  std::uint64_t item;
};

struct shared_tree::node {
  static constexpr std::uint64_t capacity = 120;
  static constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

  sojourn::shared::mutex mutex;
  word version;  ///< Odd while it is being changed.
  word level;
  word size;
  word low;
  word high;   ///< The first key beyond; no_end: none.
  word right;  ///< Address of the next node of this level.
  std::array<word, capacity> keys;
  std::array<word, capacity> items;

  static node* make(std::uint64_t level) {
    node* n = allocate_page<node>();
    n->level.set(level);
    n->high.set(no_end);
    return n;
  }
  node* next() const { return reinterpret_cast<node*>(right.get()); }
  bool covers(key k) const { return high.get() == no_end || k < high.get(); }

  /// The first key that is not below `k`.
  std::size_t position(key k) const {
    std::size_t first = 0;
    for (std::size_t end = std::min(size.get(), capacity); first < end;) {
      const std::size_t middle = (first + end) / 2;
      if (keys[middle].get() < k) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    return first;
  }
  /// Of a leaf the entry of this key, of a branch the last one that is not above it.
  found look(key k) const {
    std::size_t i = position(k);
    const bool exact = i < std::min(size.get(), capacity) && keys[i].get() == k;
    if (!exact && level.get() > 0 && i > 0) --i;
    const std::uint64_t item = i < capacity ? items[i].get() : 0;
    return {covers(k), next(), exact || level.get() > 0, item};
  }

  /// What `read` returns, of the node as it was at one moment.
  template <class Read>
  auto at_one_moment(Read read) {
    ++visits;
    if (const std::uint64_t before = version.get(); before % 2 == 0) {
      const auto result = read(*this);
      if (version.get() == before) return result;
    }
    const std::lock_guard lock(mutex);
    return read(*this);
  }

  /// Makes room at `i` for an entry. Requires: the node is locked, and not full.
  void enter(std::size_t i, key k, std::uint64_t item) {
    for (std::size_t j = size.get(); j > i; --j) {
      keys[j].set(keys[j - 1].get());
      items[j].set(items[j - 1].get());
    }
    keys[i].set(k);
    items[i].set(item);
    size.set(size.get() + 1);
  }
  /// Moves the upper half to a new node. Requires: the node is locked.
  node* split() {
    node* made = make(level.get());
    const std::uint64_t middle = size.get() / 2;
    for (std::size_t i = middle; i < size.get(); ++i) {
      made->keys[i - middle].set(keys[i].get());
      made->items[i - middle].set(items[i].get());
    }
    made->size.set(size.get() - middle);
    made->low.set(keys[middle].get());
    made->high.set(high.get());
    made->right.set(right.get());
    size.set(middle);
    high.set(made->low.get());
    right.set(reinterpret_cast<std::uint64_t>(made));
    return made;
  }
};

namespace {
/// Tells readers that the node is being changed. Requires: it is locked.
class change {
 public:
  explicit change(word& version) : version_(version) { version_.set(version_.get() + 1); }
  ~change() { version_.set(version_.get() + 1); }
  change(const change&) = delete;
  change& operator=(const change&) = delete;

 private:
  word& version_;
};
}  // namespace

struct shared_tree::anchor {
  sojourn::shared::mutex mutex;
  word fanout;
  word root;
};

std::uint64_t shared_tree::visits_here() { return visits; }

shared_tree shared_tree::create(const btree_options& options, const std::vector<key>&) {
  shared_tree tree;
  auto* a = allocate_page<anchor>();
  a->fanout.set(std::min(static_cast<std::uint64_t>(options.fanout), node::capacity));
  a->root.set(reinterpret_cast<std::uint64_t>(node::make(0)));
  tree.anchor_ = a;
  return tree;
}

void shared_tree::destroy() const {
  for (auto* first = reinterpret_cast<node*>(anchor_->root.get()); first != nullptr;) {
    node* below = first->level.get() > 0 ? reinterpret_cast<node*>(first->items[0].get()) : nullptr;
    while (first != nullptr) sojourn::shared::free(std::exchange(first, first->next()));
    first = below;
  }
  sojourn::shared::free(anchor_.get());
}

/// The root, which is raised to `level` where it is below: the new one has the old one as its only
/// child, and what else belongs there is entered by whoever split it.
shared_tree::node* shared_tree::root_at(int level) const {
  auto* root = reinterpret_cast<node*>(anchor_->root.get());
  if (root->level.get() >= static_cast<std::uint64_t>(level)) return root;
  const std::lock_guard lock(anchor_->mutex);
  root = reinterpret_cast<node*>(anchor_->root.get());
  if (root->level.get() < static_cast<std::uint64_t>(level)) {
    node* above = node::make(static_cast<std::uint64_t>(level));
    above->enter(0, 0, reinterpret_cast<std::uint64_t>(root));
    anchor_->root.set(reinterpret_cast<std::uint64_t>(above));
    root = above;
  }
  return root;
}

shared_tree::node* shared_tree::descend(key k, int level) const {
  node* at = root_at(level);
  while (at->level.get() > static_cast<std::uint64_t>(level)) {
    const found step = at->at_one_moment([k](const node& n) { return n.look(k); });
    at = step.covered ? reinterpret_cast<node*>(step.item) : step.right;
  }
  return at;
}

bool shared_tree::put(node* at, key k, std::uint64_t item) const {
  for (;;) {
    node* made = nullptr;
    {
      ++visits;
      const std::lock_guard lock(at->mutex);
      if (!at->covers(k)) {
        at = at->next();
        continue;
      }
      const std::size_t i = at->position(k);
      const bool present = i < at->size.get() && at->keys[i].get() == k;
      const change begun(at->version);
      if (present) {
        at->items[i].set(item);
        return false;
      }
      if (at->size.get() < anchor_->fanout.get()) {
        at->enter(i, k, item);
        return true;
      }
      made = at->split();
    }
    // The new node is found through its left neighbour already: no lock is held meanwhile.
    const key low = made->low.get();
    const int above = static_cast<int>(made->level.get()) + 1;
    put(descend(low, above), low, reinterpret_cast<std::uint64_t>(made));
  }
}

bool shared_tree::insert(key k, value v, sojourn::via) const { return put(descend(k, 0), k, v); }

std::optional<shared_tree::value> shared_tree::lookup(key k, sojourn::via) const {
  for (node* at = descend(k, 0);;) {
    const found result = at->at_one_moment([k](const node& n) { return n.look(k); });
    if (result.covered) return result.present ? std::optional(result.item) : std::nullopt;
    at = result.right;
  }
}

std::vector<std::pair<shared_tree::key, shared_tree::value>> shared_tree::scan(key from,
                                                                               std::size_t limit,
                                                                               sojourn::via) const {
  struct part {
    std::vector<std::pair<key, value>> entries;
    node* next;
  };
  std::vector<std::pair<key, value>> all;
  for (node* at = descend(from, 0); at != nullptr && all.size() < limit;) {
    part some = at->at_one_moment([&](const node& n) {
      part p{{}, n.next()};
      const std::size_t end = std::min(n.size.get(), node::capacity);
      for (std::size_t i = n.position(from); i < end && all.size() + p.entries.size() < limit;
           ++i) {
        p.entries.emplace_back(n.keys[i].get(), n.items[i].get());
      }
      return p;
    });
    all.insert(all.end(), some.entries.begin(), some.entries.end());
    if (!all.empty()) from = all.back().first + 1;
    at = some.next;
  }
  return all;
}

tree_shape inspect(const shared_tree& tree) {
  using node = shared_tree::node;
  tree_shape shape;
  shape.pages_on.push_back(0);  // Pages belong to no rank.
  for (auto* first = reinterpret_cast<node*>(tree.anchor_->root.get()); first != nullptr;) {
    std::uint64_t pages = 0;
    shape.keys = 0;
    std::uint64_t low = 0;
    for (node* at = first; at != nullptr; at = at->next()) {
      ++pages;
      shape.keys += at->size.get();
      if (at->low.get() != low) shape.wrong = "two nodes of a level do not join";
      for (std::size_t i = 0; i < at->size.get(); ++i) {
        const bool in_order = i == 0 || at->keys[i - 1].get() < at->keys[i].get();
        if (!in_order || at->keys[i].get() < low || !at->covers(at->keys[i].get())) {
          shape.wrong = "the keys of a node are not in order";
        }
      }
      low = at->high.get();
    }
    shape.pages_at.insert(shape.pages_at.begin(), pages);
    shape.pages_on.front() += pages;
    first = first->level.get() > 0 ? reinterpret_cast<node*>(first->items[0].get()) : nullptr;
  }
  return shape;
}

std::string compare(const shared_tree& tree, const std::map<std::uint64_t, std::uint64_t>& model) {
  const auto all = tree.scan(0, std::numeric_limits<std::size_t>::max(), sojourn::via::rpc);
  const auto same = [](const auto& ours, const auto& theirs) {
    return ours.first == theirs.first && ours.second == theirs.second;
  };
  return std::ranges::equal(all, model, same) ? "" : "the tree does not equal std::map";
}

}  // namespace apps
