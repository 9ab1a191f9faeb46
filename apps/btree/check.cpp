// SPDX-License-Identifier: Apache-2.0
#include "btree/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace apps {

using sojourn::global_ptr;
using sojourn::via;

std::uint64_t tree_shape::pages() const {
  return std::accumulate(pages_at.begin(), pages_at.end(), std::uint64_t{0});
}

namespace {

std::string text_of(std::string_view text) { return std::string(text); }
std::string text_of(std::uint64_t number) { return std::to_string(number); }

/// Pages as the level above lists them: least keys and addresses.
template <class Key>
using listing = std::vector<std::pair<Key, std::uint64_t>>;

/// Adds the children of a branch to `children`.
template <class Key, class Value>
void list_children(global_ptr<branch_page<Key, Value>> branch, listing<Key>& children) {
  Key from{};
  for (bool more = true, inclusive = true; more; inclusive = false) {
    const auto run = branch.template call<&branch_page<Key, Value>::read>(
        via::rpc, from, inclusive, batch<Key, Value>::capacity);
    for (std::uint32_t i = 0; i < run.entries.count; ++i) {
      from = run.entries.keys[i];
      const child<Key, Value>& c = run.entries.items[i];
      children.emplace_back(from, c.leaf ? c.leaf.address() : c.branch.address());
    }
    more = run.more;
  }
}

/// Walks one level from its first page and adds its pages to `shape`; `expected` are the pages that
/// the level above lists. Returns what is wrong.
template <class Page, class Key, class Visit>
std::string walk_level(global_ptr<Page> first, int level, const listing<Key>& expected,
                       tree_shape& shape, Visit visit) {
  Key low{};
  std::size_t index = 0;
  for (global_ptr<Page> at = first; at; ++index) {
    const auto page = at.template call<&Page::describe>(via::rpc);
    const auto fault = [&](const char* what) {
      return fmt::format("page {} of level {}, from key '{}' on rank {}, {}", index, level,
                         text_of(page.low), at.where(), what);
    };
    if (!page.valid) return fault("is not in order within its bounds");
    if (page.level != level) return fault("is of another level");
    if (page.low != low) return fault("does not begin where the one before it ends");
    if (index >= expected.size()) return fault("is not listed one level up");
    if (expected[index] != std::pair(page.low, at.address())) {
      return fault("is not the one listed one level up");
    }
    if (level > 0 && page.size == 0) return fault("is a branch without children");
    ++shape.pages_on[static_cast<std::size_t>(at.where())];
    if (level == 0) shape.keys += page.size;
    visit(at);
    if (page.high) low = *page.high;
    at = page.right;
  }
  shape.pages_at.insert(shape.pages_at.begin(), index);
  if (index == expected.size()) return {};
  return fmt::format("level {} has {} pages, but {} are listed one level up", level, index,
                     expected.size());
}

}  // namespace

template <class Key, class Value>
tree_shape inspect(const btree<Key, Value>& tree) {
  tree_shape shape;
  shape.pages_on.resize(static_cast<std::size_t>(sojourn::rank_count()));
  const root_page<Key, Value> root = tree.root();
  const std::uint64_t top = root.level > 0 ? root.page.branch.address() : root.page.leaf.address();

  listing<Key> pages{{Key{}, top}};  // The root is the only page of its level.
  for (int level = root.level; level > 0 && shape.wrong.empty(); --level) {
    listing<Key> children;
    using branch = branch_page<Key, Value>;
    shape.wrong = walk_level(global_ptr<branch>::at(pages.front().second), level, pages, shape,
                             [&](global_ptr<branch> b) { list_children<Key, Value>(b, children); });
    pages = std::move(children);
  }
  if (shape.wrong.empty()) {
    using leaf = leaf_page<Key, Value>;
    shape.wrong = walk_level(global_ptr<leaf>::at(pages.front().second), 0, pages, shape,
                             [](global_ptr<leaf>) {});
  }
  return shape;
}

template <class Key, class Value>
std::string compare(const btree<Key, Value>& tree, const std::map<Key, Value>& model) {
  constexpr std::size_t all = ~std::size_t{0};
  const auto entries = tree.scan(Key{}, all, via::rpc);
  const auto [in_tree, in_model] = std::ranges::mismatch(
      entries, model,
      [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; });
  const bool tree_ends = in_tree == entries.end();
  const bool model_ends = in_model == model.end();
  if (tree_ends && model_ends) return {};
  if (tree_ends || (!model_ends && in_model->first < in_tree->first)) {
    return fmt::format("'{}' is in the model but not in the tree", text_of(in_model->first));
  }
  if (model_ends || in_tree->first < in_model->first) {
    return fmt::format("'{}' is in the tree but not in the model", text_of(in_tree->first));
  }
  return fmt::format("the value of '{}' is {} in the tree and {} in the model",
                     text_of(in_tree->first), text_of(in_tree->second), text_of(in_model->second));
}

template tree_shape inspect(const btree<text_key, text_value>&);
template tree_shape inspect(const btree<std::uint64_t, std::uint64_t>&);
template std::string compare(const btree<text_key, text_value>&,
                             const std::map<text_key, text_value>&);
template std::string compare(const btree<std::uint64_t, std::uint64_t>&,
                             const std::map<std::uint64_t, std::uint64_t>&);

}  // namespace apps
