// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "observe/code_place.hpp"
#include "rpc/rpc.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t fibers_shown = 20;
constexpr std::size_t places_shown = 3;
constexpr std::size_t steps_told = 12;
// Shorter waits are not shown: a hang that is noticed at once has no age.
constexpr std::uint64_t shown_from_ns = 100'000'000;

/// A fiber that a rank has told of, or the code that runs on a rank that computes.
struct node {
  int rank;
  const fiber_record* fiber = nullptr;  ///< Null: the code that runs.
  std::vector<code_place> places = {};
  std::string thread = {};  ///< Its name, or "".
  int next = -1;            ///< The node it waits for.
};

/// The name, fit for one line and for JSON even when a broken rank has written it.
std::string text_of(const told_name& told) {
  std::string text(told, strnlen(told, sizeof told));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

/// "thread `sleeper`"
std::string thread_text(const node& n) { return "thread `" + n.thread + "`"; }

std::string seconds(double s) { return format(s < 9.95 ? "%.1f s" : "%.0f s", s); }

std::string json_text(const std::string& text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      json += format("\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

const char* json_name(wait_kind kind) {
  switch (kind) {
    case wait_kind::ready:
      return "turn";
    case wait_kind::call:
      return "call";
    case wait_kind::result:
      return "result";
    case wait_kind::collective:
      return "collective";
    case wait_kind::finish:
      return "finish";
    case wait_kind::room:
      return "room";
    case wait_kind::fibers:
      return "fibers";
    case wait_kind::time:
      return "time";
    case wait_kind::mutex:
      return "mutex";
    case wait_kind::condition:
      return "condition_variable";
    case wait_kind::semaphore:
      return "semaphore";
    case wait_kind::latch:
      return "latch";
    case wait_kind::barrier:
      return "barrier";
    case wait_kind::unknown:
      break;
  }
  return "unknown";
}

const char* json_name(rank_condition condition) {
  switch (condition) {
    case rank_condition::absent:
      return "absent";
    case rank_condition::waiting:
      return "waiting";
    case rank_condition::computing:
      return "computing";
    case rank_condition::silent:
      return "silent";
    case rank_condition::stopped:
      return "stopped";
    case rank_condition::frozen:
      return "frozen";
    case rank_condition::dying:
      return "dying";
    case rank_condition::finished:
      break;
  }
  return "finished";
}

/// "waits for a sojourn::…", for an object in the memory of the fiber's rank; else "".
std::string local_wait(wait_kind kind) {
  switch (kind) {
    case wait_kind::mutex:
      return "waits for a sojourn::mutex";
    case wait_kind::condition:
      return "waits in a sojourn::condition_variable";
    case wait_kind::semaphore:
      return "waits for a sojourn::semaphore";
    case wait_kind::latch:
      return "waits for a sojourn::latch";
    default:
      return "";
  }
}

/// "another 1.2 s"
std::string time_left(const fiber_record& fiber) {
  return "another " + seconds(static_cast<double>(fiber.left_ns) / 1e9);
}

std::string operation_of(const fiber_record& fiber) {
  return name_of(static_cast<collective>(fiber.operation));
}

/// The wait-for graph.
class graph {
 public:
  explicit graph(const hang_view& view) : view_(view) {
    std::map<std::string, code_places> places_of;
    for (std::size_t r = 0; r < view.ranks.size(); ++r) {
      const rank_view& rank = view.ranks[r];
      code_places& places = places_of.try_emplace(rank.file, rank.file).first->second;
      int number = static_cast<int>(r);
      first_.push_back(static_cast<int>(nodes_.size()));
      if (rank.condition == rank_condition::computing) {
        bool has_stack = rank.report.stack_count > 0;
        if (has_stack && rank.report.runs_for != 0) {
          giver_[rank.report.runs_for] = static_cast<int>(nodes_.size());
        }
        nodes_.push_back({number, nullptr, places.of(rank.report.stack, rank.report.stack_count),
                          has_stack ? text_of(rank.report.runs_thread) : ""});
      }
      if (rank.condition != rank_condition::waiting &&
          rank.condition != rank_condition::computing) {
        continue;
      }
      std::uint32_t told = rank.report.fiber_count + (rank.condition == rank_condition::computing);
      if (rank.report.fibers_alive > told) untold_ += rank.report.fibers_alive - told;
      for (std::uint32_t i = 0; i < rank.report.fiber_count; ++i) {
        const fiber_record& fiber = rank.report.fibers[i];
        if (fiber.result != 0) giver_[fiber.result] = static_cast<int>(nodes_.size());
        nodes_.push_back(
            {number, &fiber, places.of(fiber.frames, fiber.frame_count), text_of(fiber.thread)});
      }
      for (std::uint32_t i = 0; i < rank.report.link_count; ++i) {
        source_[rank.report.links[i].to] = rank.report.links[i].from;
      }
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].fiber != nullptr) nodes_[i].next = awaited_by(static_cast<int>(i));
    }
    for (const told_fiber& told : view.circle) circle_.push_back(node_of(told));
    for (std::size_t i = 0; i < circle_.size(); ++i) {
      // A fiber that waits for several: show the wait for the one that is known never to come.
      nodes_[static_cast<std::size_t>(circle_[i])].next = circle_[(i + 1) % circle_.size()];
    }
    if (!circle_.empty()) circle_.push_back(circle_.front());
  }

  const std::vector<node>& nodes() const { return nodes_; }

  /// "`f` (x.cpp:12)" or "thread `t`: `f` (x.cpp:12)", as the report names the node.
  std::string name(const node& n, bool with_line) const {
    code_place place;
    if (!n.places.empty()) {
      place = n.places.front();
    } else {
      if (!n.thread.empty()) return thread_text(n);
      if (n.fiber == nullptr) return "what runs there";
      if (!n.fiber->is_main) return "a fiber";
      place.function = "main";
    }
    if (!with_line) place.line = 0;
    return (n.thread.empty() ? "" : thread_text(n) + ": ") + text_of(place);
  }

  std::string sentence() const {
    if (std::string missing = who_has_not_joined(); !missing.empty()) return missing;
    if (!circle_.empty()) return "deadlock: " + tell(circle_, true);
    if (nodes_.empty()) return "no rank has told of what it waits for";
    std::string common = all_wait_for_one();
    if (!common.empty()) return common;
    // The shortest circle or, without any, the longest chain. Before length counts whether it leads
    // to code that runs or a rank that stands still, then whether it begins in a body that has not
    // returned.
    std::vector<int> told;
    bool closed = false;
    auto leads_on = [this](const std::vector<int>& chain) {
      const fiber_record* last = at(chain.back()).fiber;
      return last == nullptr || stands_still(last->rank);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].fiber == nullptr) continue;
      auto [chain, circle] = follow(static_cast<int>(i));
      bool in_body = is_in_body(nodes_[i]);
      bool better = told.empty()                              ? true
                    : circle != closed                        ? circle
                    : leads_on(chain) != leads_on(told)       ? leads_on(chain)
                    : in_body != is_in_body(at(told.front())) ? in_body
                    : circle                                  ? chain.size() < told.size()
                                                              : chain.size() > told.size();
      if (!better) continue;
      told = std::move(chain);
      closed = circle;
    }
    if (told.empty()) return all_that_runs();
    std::string text = closed || view_.proven ? "deadlock: " : "";
    return text + tell(told, closed);
  }

  /// True when no main fiber can go on, whatever else runs.
  bool no_main_goes_on() const {
    if (circle_.empty()) return false;
    for (std::size_t r = 0; r < view_.ranks.size(); ++r) {
      if (view_.ranks[r].condition == rank_condition::finished) continue;
      int main = main_of(static_cast<int>(r));
      if (main < 0) return false;
      if (!is_in_body(at(main))) continue;
      std::vector<int> way = follow(main).nodes;
      if (std::none_of(way.begin(), way.end(), [this](int n) {
            return std::find(circle_.begin(), circle_.end(), n) != circle_.end();
          })) {
        return false;
      }
    }
    return true;
  }

  /// What a fiber waits for, as the report's line on that fiber says it.
  std::string wait_text(const node& n) const {
    const fiber_record& f = *n.fiber;
    std::string rank = "rank " + std::to_string(f.rank);
    switch (f.kind) {
      case wait_kind::ready:
        return "is ready to run";
      case wait_kind::call:
        return "waits for the answer of " + rank + by(n);
      case wait_kind::result:
        if (n.next < 0) return "waits for a result that " + who_is_not_told();
        return "waits for a result from rank " + std::to_string(at(n.next).rank) + by(n);
      case wait_kind::collective:
        return "waits in " + collective_text(f) + " for " + rank;
      case wait_kind::finish:
        return n.next < 0 ? "waits in finish() for computations on their way"
                          : "waits in finish() for rank " + std::to_string(at(n.next).rank) + by(n);
      case wait_kind::room:
        return "waits for room to send to " + rank;
      case wait_kind::fibers:
        return "has returned, and waits for the other fibers of its rank";
      case wait_kind::time:
        return "sleeps for " + time_left(f);
      case wait_kind::mutex:
        return local_wait(f.kind) +
               (n.next < 0 ? "" : " that " + name(at(n.next), false) + " holds");
      case wait_kind::condition:
      case wait_kind::semaphore:
      case wait_kind::latch:
        return local_wait(f.kind) +
               (f.left_ns == fiber_record::no_limit ? "" : ", for " + time_left(f) + " at most");
      case wait_kind::barrier:
        return "stands still until main meets a barrier(), for this job was restored";
      case wait_kind::unknown:
        break;
    }
    return "waits for something unknown";
  }

 private:
  const node& at(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  int node_of(const told_fiber& told) const {
    return first_[static_cast<std::size_t>(told.rank)] + (running_on(told.rank) >= 0) +
           static_cast<int>(told.number);
  }

  /// ", `f`": names what the node waits for.
  std::string by(const node& n) const {
    if (n.next < 0) return "";
    const node& next = at(n.next);
    if (next.fiber == nullptr && next.places.empty()) return ", which " + running_where(next);
    return ", " + name(next, false);
  }

  bool stands_still(int rank) const {
    if (rank < 0 || rank >= static_cast<int>(view_.ranks.size())) return false;
    rank_condition condition = view_.ranks[static_cast<std::size_t>(rank)].condition;
    return condition == rank_condition::stopped || condition == rank_condition::frozen ||
           condition == rank_condition::dying;
  }

  /// Says which ranks have not joined the job, for nothing begins before all have. "" when all
  /// have, or none.
  std::string who_has_not_joined() const {
    std::size_t missing = 0;
    std::string first;
    for (std::size_t r = 0; r < view_.ranks.size(); ++r) {
      if (view_.ranks[r].condition != rank_condition::absent) continue;
      if (missing++ == 0) first = "rank " + std::to_string(r);
    }
    if (missing == 0 || missing == view_.ranks.size()) return "";
    std::string others =
        missing == 1 ? ", which has" : format(" and %zu more, which have", missing - 1);
    return "everything waits for " + first + others + " not joined the job";
  }

  std::string who_is_not_told() const {
    return untold_ > 0 || !view_.proven ? "none of the fibers told of gives"
                                        : "no fiber is left to give";
  }

  static std::string collective_text(const fiber_record& fiber) {
    bool is_end = static_cast<collective>(fiber.operation) == collective::end_of_program;
    return operation_of(fiber) + (is_end ? "" : "()");
  }

  /// True for the main fiber of a rank whose body has not returned.
  static bool is_in_body(const node& n) {
    return n.fiber->is_main && n.fiber->kind != wait_kind::fibers &&
           static_cast<collective>(n.fiber->operation) != collective::end_of_program;
  }

  int giver_of(ticket_id ticket) const {
    for (int i = 0; i < 64; ++i) {
      if (auto found = giver_.find(ticket); found != giver_.end()) return found->second;
      auto from = source_.find(ticket);
      if (from == source_.end()) break;
      ticket = from->second;
    }
    return -1;
  }

  template <class Condition>
  int first_of(int rank, Condition holds) const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if ((rank < 0 || nodes_[i].rank == rank) && holds(nodes_[i])) return static_cast<int>(i);
    }
    return -1;
  }

  int running_on(int rank) const {
    return first_of(rank, [](const node& n) { return n.fiber == nullptr; });
  }
  int main_of(int rank) const {
    return first_of(rank, [](const node& n) { return n.fiber != nullptr && n.fiber->is_main; });
  }

  int awaited_by(int i) const {
    const node& n = at(i);
    const fiber_record& f = *n.fiber;
    auto others = [&n](auto holds) {
      return [&n, holds](const node& o) { return &o != &n && o.fiber != nullptr && holds(o); };
    };
    switch (f.kind) {
      case wait_kind::call:
      case wait_kind::result: {
        int giver = giver_of(f.waits_for);
        return giver >= 0 || f.rank < 0 ? giver : running_on(f.rank);
      }
      case wait_kind::collective: {
        if (int running = running_on(f.rank); running >= 0) return running;
        int there = first_of(
            f.rank, others([](const node& o) { return o.fiber->kind == wait_kind::collective; }));
        return there >= 0 ? there : main_of(f.rank);
      }
      case wait_kind::finish: {
        int inside =
            first_of(-1, others([&f](const node& o) { return o.fiber->scope == f.waits_for; }));
        return inside >= 0 ? inside : running_on(-1);
      }
      case wait_kind::room: {
        if (int running = running_on(f.rank); running >= 0) return running;
        int serving = first_of(f.rank, others([&n](const node& o) {
                                 return o.fiber->result != 0 && home_of(o.fiber->result) == n.rank;
                               }));
        return serving >= 0 ? serving : main_of(f.rank);
      }
      case wait_kind::fibers: {
        int other = first_of(n.rank, others([](const node&) { return true; }));
        return other >= 0 ? other : running_on(n.rank);
      }
      case wait_kind::ready:
        return running_on(n.rank);
      case wait_kind::mutex: {
        if (f.holder == fiber_record::holder_runs) return running_on(n.rank);
        int first = first_[static_cast<std::size_t>(n.rank)] + (running_on(n.rank) >= 0);
        return f.holder < 0 ? -1 : first + f.holder;
      }
      default:
        return -1;
    }
  }

  struct route {
    std::vector<int> nodes;
    bool closed;
  };
  route follow(int from) const {
    route c{{}, false};
    for (int i = from; i >= 0; i = at(i).next) {
      bool seen = std::find(c.nodes.begin(), c.nodes.end(), i) != c.nodes.end();
      c.nodes.push_back(i);
      if (seen) {
        c.closed = true;
        break;
      }
    }
    return c;
  }

  std::string spoken(const node& n) const {
    return "rank " + std::to_string(n.rank) + " " + name(n, true);
  }

  /// "waits for", "waits in barrier() for", …
  static std::string verb(const fiber_record& f) {
    switch (f.kind) {
      case wait_kind::collective:
        return "waits in " + collective_text(f) + " for";
      case wait_kind::finish:
        return "waits in finish() for";
      case wait_kind::room:
        return "waits for room to send to";
      case wait_kind::fibers:
        return "has returned and waits for";
      case wait_kind::mutex:
        return local_wait(f.kind) + " held by";
      default:
        return "waits for";
    }
  }

  std::string rank_without_fiber(int rank) const {
    std::string text = "rank " + std::to_string(rank);
    switch (view_.ranks[static_cast<std::size_t>(rank)].condition) {
      case rank_condition::absent:
        return text + ", which has not joined the job";
      case rank_condition::finished:
        return text + ", which has finished";
      case rank_condition::silent:
        return text + ", which does not answer";
      case rank_condition::stopped:
        return text + ", which is stopped";
      case rank_condition::frozen:
        return text + ", which is frozen";
      case rank_condition::dying:
        return text + ", which is dying";
      default:
        return text;
    }
  }

  std::string last_step(const node& n) const {
    if (n.fiber == nullptr) return "";
    const fiber_record& f = *n.fiber;
    if (f.kind == wait_kind::ready) return "is ready to run";
    if (f.kind == wait_kind::time) return "sleeps for " + time_left(f);
    if (std::string text = local_wait(f.kind); !text.empty()) return text;
    if (f.rank >= 0 && f.rank < static_cast<int>(view_.ranks.size())) {
      return verb(f) + " " + rank_without_fiber(f.rank);
    }
    if (f.kind == wait_kind::result) return "waits for a result that " + who_is_not_told();
    if (f.kind == wait_kind::finish) return "waits in finish() for computations on their way";
    return "waits";
  }

  std::string running_text(const node& n) const {
    return "rank " + std::to_string(n.rank) + ", which " + running_where(n);
  }

  std::string running_where(const node& n) const {
    bool in_system_call = view_.ranks[static_cast<std::size_t>(n.rank)].in_system_call;
    std::string text = in_system_call ? "is in a system call" : "computes";
    return n.places.empty() ? text : text + " in " + name(n, true);
  }

  /// The sentence when nobody waits for another rank.
  std::string all_that_runs() const {
    constexpr std::size_t most = 2;
    std::string text;
    for (std::size_t i = 0; i < std::min(nodes_.size(), most); ++i) {
      text += (i == 0 ? "rank " : ", rank ") + std::to_string(nodes_[i].rank) + " " +
              running_where(nodes_[i]);
    }
    if (nodes_.size() > most) text += ", and so on";
    return text;
  }

  std::string tell(const std::vector<int>& chain, bool closed) const {
    std::string text = spoken(at(chain.front()));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const node& n = at(chain[i]);
      std::string joint = i == 0 ? " " : ", which ";
      if (i + 1 == chain.size()) {
        if (!closed && n.fiber != nullptr) text += joint + last_step(n);
        break;
      }
      if (i == steps_told) {
        // Ranks tell only of some of their fibers: the chain may go on among the others.
        bool cut_off = untold_ > 0 && !closed;
        std::size_t more = chain.size() - i - 1 + (cut_off ? untold_ : 0);
        text += joint + "waits for " + (cut_off ? "up to " : "") + std::to_string(more) + " more";
        break;
      }
      const node& next = at(chain[i + 1]);
      text += joint + verb(*n.fiber) + " " +
              (next.fiber == nullptr ? running_text(next) : spoken(next));
      if (closed && i + 2 == chain.size()) text += " again";
    }
    return text;
  }

  /// The sentence when all fibers wait, in the end, for one rank that computes. Else "".
  std::string all_wait_for_one() const {
    int end = -1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      auto [chain, closed] = follow(static_cast<int>(i));
      if (closed || at(chain.back()).fiber != nullptr) return "";
      if (end >= 0 && end != chain.back()) return "";
      end = chain.back();
    }
    const node& n = at(end);
    if (nodes_.size() == 1) return "rank " + std::to_string(n.rank) + " " + running_where(n);
    return "everything waits for " + running_text(n);
  }

  const hang_view& view_;
  std::vector<node> nodes_;
  std::size_t untold_ = 0;        ///< Fibers that no rank has told of.
  std::vector<int> circle_ = {};  ///< Known never to go on; ends with the node that it begins with.
  std::vector<int> first_;        ///< Of each rank: the first of its nodes, if it has any.
  std::map<ticket_id, int> giver_;         ///< Node whose end gives a ticket its result.
  std::map<ticket_id, ticket_id> source_;  ///< For a ticket, the one whose result it gets.
};

