// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_text.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.hpp"
#include "sojourn/detail/collective_plan.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t fibers_shown = 20;
constexpr std::size_t places_shown = 3;
constexpr std::size_t steps_told = 12;
constexpr std::size_t ranks_told = 8;
// Ages of waits are shown from this length on: in a hang that is noticed at once, they would tell
// nothing.
constexpr std::uint64_t shown_from_ns = 100'000'000;

/// "thread `sleeper`"
std::string thread_text(const node_name& n) { return "thread `" + n.thread + "`"; }

std::string seconds(double s) { return format(s < 9.95 ? "%.1f s" : "%.0f s", s); }

/// "waits for a sojourn::…", for an object in the memory of the fiber's rank; else "".
std::string local_wait(wait_kind kind) {
  switch (kind) {
    case wait_kind::being_read:
      return "waits until another rank has read frames that lie where it would run";
    case wait_kind::mutex:
      return "waits for a sojourn::mutex";
    case wait_kind::static_variable:
      return "waits for a static variable";
    case wait_kind::once:
      return "waits for a function of std::call_once";
    case wait_kind::condition:
      return "waits in a sojourn::condition_variable";
    case wait_kind::semaphore:
      return "waits for a sojourn::semaphore";
    case wait_kind::latch:
      return "waits for a sojourn::latch";
    case wait_kind::dist_object:
      return "waits for a sojourn::dist_object";
    case wait_kind::shared_page:
      return "waits for a page of shared memory";
    case wait_kind::shared_mutex:
      return "waits for a sojourn::shared::mutex";
    case wait_kind::shared_barrier:
      return "waits in sojourn::shared::barrier()";
    case wait_kind::shared_local_barrier:
      return "waits in sojourn::shared::local_barrier()";
    case wait_kind::shared_atomic:
      return "waits for an answer about a sojourn::shared::atomic";
    case wait_kind::shared_flag:
      return "waits for a sojourn::shared::flag";
    case wait_kind::shared_condition:
      return "waits in a sojourn::shared::condition_variable";
    case wait_kind::shared_counted_barrier:
      return "waits at a sojourn::shared::counted_barrier";
    default:
      return "";
  }
}

/// What the fiber does that another one waits for: it "holds" a mutex, "runs" a function,
/// "initialises" a variable.
const char* what_holders_do(wait_kind kind) {
  return kind == wait_kind::mutex ? "holds" : kind == wait_kind::once ? "runs" : "initialises";
}

/// " (0x270000000040, which rank 2 keeps)", for an object that ranks share; else "".
std::string shared_object(const fiber_record& fiber) {
  if (fiber.object == 0) return "";
  return format(" (0x%llx", static_cast<unsigned long long>(fiber.object)) +
         (fiber.home < 0 ? ")" : ", which rank " + std::to_string(fiber.home) + " keeps)");
}

/// "another 1.2 s"
std::string time_left(const fiber_record& fiber) {
  return "another " + seconds(static_cast<double>(fiber.left_ns) / 1e9);
}

/// ", for another 1.2 s at most"
std::string at_most(const fiber_record& fiber) {
  return has_limit(fiber) ? ", for " + time_left(fiber) + " at most" : "";
}

std::string first_text(const fiber_record& fiber) {
  return "waits for the first of " +
         (fiber.results == 0 ? "several" : std::to_string(fiber.results)) + " results";
}

std::string collective_text(const fiber_record& fiber) {
  bool is_end = static_cast<collective>(fiber.operation) == collective::end_of_program;
  return operation_of(fiber) + (is_end ? "" : "()");
}

/// "a, b and c"
std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + all[i];
  return text;
}

/// "waits for", "waits in barrier() for", …
std::string verb(const fiber_record& f) {
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
    case wait_kind::static_variable:
      return local_wait(f.kind) + " initialised by";
    case wait_kind::once:
      return local_wait(f.kind) + " run by";
    case wait_kind::shared_mutex:
      return local_wait(f.kind) + shared_object(f) + " held by";
    case wait_kind::shared_barrier:
    case wait_kind::shared_local_barrier:
      return local_wait(f.kind) + " for";
    case wait_kind::first:
      return first_text(f) + ", one of them from";
    default:
      return "waits for";
  }
}

