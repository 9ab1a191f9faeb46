// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>

namespace page_model {

bool program::has_barriers() const {
  return std::any_of(code.begin(), code.end(), [](const instructions& thread) {
    return std::any_of(thread.begin(), thread.end(),
                       [](const instruction& i) { return i.what == operation::barrier; });
  });
}

int program::meeting() const {
  return static_cast<int>(std::count(meets.begin(), meets.begin() + threads, true));
}

namespace {

std::string text_of(const instruction& i) {
  const std::string operand = std::to_string(i.operand);
  const std::string second = std::to_string(i.second);
  switch (i.what) {
    case operation::load:
      return "load " + operand;
    case operation::store:
      return "store " + second + " to " + operand;
    case operation::increment:
      return "increment " + operand;
    case operation::flip:
      return "flip " + operand;
    case operation::increment_two:
      return "increment " + operand + " and " + second;
    case operation::lock:
      return "lock " + operand;
    case operation::unlock:
      return "unlock " + operand;
    case operation::barrier:
      return "barrier";
    case operation::move:
      return "move to " + operand;
    case operation::end:
      return "end";
  }
  return "";
}

}  // namespace

std::string text_of(const program& p) {
  std::string text = std::string(name_of(p.how)) + ", " + std::to_string(p.ranks) + " ranks";
  if (p.has_fair_locks) text += ", locks are fair";
  if (p.departs_in_chain) text += ", departures go from rank to rank";
  if (p.how == protocol::lmw) {
    if (p.collects)
      text +=
          ", diffs are collected at every barrier of " + std::to_string(p.barriers_a_collection);
    if (p.has_exclusive) text += ", pages become exclusive";
    if (p.readers_count) text += ", but for those that others read";
    if (p.pages_stick) text += ", pages stick";
    if (p.pages_are_claimed) text += ", pages are claimed";
    if (p.answers_with_pages) text += ", pages answer for diffs";
  }
  text += '\n';
  for (std::size_t t = 0; t < static_cast<std::size_t>(p.threads); ++t) {
    text += "  thread " + std::to_string(t) + " on rank " + std::to_string(p.rank[t]);
    if (!p.meets[t]) text += ", not in barriers";
    text += ':';
    const char* separator = " ";
    for (const instruction& i : p.code[t]) {
      text += separator + text_of(i);
      separator = "; ";
    }
    text += '\n';
  }
  return text;
}

}  // namespace page_model