std::string fiber_text(const graph& waits, const node& n) {
  std::string text = "  " + waits.name(n, true) + " " + waits.wait_text(n);
  if (n.fiber->waited_ns >= shown_from_ns && n.fiber->kind != wait_kind::time) {
    text += ", for " + seconds(static_cast<double>(n.fiber->waited_ns) / 1e9);
  }
  if (n.fiber->result != 0)
    text += "; its caller is rank " + std::to_string(home_of(n.fiber->result));
  for (std::size_t i = 1; i < std::min(n.places.size(), places_shown); ++i) {
    text += (i == 1 ? "; called by " : ", ") + text_of(n.places[i]);
  }
  return text + "\n";
}

std::string running_text(const node& n) {
  std::string text = n.thread.empty() ? "" : " in " + thread_text(n);
  for (std::size_t i = 0; i < std::min(n.places.size(), places_shown); ++i) {
    text += (i == 0   ? (n.thread.empty() ? " in " : ": ")
             : i == 1 ? "; called by "
                      : ", ") +
            text_of(n.places[i]);
  }
  return text;
}

std::string rank_text(const graph& waits, const rank_view& rank, int number) {
  std::string text = "rank " + std::to_string(number);
  std::string program = rank.program.empty() ? "" : ", " + rank.program;
  if (rank.pid != 0) text += " (pid " + std::to_string(rank.pid) + program + ")";
  auto mine = [number](const node& n) { return n.rank == number; };
  std::size_t alive = 0;
  switch (rank.condition) {
    case rank_condition::absent:
      return text + " has not joined the job\n";
    case rank_condition::finished:
      return text + " has finished\n";
    case rank_condition::silent:
      return text + " does not answer\n";
    case rank_condition::stopped:
      return text + " is stopped: by a signal (SIGCONT lets it go on), or a debugger holds it\n";
    case rank_condition::frozen:
      return text + " is frozen: its control group is\n";
    case rank_condition::dying:
      return text + " is dying: its core is being written\n";
    case rank_condition::computing: {
      auto runs = std::find_if(waits.nodes().begin(), waits.nodes().end(), mine);
      bool told_how_long = rank.quiet_seconds > 0;
      text += told_how_long ? " has been " : " is ";
      text += rank.in_system_call ? "in a system call" : "computing";
      if (told_how_long) text += " for " + seconds(rank.quiet_seconds);
      if (runs != waits.nodes().end()) text += running_text(*runs);
      text += "\n";
      alive = std::max<std::size_t>(rank.report.fibers_alive, 1) - 1;
      if (rank.report.fiber_count == 0 || alive == 0) return text;
      text += " and has " + std::to_string(alive) +
              (alive == 1 ? " other fiber:\n" : " other fibers, the newest first:\n");
      break;
    }
    case rank_condition::waiting:
      alive = rank.report.fibers_alive;
      text += alive == 0 ? " waits for messages, without a fiber\n"
                         : " waits, with " + std::to_string(alive) +
                               (alive == 1 ? " fiber:\n" : " fibers, the newest first:\n");
      break;
  }
  std::size_t shown = 0;
  for (const node& n : waits.nodes()) {
    if (!mine(n) || n.fiber == nullptr) continue;
    // The main fiber, the last, is shown in any case.
    if (shown + 1 >= fibers_shown && !n.fiber->is_main) continue;
    text += fiber_text(waits, n);
    ++shown;
  }
  if (shown < alive) text += "  and " + std::to_string(alive - shown) + " more\n";
  return text;
}

