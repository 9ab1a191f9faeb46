// SPDX-License-Identifier: Apache-2.0
// The wait-for graph of a job: who waits for whom, by the ranks' reports. It holds numbers only;
// hang_text.hpp and hang_json.hpp put it into words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "observe/hang_view.hpp"

namespace sojourn::detail {

/// True for the main fiber of a rank whose body has not returned.
bool is_in_body(const fiber_record& fiber);

/// True for a wait that ends when its time is over.
bool has_limit(const fiber_record& fiber);

class wait_graph {
 public:
  /// A fiber that a rank has told of, or the code that runs on a rank that computes.
  struct node {
    int rank;
    const fiber_record* fiber = nullptr;  ///< Null: the code that runs.
    int next = -1;                        ///< The node it waits for, or -1.
  };

  /// The waits from its first node on, one leading to the next.
  struct route {
    std::vector<int> nodes;
    bool
        closed;  ///< It ends with a node that it has met before; else nobody knows what comes next.
  };

  /// Which fiber has a shared::mutex.
  struct holding {
    int rank = -1;  ///< -1: no rank tells that it has the mutex.
    const held_mutex* mutex = nullptr;
    int node = -1;  ///< The fiber that has it, if a rank has told of that fiber; else -1.
  };

  /// A rank of which fibers that take part in shared::barrier() have not arrived.
  struct absentee {
    int rank;
    std::uint32_t fibers;
    std::uint32_t members;
    int node;  ///< The code that runs there, or the first fiber that has not arrived, or -1.
  };

  /// Requires: `view` outlives the graph.
  explicit wait_graph(const hang_view& view);

  /// The ranks' nodes one rank after the other: what runs, then the fibers in the report's order.
  const std::vector<node>& nodes() const { return nodes_; }
  const node& at(int i) const { return nodes_[static_cast<std::size_t>(i)]; }

  /// Who has the shared::mutex that node `i` waits for.
  holding holding_of(int i) const;

  /// The ranks for whose fibers those in shared::barrier() wait.
  const std::vector<absentee>& absent() const { return absent_; }

  /// How many of the fibers that ranks have told of wait at the counted barrier of node `i`, itself
  /// included.
  std::size_t waiting_with(int i) const;

  /// How many fibers no rank has told of.
  std::size_t untold() const { return untold_; }

  /// The proven circle, if there is one. Its first node is also its last.
  const std::vector<int>& proven_circle() const { return circle_; }

  route follow(int from) const;

  /// The route that tells most about why the job stands still: the shortest circle or, without a
  /// circle, a chain. Chains that lead to code that runs, or to a rank that is held, come first;
  /// then those that begin in a body that has not returned; then the longest. Empty when no fiber
  /// is known to wait for anything but its turn.
  route most_telling() const;
  /// True for a fiber that goes on when its rank comes to it, which nothing prevents.
  static bool waits_for_its_turn(const node& n);

  /// The node of the running code to which all routes lead, or -1.
  int where_all_lead() const;

  /// True when no main fiber can go on, because of the proven circle, whatever else runs. A circle
  /// through a shared::mutex is told, but other fibers of its rank are free to unlock it.
  bool no_main_goes_on() const;

 private:
  int node_of(const told_fiber& told) const;
  int first_fiber_of(int rank) const;
  int running_on(int rank) const;
  int main_of(int rank) const;
  int giver_of(ticket_id ticket) const;
  int awaited_by(int i) const;
  bool is_absent(const node& n) const;
  void find_absent();
  bool leads_on(const route& way) const;
  bool is_better(const route& way, const route& than) const;
  template <class Condition>
  int first_on(int rank, Condition holds) const;

  const hang_view& view_;
  std::vector<node> nodes_;
  std::size_t untold_ = 0;
  std::vector<int> circle_;
  std::vector<absentee> absent_;
  std::vector<int> first_;          ///< By rank: the first of its nodes; one more entry at the end.
  std::map<ticket_id, int> giver_;  ///< The node whose end gives a ticket its result.
  std::map<ticket_id, ticket_id> source_;  ///< The ticket whose result a ticket gets.
};

}  // namespace sojourn::detail
