// SPDX-License-Identifier: Apache-2.0
#include "btree/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "common/fault.hpp"

namespace apps {

using sojourn::via;

namespace {

/// Work number i of all work is for requester i * requesters / all: how much requester r does.
std::uint64_t share(std::uint64_t all, int r, int requesters) {
  const auto part = static_cast<std::uint64_t>(r);
  const auto parts = static_cast<std::uint64_t>(requesters);
  return all * (part + 1) / parts - all * part / parts;
}

/// Nodes in shared memory that this rank has looked into.
template <class Tree>
std::uint64_t visits_here() {
  if constexpr (requires { Tree::visits_here(); }) return Tree::visits_here();
  return 0;
}

}  // namespace

template <class Key, class Value, class Tree>
experiment<Key, Value, Tree>::experiment(std::vector<Key> keys, const btree_options& options)
    : data_(std::move(keys)) {
  if (sojourn::rank_me() == 0) {
    tree_ = Tree::create(options, data_.boundaries(sojourn::rank_count()));
  }
  tree_ = sojourn::broadcast(tree_);
}

template <class Key, class Value, class Tree>
run_result experiment<Key, Value, Tree>::load(const run_options& options) {
  std::string wrong;
  run_result result;
  result.measured = measure(options.requesters, [&](int requester, histogram& latencies) {
    const auto step = static_cast<std::uint64_t>(options.requesters);
    for (auto i = static_cast<std::uint64_t>(requester); i < data_.size(); i += step) {
      const Key& key = data_.key(i);
      const Value value = make_value<Key, Value>(key, loaded);
      if (!timed(latencies, [&] { return tree_.insert(key, value, options.how); })) {
        wrong = fmt::format("record {} was in the empty tree already", i);
      }
    }
  });
  if (sojourn::rank_me() == 0) {
    for (std::uint64_t i = 0; i < data_.size(); ++i) {
      model_.emplace(data_.key(i), make_value<Key, Value>(data_.key(i), loaded));
    }
  }
  result.wrong = check(wrong);
  return result;
}

template <class Key, class Value, class Tree>
run_result experiment<Key, Value, Tree>::run(const workload& what, const run_options& options) {
  using stream = request_stream<Key, Value>;
  ++runs_;
  std::string wrong;
  run_result result;
  const std::uint64_t visits_before = visits_here<Tree>();
  const std::uint64_t faults_before = sojourn::shared::counters_now().faults_remote;
  result.measured = measure(options.requesters, [&](int requester, histogram& latencies) {
    stream requests(data_, what, requester, options.requesters, runs_);
    for (auto left = share(options.operations, requester, options.requesters); left > 0; --left) {
      std::string fault = perform(requests.next(), options.how, latencies);
      if (wrong.empty()) wrong = std::move(fault);
      think(options.think_cycles);
    }
  });
  const std::uint64_t visits = visits_here<Tree>() - visits_before;
  if (const std::uint64_t all = sojourn::reduce(visits, std::plus<>{}); all > 0) {
    const std::uint64_t faults = sojourn::shared::counters_now().faults_remote - faults_before;
    result.measured.misses = std::min(sojourn::reduce(faults, std::plus<>{}), all);
    result.measured.hits = all - result.measured.misses;
  }
  if (sojourn::rank_me() == 0) {
    for (int r = 0; r < options.requesters; ++r) {
      stream requests(data_, what, r, options.requesters, runs_);
      for (auto left = share(options.operations, r, options.requesters); left > 0; --left) {
        const request<Key, Value> replayed = requests.next();
        const bool writes =
            replayed.kind == request_kind::update || replayed.kind == request_kind::insert;
        if (writes) model_.insert_or_assign(replayed.key, replayed.value);
      }
    }
  }
  result.wrong = check(wrong);
  return result;
}

template <class Key, class Value, class Tree>
std::string experiment<Key, Value, Tree>::perform(const request<Key, Value>& r, via how,
                                                  histogram& latencies) const {
  switch (r.kind) {
    case request_kind::read: {
      const auto found = timed(latencies, [&] { return tree_.lookup(r.key, how); });
      if (!found) return "a lookup did not find a record that is there";
      if (r.exact ? *found == r.value : belongs_to(*found, r.key)) return {};
      return "a lookup found a value that was not the record's";
    }
    case request_kind::update:
      if (!timed(latencies, [&] { return tree_.insert(r.key, r.value, how); })) return {};
      return "an update did not find its record";
    case request_kind::insert:
      if (timed(latencies, [&] { return tree_.insert(r.key, r.value, how); })) return {};
      return "an insert found its new record there already";
    case request_kind::scan:
      return check_scan(r, timed(latencies, [&] { return tree_.scan(r.key, r.limit, how); }));
  }
  return {};
}

template <class Key, class Value, class Tree>
std::string experiment<Key, Value, Tree>::check_scan(
    const request<Key, Value>& r, const std::vector<std::pair<Key, Value>>& entries) const {
  // Records that were loaded are never removed: all from the first to the last found must be there.
  auto expected = std::ranges::lower_bound(data_.sorted(), r.key);
  const Key* before = nullptr;
  for (const auto& [key, value] : entries) {
    if (key < r.key || (before != nullptr && !(*before < key))) return "a scan was not in order";
    if (!belongs_to(value, key)) return "a scan found a value that was not the record's";
    if (expected != data_.sorted().end() && *expected < key) return "a scan missed a record";
    if (expected != data_.sorted().end() && *expected == key) ++expected;
    before = &key;
  }
  const bool missed = entries.size() < r.limit && expected != data_.sorted().end();
  return missed || entries.size() > r.limit ? "a scan found too few or too many records" : "";
}

template <class Key, class Value, class Tree>
std::string experiment<Key, Value, Tree>::check(std::string wrong) const {
  if (sojourn::rank_me() == 0) {
    if (wrong.empty()) wrong = compare(tree_, model_);
    if (wrong.empty()) wrong = inspect(tree_).wrong;
  }
  return first_fault(wrong);
}

template <class Key, class Value, class Tree>
tree_shape experiment<Key, Value, Tree>::shape() const {
  return sojourn::rank_me() == 0 ? inspect(tree_) : tree_shape();
}

template <class Key, class Value, class Tree>
void experiment<Key, Value, Tree>::destroy() {
  sojourn::barrier();
  if (sojourn::rank_me() == 0) tree_.destroy();
  tree_ = {};
  sojourn::barrier();
}

template class experiment<text_key, text_value>;
template class experiment<std::uint64_t, std::uint64_t>;
template class experiment<std::uint64_t, std::uint64_t, shared_tree>;

}  // namespace apps