std::string places_json(const std::vector<code_place>& places) {
  std::string json = "[";
  for (const code_place& place : places) {
    if (json.size() > 1) json += ", ";
    json += "{\"function\": " + json_text(place.function) + ", \"file\": " + json_text(place.file) +
            ", \"line\": " + std::to_string(place.line) + "}";
  }
  return json + "]";
}

std::string thread_json(const node& n) {
  return n.thread.empty() ? "" : ", \"thread\": " + json_text(n.thread);
}

std::string fiber_json(const node& n, std::size_t id) {
  const fiber_record& f = *n.fiber;
  std::string json = "        {\"id\": " + std::to_string(id) +
                     ", \"main\": " + (f.is_main ? "true" : "false") + thread_json(n) +
                     ", \"waits_for\": {\"kind\": \"" + json_name(f.kind) + "\"";
  if (f.rank >= 0) json += ", \"rank\": " + std::to_string(f.rank);
  if (f.kind == wait_kind::collective) json += ", \"operation\": " + json_text(operation_of(f));
  if (f.waited_ns != 0) {
    json += format(", \"seconds\": %.3f", static_cast<double>(f.waited_ns) / 1e9);
  }
  if (f.left_ns != fiber_record::no_limit) {
    json += format(", \"seconds_left\": %.3f", static_cast<double>(f.left_ns) / 1e9);
  }
  json += "}";
  if (f.result != 0) json += ", \"answers_rank\": " + std::to_string(home_of(f.result));
  return json + ", \"stack\": " + places_json(n.places) + "}";
}

