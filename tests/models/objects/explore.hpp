// SPDX-License-Identifier: Apache-2.0
// Goes through all states that a model can come to. A model is a type with
//   State                  copied freely; `error` is not 0 when a rule is broken in it
//   initial()              a State
//   successors(s, out)     appends {state, process, label} for all that may happen next
//   fingerprint_of(s)      128 bits, equal for states that differ in nothing that matters
//   is_final(s)            all that was to be done is done
//   explain(s), show(s), name(label)   text
// `verify` walks depth first. It reports a broken rule, a state that is stuck without being final,
// and a cycle: without cycles every run ends, whatever comes first, so nothing starves.
// `shortest` walks breadth first, for a short way to a broken rule.
// `starvation` takes models whose runs go on for ever, and looks for a fair cycle in which a chosen
// operation stays unfinished.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace models::explore {

struct fingerprint {
  std::uint64_t high, low;
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
  friend bool operator<(const fingerprint& a, const fingerprint& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  wide product = static_cast<wide>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Of `bytes`, a multiple of eight.
inline fingerprint hash(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t high = 0x243f6a8885a308d3u, low = 0x13198a2e03707344u;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, at + i, 8);
    high = mix(high, word + i);
    low = mix(low + word, 0xa4093822299f31d0u + i) ^ high;
  }
  return {high, low};
}

/// Fingerprints with two bits of colour each, in an open table.
class table {
 public:
  enum colour : std::uint64_t { open = 1, closed = 2 };
  explicit table(std::size_t slots = 1u << 20) : slots_(slots) {}

  /// The colour of what is there, or 0; then it is entered as `open`.
  std::uint64_t enter(fingerprint f, std::size_t& where) {
    if (used_ * 10 >= slots_.size() * 7) grow();
    where = find(f);
    if (slots_[where].low != 0) return slots_[where].low & 3;
    slots_[where] = {f.high, key(f) | open};
    ++used_;
    return 0;
  }
  void close(fingerprint f) {
    std::size_t at = find(f);
    slots_[at].low = key(f) | closed;
  }
  std::size_t size() const { return used_; }

