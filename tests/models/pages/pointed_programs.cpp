// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

namespace page_model {
namespace {

struct sketch {
  int ranks;
  std::vector<int> rank;  // of each thread
  std::vector<instructions> code;
};

instructions operator+(instructions code, const instructions& more) {
  code.insert(code.end(), more.begin(), more.end());
  return code;
}

std::vector<sketch> sketches(protocol how) {
  using enum operation;
  // The variables 0 and 1 share a page; 2 and 3 lie in the other.
  const instructions meet{{barrier}};
  const instructions writes_0{{increment, 0}, {increment, 0}};
  const instructions writes_1{{increment, 1}, {flip, 1}};
  const instructions counts{{lock, 0}, {increment, 0}, {unlock, 0}};
  const instructions loads{{load, 0}, {load, 1}};
  const instructions moves{{move, 1}, {load, 0}, {increment, 0}};
  std::vector<sketch> all{
      // False sharing, and then a look at it behind a barrier.
      {2, {0, 1}, {writes_0, writes_1}},
      {2, {0, 1}, {writes_0 + meet + loads, writes_1 + meet + loads}},
      {2, {0, 1}, {writes_0 + meet + loads + loads, writes_1 + meet + loads}},
      // A counter under a lock, between ranks and between threads of a rank.
      {2, {0, 1}, {counts + counts, counts + counts}},
      {3, {0, 1, 2}, {counts, counts, counts}},
      {2, {0, 0, 1}, {counts, counts, counts}},
      {2, {0, 0, 1}, {writes_0, counts, {{load, 1}}}},
      {2, {0, 1, 1}, {counts + meet + loads, counts + meet + loads, writes_1 + meet + loads}},
      // A thread that moves.
      {2, {0, 1}, {writes_0 + moves + meet + loads, meet + instructions{{load, 0}}}},
      // One rank that only loads from what two others store to.
      {3,
       {0, 1, 2},
       {instructions{{increment, 0}} + meet + loads, meet + loads,
        instructions{{increment, 1}} + meet + loads}}};
  if (how == protocol::seq) {
    // Instructions on two pages, and a race.
    all.push_back({2, {0, 1}, {{{increment_two, 0, 2}}, {{increment_two, 2, 0}}}});
    all.push_back({2,
                   {0, 1, 1},
                   {{{increment_two, 0, 2}}, {{increment_two, 2, 0}}, {{increment_two, 1, 3}}}});
    all.push_back({2, {0, 1}, {{{increment, 0}, {load, 2}}, {{increment, 2}, {load, 0}}}});
  }
  return all;
}

bool has_barrier(const instructions& code) {
  for (const instruction& i : code) {
    if (i.what == operation::barrier) return true;
  }
  return false;
}

program made_of(const sketch& s, protocol how) {
  program p;
  p.how = how;
  p.ranks = s.ranks;
  p.threads = static_cast<int>(s.code.size());
  for (std::size_t t = 0; t < s.code.size(); ++t) {
    p.rank[t] = s.rank[t];
    p.code[t] = s.code[t];
    p.meets[t] = has_barrier(s.code[t]);
  }
  return p;
}

}  // namespace

std::vector<program> pointed_programs(protocol how) {
  // Each bit is a choice of an implementation of `lmw`; the other protocols have none here.
  const unsigned choices = how == protocol::lmw ? 16 : 1;
  std::vector<program> all;
  for (const sketch& s : sketches(how)) {
    for (unsigned choice = 0; choice < choices; ++choice) {
      program p = made_of(s, how);
      p.has_exclusive = (choice & 1) != 0;
      p.pages_are_claimed = p.pages_stick = (choice & 2) != 0;
      p.collects = (choice & 4) != 0;
      p.answers_with_pages = (choice & 8) != 0;
      all.push_back(p);
    }
  }
  return all;
}

}  // namespace page_model