std::string json_of(const hang_view& view, const graph& waits, const std::string& sentence) {
  std::string json = "{\n  \"why\": " + json_text(view.why) + ",\n  \"deadlock\": " +
                     (view.proven || !view.circle.empty() ? "true" : "false") +
                     ",\n  \"sentence\": " + json_text(sentence) + ",\n  \"ranks\": [\n";
  const std::vector<node>& nodes = waits.nodes();
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const rank_view& rank = view.ranks[r];
    json += "    {\"rank\": " + std::to_string(r) + ", \"pid\": " + std::to_string(rank.pid) +
            (rank.program.empty() ? "" : ", \"program\": " + json_text(rank.program)) +
            ", \"state\": \"" + json_name(rank.condition) +
            "\", \"fibers_alive\": " + std::to_string(rank.report.fibers_alive) + ", \"stack\": ";
    std::string fibers;
    std::string stack = "[]";
    std::string running;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].rank != static_cast<int>(r)) continue;
      if (nodes[i].fiber == nullptr) {
        stack = places_json(nodes[i].places);
        running = thread_json(nodes[i]);
      } else {
        fibers += (fibers.empty() ? "\n" : ",\n") + fiber_json(nodes[i], i);
      }
    }
    json += stack + running + ",\n     \"fibers\": [" + fibers + "]}" +
            (r + 1 < view.ranks.size() ? ",\n" : "\n");
  }
  json += "  ],\n  \"edges\": [";
  std::string edges;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].next < 0) continue;
    const node& to = nodes[static_cast<std::size_t>(nodes[i].next)];
    edges += (edges.empty() ? "\n" : ",\n") + std::string("    {\"from\": ") + std::to_string(i) +
             ", \"from_rank\": " + std::to_string(nodes[i].rank) +
             (to.fiber != nullptr ? ", \"to\": " + std::to_string(nodes[i].next) : "") +
             ", \"to_rank\": " + std::to_string(to.rank) + "}";
  }
  return json + edges + "]\n}\n";
}

}  // namespace

hang_report explain(const hang_view& view, const std::string& speaker) {
  graph waits(view);
  hang_report report;
  report.sentence = waits.sentence();
  report.text = speaker + view.why + "\n";
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    report.text += rank_text(waits, view.ranks[r], static_cast<int>(r));
  }
  report.text += speaker + report.sentence + "\n";
  report.json = json_of(view, waits, report.sentence);
  report.no_main_goes_on = waits.no_main_goes_on();
  return report;
}

}  // namespace sojourn::detail