 private:
  static std::uint64_t key(fingerprint f) { return (f.low | 4) & ~std::uint64_t{3}; }
  std::size_t find(fingerprint f) const {
    std::size_t at = f.high & (slots_.size() - 1);
    while (slots_[at].low != 0 &&
           (slots_[at].high != f.high || (slots_[at].low & ~std::uint64_t{3}) != key(f))) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  void grow() {
    std::vector<fingerprint> old(slots_.size() * 2);
    old.swap(slots_);
    for (const fingerprint& f : old) {
      if (f.low == 0) continue;
      std::size_t at = f.high & (slots_.size() - 1);
      while (slots_[at].low != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = f;
    }
  }
  std::vector<fingerprint> slots_;
  std::size_t used_ = 0;
};

template <class Model>
struct successor {
  typename Model::State state;
  int process;          ///< Which part of the system does it, for fairness; below 64.
  std::uint32_t label;  ///< The model's name(label) tells it.
};

struct outcome {
  std::string problem;  ///< Empty when there is none.
  std::size_t states = 0, transitions = 0, depth = 0;
  double seconds = 0;
  bool complete = true;  ///< False when `states_max` stopped it.
  std::vector<std::string> trace;
};

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Model>
outcome verify(const Model& model, std::size_t states_max = 400'000'000) {
  using State = typename Model::State;
  struct frame {
    fingerprint print;
    std::vector<successor<Model>> next;
    std::size_t taken = 0;
  };
  outcome result;
  double begin = now();
  table seen;
  std::vector<frame> stack;
  auto fail = [&](std::string what, std::uint32_t last) {
    result.problem = std::move(what);
    for (const frame& f : stack) {
      if (f.taken > 0) result.trace.push_back(model.name(f.next[f.taken - 1].label));
    }
    if (last != 0) result.trace.push_back(model.name(last));
  };
  auto push = [&](const State& s) {
    frame f;
    f.print = model.fingerprint_of(s);
    std::size_t where;
    std::uint64_t colour = seen.enter(f.print, where);
    if (colour == table::closed) return true;
    if (colour == table::open) {
      fail("a cycle: a run need not end", 0);
      return false;
    }
    model.successors(s, f.next);
    result.transitions += f.next.size();
    if (f.next.empty() && !model.is_final(s)) {
      fail("stuck: " + model.show(s), 0);
      return false;
    }
    for (const auto& n : f.next) {
      if (n.state.error != 0) {
        fail(model.explain(n.state), n.label);
        return false;
      }
    }
    stack.push_back(std::move(f));
    result.depth = std::max(result.depth, stack.size());
    return true;
  };
  push(model.initial());
  while (!stack.empty() && result.problem.empty()) {
    frame& top = stack.back();
    if (top.taken == top.next.size()) {
      seen.close(top.print);
      stack.pop_back();
      continue;
    }
    if (seen.size() > states_max) {
      result.complete = false;
      break;
    }
    State s = top.next[top.taken++].state;
    push(s);
  }
  result.states = seen.size();
  result.seconds = now() - begin;
  return result;
}

template <class Model>
outcome shortest(const Model& model, std::size_t states_max = 20'000'000) {
  using State = typename Model::State;
  struct node {
    std::size_t parent;
    std::uint32_t label;
  };
  outcome result;
  double begin = now();
  table seen;
  std::vector<node> nodes;
  std::deque<std::pair<State, std::size_t>> queue;
  auto fail = [&](std::string what, std::size_t at, std::uint32_t last) {
    result.problem = std::move(what);
    for (std::size_t i = at; i != 0; i = nodes[i].parent) {
      result.trace.push_back(model.name(nodes[i].label));
    }
    std::reverse(result.trace.begin(), result.trace.end());
    if (last != 0) result.trace.push_back(model.name(last));
  };
  std::size_t where;
  State first = model.initial();
  seen.enter(model.fingerprint_of(first), where);
  nodes.push_back({0, 0});
  queue.emplace_back(first, 0);
  std::vector<successor<Model>> next;
  while (!queue.empty() && result.problem.empty()) {
    auto [s, at] = queue.front();
    queue.pop_front();
    next.clear();
    model.successors(s, next);
    result.transitions += next.size();
    if (next.empty() && !model.is_final(s)) fail("stuck: " + model.show(s), at, 0);
    for (auto& n : next) {
      if (n.state.error != 0) {
        fail(model.explain(n.state), at, n.label);
        break;
      }
      if (seen.enter(model.fingerprint_of(n.state), where) != 0) continue;
      nodes.push_back({at, n.label});
      queue.emplace_back(n.state, nodes.size() - 1);
    }
    if (seen.size() > states_max) {
      result.complete = false;
      break;
    }
  }
  result.states = seen.size();
  result.seconds = now() - begin;
  return result;
}

/// The subgraph of states where model.is_waiting(s) holds is divided into strongly connected
/// components. One in which every process that is always able to do something does something is a
/// fair cycle: the operation that is waited for may never finish. Processes outside `fair` need not
/// do anything.
template <class Model>
outcome starvation(const Model& model, std::uint64_t fair, std::size_t states_max = 12'000'000) {
  using State = typename Model::State;
  outcome result;
  double begin = now();
  struct hasher {
    std::size_t operator()(const fingerprint& f) const { return f.low; }
  };
  std::unordered_map<fingerprint, std::uint32_t, hasher> index;
  struct edge {
    std::uint32_t to;
    std::uint8_t process;
  };
  std::vector<std::vector<edge>> edges;
  std::vector<std::uint64_t> enabled;
  std::vector<bool> waiting;
  std::deque<std::pair<State, std::uint32_t>> queue;
  auto enter = [&](const State& s) {
    auto [it, is_new] =
        index.try_emplace(model.fingerprint_of(s), static_cast<std::uint32_t>(edges.size()));
    if (is_new) {
      edges.emplace_back();
      enabled.push_back(0);
      waiting.push_back(model.is_waiting(s));
      queue.emplace_back(s, it->second);
    }
    return it->second;
  };
  enter(model.initial());
  std::vector<successor<Model>> next;
  while (!queue.empty()) {
    auto [s, at] = queue.front();
    queue.pop_front();
    next.clear();
    model.successors(s, next);
    result.transitions += next.size();
    if (next.empty() && !model.is_final(s)) {
      result.problem = "stuck: " + model.show(s);
      break;
    }
    for (const auto& n : next) {
      if (n.state.error != 0) {
        result.problem = model.explain(n.state) + " (" + model.name(n.label) + ")";
        break;
      }
      enabled[at] |= std::uint64_t{1} << n.process;
      std::uint32_t to = enter(n.state);
      edges[at].push_back({to, static_cast<std::uint8_t>(n.process)});
    }
    if (!result.problem.empty()) break;
    if (edges.size() > states_max) {
      result.complete = false;
      break;
    }
  }
  result.states = edges.size();
  if (result.problem.empty() && result.complete) {
    // Tarjan, without recursion, in the subgraph that waits.
    std::vector<std::uint32_t> number(edges.size(), 0), low(edges.size(), 0);
    std::vector<bool> on_stack(edges.size(), false);
    std::vector<std::uint32_t> stack;
    std::uint32_t count = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> calls;
    for (std::uint32_t root = 0; root < edges.size() && result.problem.empty(); ++root) {
      if (number[root] != 0 || !waiting[root]) continue;
      calls.emplace_back(root, 0);
      while (!calls.empty()) {
        auto& [v, i] = calls.back();
        if (i == 0) {
          number[v] = low[v] = ++count;
          stack.push_back(v);
          on_stack[v] = true;
        }
        bool descended = false;
        while (i < edges[v].size()) {
          std::uint32_t w = edges[v][i++].to;
          if (!waiting[w]) continue;
          if (number[w] == 0) {
            calls.emplace_back(w, 0);
            descended = true;
            break;
          }
          if (on_stack[w]) low[v] = std::min(low[v], number[w]);
        }
        if (descended) continue;
        std::uint32_t done = v;
        if (low[done] == number[done]) {
          std::vector<std::uint32_t> members;
          for (;;) {
            std::uint32_t w = stack.back();
            stack.pop_back();
            on_stack[w] = false;
            members.push_back(w);
            if (w == done) break;
          }
          std::sort(members.begin(), members.end());
          std::uint64_t always = fair, taken = 0;
          bool has_cycle = false;
          for (std::uint32_t m : members) {
            always &= enabled[m];
            for (const edge& e : edges[m]) {
              if (!std::binary_search(members.begin(), members.end(), e.to)) continue;
              has_cycle = true;
              taken |= std::uint64_t{1} << e.process;
            }
          }
          if (has_cycle && (always & ~taken) == 0) {
            result.problem = "starvation: a fair cycle of " + std::to_string(members.size()) +
                             " states in which the operation stays unfinished";
          }
        }
        calls.pop_back();
        if (!calls.empty()) low[calls.back().first] = std::min(low[calls.back().first], low[done]);
      }
    }
  }
  result.seconds = now() - begin;
  return result;
}

}  // namespace models::explore