std::string places_text(const node_name& n) {
  std::string text = n.thread.empty() ? "" : " in " + thread_text(n);
  for (std::size_t i = 0; i < std::min(n.places.size(), places_shown); ++i) {
    text += (i == 0   ? (n.thread.empty() ? " in " : ": ")
             : i == 1 ? "; called by "
                      : ", ") +
            text_of(n.places[i]);
  }
  return text;
}

/// The words for what the graph says.
class hang_words {
 public:
  hang_words(const hang_view& view, const wait_graph& waits, const std::vector<node_name>& names)
      : view_(view), waits_(waits), names_(names) {}

  std::string sentence() const {
    if (std::string missing = who_has_not_joined(); !missing.empty()) return missing;
    if (!waits_.proven_circle().empty()) return "deadlock: " + tell({waits_.proven_circle(), true});
    if (waits_.nodes().empty()) return "no rank has reported what it waits for";
    if (int end = waits_.where_all_lead(); end >= 0) return all_wait_for(end);
    const wait_graph::route way = waits_.most_telling();
    if (way.nodes.empty()) return all_that_runs();
    return (way.closed || view_.proven ? "deadlock: " : "") + tell(way);
  }

  /// The lines on one rank.
  std::string rank_text(int number) const {
    const rank_view& rank = view_.ranks[static_cast<std::size_t>(number)];
    std::string text = "rank " + std::to_string(number);
    std::string program = rank.program.empty() ? "" : ", " + rank.program;
    if (rank.pid != 0) text += " (pid " + std::to_string(rank.pid) + program + ")";
    const std::vector<wait_graph::node>& nodes = waits_.nodes();
    auto mine = [number](const wait_graph::node& n) { return n.rank == number; };
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
        return text + " is frozen, with its control group\n";
      case rank_condition::dying:
        return text + " is dying: its core is being written\n";
      case rank_condition::computing: {
        auto runs = std::find_if(nodes.begin(), nodes.end(), mine);
        bool told_how_long = rank.quiet_seconds > 0;
        text += told_how_long ? " has been " : " is ";
        text += rank.in_system_call ? "in a system call" : "computing";
        if (told_how_long) text += " for " + seconds(rank.quiet_seconds);
        if (runs != nodes.end()) {
          text += places_text(names_[static_cast<std::size_t>(runs - nodes.begin())]);
        }
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
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!mine(nodes[i]) || nodes[i].fiber == nullptr) continue;
      // The main fiber, the last, is shown in any case.
      if (shown + 1 >= fibers_shown && !nodes[i].fiber->is_main) continue;
      text += fiber_text(static_cast<int>(i));
      ++shown;
    }
    if (shown < alive) text += "  and " + std::to_string(alive - shown) + " more\n";
    return text;
  }

 private:
  /// "`f` (x.cpp:12)" or "thread `t`: `f` (x.cpp:12)", as the report names the node.
  std::string name(int i, bool with_line) const {
    const node_name& named = names_[static_cast<std::size_t>(i)];
    const fiber_record* fiber = waits_.at(i).fiber;
    code_place place;
    if (!named.places.empty()) {
      place = named.places.front();
    } else {
      if (!named.thread.empty()) return thread_text(named);
      if (fiber == nullptr) return "the code that runs there";
      if (!fiber->is_main) return "a fiber";
      place.function = "main";
    }
    if (!with_line) place.line = 0;
    return (named.thread.empty() ? "" : thread_text(named) + ": ") + text_of(place);
  }

  std::string fiber_text(int i) const {
    const fiber_record& f = *waits_.at(i).fiber;
    std::string text = "  " + name(i, true) + " " + wait_text(i);
    if (f.waited_ns >= shown_from_ns && f.kind != wait_kind::time) {
      text += ", for " + seconds(static_cast<double>(f.waited_ns) / 1e9);
    }
    if (f.result != 0) text += "; its caller is rank " + std::to_string(home_of(f.result));
    const std::vector<code_place>& places = names_[static_cast<std::size_t>(i)].places;
    for (std::size_t p = 1; p < std::min(places.size(), places_shown); ++p) {
      text += (p == 1 ? "; called by " : ", ") + text_of(places[p]);
    }
    return text + "\n";
  }

  /// What a fiber waits for, as the report's line on that fiber says it.
  std::string wait_text(int i) const {
    const wait_graph::node& n = waits_.at(i);
    const fiber_record& f = *n.fiber;
    std::string rank = "rank " + std::to_string(f.rank);
    switch (f.kind) {
      case wait_kind::ready:
        return "is ready to run";
      case wait_kind::call:
        return "waits for the answer of " + rank + by(n.next) + at_most(f);
      case wait_kind::result:
        if (n.next < 0) return "waits for a result that " + who_is_not_told() + at_most(f);
        return "waits for a result from rank " + std::to_string(waits_.at(n.next).rank) +
               by(n.next) + at_most(f);
      case wait_kind::first:
        return first_text(f) + (f.rank < 0 ? "" : ", one of them from " + rank) + at_most(f);
      case wait_kind::collective:
        return "waits in " + collective_text(f) + " for " + rank;
      case wait_kind::finish:
        return n.next < 0 ? "waits in finish() for computations on their way"
                          : "waits in finish() for rank " + std::to_string(waits_.at(n.next).rank) +
                                by(n.next);
      case wait_kind::room:
        return "waits for room to send to " + rank;
      case wait_kind::fibers:
        return "has returned, and waits for the other fibers of its rank";
      case wait_kind::time:
        return "sleeps for " + time_left(f);
      case wait_kind::mutex:
      case wait_kind::static_variable:
      case wait_kind::once:
        return local_wait(f.kind) +
               (n.next < 0 ? "" : " that " + name(n.next, false) + " " + what_holders_do(f.kind)) +
               at_most(f);
      case wait_kind::being_read:
      case wait_kind::condition:
      case wait_kind::semaphore:
      case wait_kind::latch:
      case wait_kind::dist_object:
      case wait_kind::shared_page:
      case wait_kind::shared_local_barrier:
      case wait_kind::shared_atomic:
      case wait_kind::shared_flag:
      case wait_kind::shared_condition:
        return local_wait(f.kind) + shared_object(f) + at_most(f);
      case wait_kind::shared_mutex:
      case wait_kind::shared_barrier:
      case wait_kind::shared_counted_barrier:
        return local_wait(f.kind) + shared_object(f) + who_is_missing(i);
      case wait_kind::barrier:
        return "is paused until main reaches a barrier(), because this job was restored";
      case wait_kind::unknown:
        break;
    }
    return "waits for something unknown";
  }

  /// Names those for whom a fiber waits at an object of shared memory; "" when no rank has told.
  std::string who_is_missing(int i) const {
    const fiber_record& f = *waits_.at(i).fiber;
    if (f.kind == wait_kind::shared_mutex) return who_has_mutex(i);
    if (f.kind == wait_kind::shared_barrier) return who_has_not_arrived();
    if (f.kind != wait_kind::shared_counted_barrier || f.results == 0) return "";
    const std::size_t here = waits_.waiting_with(i);
    return format(" of %u fibers, where %zu %s", f.results, here, here == 1 ? "waits" : "wait");
  }

  std::string who_has_mutex(int i) const {
    const wait_graph::holding held = waits_.holding_of(i);
    if (held.mutex == nullptr) return "";
    const std::vector<code_place>& places = names_[static_cast<std::size_t>(i)].locked_at;
    const std::string where = places.empty() ? "" : " in " + text_of(places.front());
    const std::string rank = "rank " + std::to_string(held.rank);
    if (held.mutex->fiber == held_mutex::ended) {
      return " that a fiber of " + rank + " locked" + where +
             ", which has ended without unlocking it";
    }
    const std::string holder = held.node < 0 ? "a fiber" : name(held.node, false);
    return " that " + (holder == "a fiber" ? holder + " of " + rank : rank + " " + holder) +
           " holds" + (where.empty() ? "" : ", locked" + where);
  }

  std::string who_has_not_arrived() const {
    std::vector<std::string> ranks;
    for (const wait_graph::absentee& a : waits_.absent()) {
      std::string rank = "rank " + std::to_string(a.rank);
      if (a.members != 1) {
        rank = a.fibers < a.members ? format("%u of the %u threads of ", a.fibers, a.members) + rank
                                    : format("all %u threads of ", a.members) + rank;
      }
      ranks.push_back(std::move(rank));
    }
    if (ranks.size() > ranks_told) {
      const std::size_t more = ranks.size() - ranks_told + 1;
      ranks.resize(ranks_told - 1);
      ranks.push_back(format("%zu more ranks", more));
    }
    return ranks.empty() ? "" : " for " + listed(ranks);
  }

  /// ", `f`": names the node that is waited for, if it is known.
  std::string by(int next) const {
    if (next < 0) return "";
    const bool has_places = !names_[static_cast<std::size_t>(next)].places.empty();
    if (waits_.at(next).fiber == nullptr && !has_places) return ", which " + running_where(next);
    return ", " + name(next, false);
  }

  /// Names the ranks that have not joined the job, because nothing begins before all have. "" when
  /// all have joined, or none has.
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
    return waits_.untold() > 0 || !view_.proven ? "none of the reported fibers gives"
                                                : "no fiber is left to give";
  }

  std::string spoken(int i) const {
    return "rank " + std::to_string(waits_.at(i).rank) + " " + name(i, true);
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

  std::string last_step(int i) const {
    const fiber_record& f = *waits_.at(i).fiber;
    if (f.kind == wait_kind::ready) return "is ready to run";
    if (has_limit(f)) return wait_text(i);
    if (std::string text = local_wait(f.kind); !text.empty())
      return text + shared_object(f) + who_is_missing(i);
    if (f.rank >= 0 && f.rank < static_cast<int>(view_.ranks.size())) {
      return verb(f) + " " + rank_without_fiber(f.rank);
    }
    if (f.kind == wait_kind::result) return "waits for a result that " + who_is_not_told();
    if (f.kind == wait_kind::first) return first_text(f);
    if (f.kind == wait_kind::finish) return "waits in finish() for computations on their way";
    return "waits";
  }

  std::string running_text(int i) const {
    return "rank " + std::to_string(waits_.at(i).rank) + ", which " + running_where(i);
  }

  std::string running_where(int i) const {
    if (wait_graph::waits_for_its_turn(waits_.at(i))) return name(i, true) + " is ready to run";
    const auto rank = static_cast<std::size_t>(waits_.at(i).rank);
    bool in_system_call = view_.ranks[rank].in_system_call;
    std::string text = in_system_call ? "is in a system call" : "computes";
    return names_[static_cast<std::size_t>(i)].places.empty() ? text
                                                              : text + " in " + name(i, true);
  }

  /// The sentence when nobody waits for another rank.
  std::string all_that_runs() const {
    constexpr int most = 2;
    const int count = static_cast<int>(waits_.nodes().size());
    std::string text;
    for (int i = 0; i < std::min(count, most); ++i) {
      text += (i == 0 ? "rank " : ", rank ") + std::to_string(waits_.at(i).rank) + " " +
              running_where(i);
    }
    if (count > most) text += ", and so on";
    return text;
  }

  std::string tell(const wait_graph::route& way) const {
    const std::vector<int>& chain = way.nodes;
    std::string text = spoken(chain.front());
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const fiber_record* fiber = waits_.at(chain[i]).fiber;
      std::string joint = i == 0 ? " " : ", which ";
      if (i + 1 == chain.size()) {
        if (!way.closed && fiber != nullptr) text += joint + last_step(chain[i]);
        break;
      }
      if (i == steps_told) {
        // Ranks tell only of some of their fibers: the chain may go on among the others.
        bool cut_off = waits_.untold() > 0 && !way.closed;
        std::size_t more = chain.size() - i - 1 + (cut_off ? waits_.untold() : 0);
        text += joint + "waits for " + (cut_off ? "up to " : "") + std::to_string(more) + " more";
        break;
      }
      const bool next_runs = waits_.at(chain[i + 1]).fiber == nullptr;
      text += joint + verb(*fiber) + " " +
              (next_runs ? running_text(chain[i + 1]) : spoken(chain[i + 1]));
      if (way.closed && i + 2 == chain.size()) text += " again";
    }
    return text;
  }

  /// The sentence when all fibers wait, in the end, for one rank that computes.
  std::string all_wait_for(int end) const {
    if (waits_.nodes().size() > 1) return "everything waits for " + running_text(end);
    return "rank " + std::to_string(waits_.at(end).rank) + " " + running_where(end);
  }

  const hang_view& view_;
  const wait_graph& waits_;
  const std::vector<node_name>& names_;
};

}  // namespace

std::string hang_sentence(const hang_view& view, const wait_graph& waits,
                          const std::vector<node_name>& names) {
  return hang_words(view, waits, names).sentence();
}

std::string ranks_text(const hang_view& view, const wait_graph& waits,
                       const std::vector<node_name>& names) {
  const hang_words words(view, waits, names);
  std::string text;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) text += words.rank_text(static_cast<int>(r));
  return text;
}

}  // namespace sojourn::detail
