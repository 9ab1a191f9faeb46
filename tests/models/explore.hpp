// SPDX-License-Identifier: Apache-2.0
// All states that a model can come to. A model is a struct of plain values with all of its bytes
// in use, of which `step` makes those that may come next.
#pragma once

#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <type_traits>
#include <unordered_set>

namespace models {

template <class State>
struct exploration {
  std::size_t states = 0;
  /// What is wrong in the first state that is not as it should be, or empty.
  std::string fault;
};

/// `step(state, emit)` calls emit(next, fault) for every state that may come next; `fault` is null
/// or says what is wrong with that. `stuck(state)` says what is wrong when nothing comes next, or
/// null.
template <class State, class Step, class Stuck>
exploration<State> explore(const State& first, Step step, Stuck stuck) {
  static_assert(std::is_trivially_copyable_v<State>);
  static_assert(std::has_unique_object_representations_v<State>);
  auto bytes_of = [](const State& s) {
    return std::string(reinterpret_cast<const char*>(&s), sizeof s);
  };
  exploration<State> result;
  std::unordered_set<std::string> seen{bytes_of(first)};
  std::deque<State> open{first};
  while (!open.empty() && result.fault.empty()) {
    const State s = open.front();
    open.pop_front();
    bool any = false;
    step(s, [&](const State& next, const char* fault) {
      any = true;
      if (fault != nullptr && result.fault.empty()) result.fault = fault;
      if (seen.insert(bytes_of(next)).second) open.push_back(next);
    });
    if (const char* fault = any ? nullptr : stuck(s); fault != nullptr) result.fault = fault;
  }
  result.states = seen.size();
  return result;
}

inline int failures = 0;

/// A run of the model as the program is: no fault may be found.
template <class State>
void holds(const char* what, const exploration<State>& e) {
  std::printf("%s: %zu states%s%s\n", what, e.states, e.fault.empty() ? "" : ": ", e.fault.c_str());
  failures += !e.fault.empty();
}
/// A run of a model that is wrong in one place: one that finds no fault there would find none
/// elsewhere.
template <class State>
void is_found(const char* what, const exploration<State>& e) {
  std::printf("without %s: %zu states: %s\n", what, e.states,
              e.fault.empty() ? "NOT FOUND" : e.fault.c_str());
  failures += e.fault.empty();
}

}  // namespace models
