// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/refusals.hpp"

#include <cstdint>
#include <unordered_set>

#include "base/check.hpp"
#include "fiber/call_below.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_waits.hpp"
#include "memory/address_map.hpp"
#include "message/programs.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/thread_trailer.hpp"
#include "object/replicated.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/dist_objects.hpp"
#include "rpc/kept_values.hpp"
#include "rpc/scopes.hpp"
#include "rpc/tickets.hpp"
#include "sojourn/detail/owner.hpp"

namespace sojourn::detail {

void refuse_checkpoint(checkpoint_refusal why, const std::string& text) {
  throw checkpoint_error(why, "no checkpoint was written: " + text);
}

void refuse_several_programs() {
  if (!several_programs) return;
  refuse_checkpoint(
      checkpoint_refusal::several_programs,
      "the ranks of this job run several programs, and only a job of one program can be saved");
}

void refuse_unless_main() {
  const piece* p = running_piece();
  bool is_main = p != nullptr && p->slot == slots.main_slot() && p->hi == slots.high(p->slot) &&
                 p->thread == 0;
  if (!is_main || youngest_mark() != 0 || running.holds != nullptr) {
    refuse_checkpoint(
        checkpoint_refusal::not_main,
        "checkpoint() must be called by main on every rank, not by a thread or a call, and outside "
        "of any activation, fork, finish or stay");
  }
}

namespace {

/// What a refusal calls a fiber.
std::string name_of(const piece* p) {
  if (p->thread != 0 && p->extra != nullptr && !p->extra->name.empty()) {
    return format("the thread `%s`", std::string(p->extra->name.view()).c_str());
  }
  if (p->thread != 0) {
    return format("the thread of id 0x%llx", static_cast<unsigned long long>(p->thread));
  }
  if (p->called_by != no_rank) return format("the call from rank %d", p->called_by);
  return "a fiber";
}

/// True for memory of this rank that its file holds.
bool is_saved(const void* object) {
  auto address = reinterpret_cast<std::uint64_t>(object);
  if (addresses.in_stacks(address)) return !slots.is_main(slots.index_of(address));
  return is_here(address) || addresses.in_arenas(address);
}

void refuse_object(const piece* p, const char* does, const waiters& object) {
  if (is_saved(&object)) return;
  refuse_checkpoint(
      checkpoint_refusal::waits_outside,
      format("%s %s a synchronisation object at 0x%llx, which is not saved with it: keep such "
             "objects in the global heap, in a thread's heap or in its frames, not in variables "
             "of the program or in main",
             name_of(p).c_str(), does,
             static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(&object))));
}

void refuse_unless_saved(const piece* p, bool is_awaited_or_ready) {
  using enum checkpoint_refusal;
  auto because = [&](checkpoint_refusal why, const char* text) {
    refuse_checkpoint(why, name_of(p) + ' ' + text);
  };
  if (slots.is_main(p->slot)) {
    because(part_of_main,
            "is a part of main that a fork or an activation began, and has not ended");
  }
  if (p->scope != nullptr) because(in_finish, "belongs to a finish that has not ended");
  if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0 || p->marks_hold_exceptions) {
    because(handles_exception, "waits in a catch block, and the exception is not saved");
  }
  if (p->static_inits != 0) because(initialises, "is initialising a static variable");
  if (p->holds != nullptr && p->holds->what == hold::kind::copy) {
    because(stays,
            "is in a method of an object of another rank that is here, or of a copy of one "
            "(via::fetch, via::cache): wait for it first");
  }
  if (reads_a_version(p)) because(stays, "reads a replicated object: wait for it first");
  if (p->holds != nullptr)
    because(stays, "has a `stay`: it uses something that only its process has");
  for (const mutex_state* m = p->mutexes; m != nullptr; m = m->before) {
    refuse_object(p, "holds", *m);
  }
  if (p->waits_on != nullptr) return refuse_object(p, "waits for", *p->waits_on);
  if (!is_awaited_or_ready && p->timer == 0) {
    because(waits_outside, "waits for something that is not saved");
  }
}

/// Refuses what the floor `rpc` has of fibers and no file holds.
void refuse_unsaved_of_rank() {
  using enum checkpoint_refusal;
  if (finish_is_open()) refuse_checkpoint(in_finish, "a finish is open: let it end first");
  if (collectives_are_open()) {
    refuse_checkpoint(
        in_collective,
        "a thread has begun a collective operation that has not ended: let it end first");
  }
  if (const char* what = unsaved_dist_object(is_saved); what != nullptr) {
    refuse_checkpoint(waits_outside,
                      std::string(what) +
                          ", and dist_objects are not saved: let main make them, keep them in "
                          "main or on the C++ heap, and wait for calls first");
  }
  if (values_are_kept()) {
    refuse_checkpoint(
        waits_outside,
        "a value of more than 512 KiB, or of a type that cannot travel, is not saved before its "
        "receiver has read it: get() such results first");
  }
}

/// Warns of words in the frames of a fiber that point into memory which is not saved.
void scan_for_private_memory(piece* p) {
  struct suspect {
    std::uint64_t address;
    std::uint64_t hi;
    std::uint64_t word;
  };
  std::vector<std::uint64_t> words(p->bytes() / sizeof(std::uint64_t));
  copy_out(p, reinterpret_cast<std::byte*>(words.data()));
  for (std::size_t i = 0;; ++i) {
    i += find_stale_pointer(words.data() + i, words.size() - i);
    if (i >= words.size()) return;
    if (!is_allocated_object(words[i])) continue;
    place(p);
    suspect found{p->sp + i * sizeof(std::uint64_t), p->hi, words[i]};
    call_below(
        p,
        [](void* argument) {
          const auto& s = *static_cast<suspect*>(argument);
          report_stale_pointer(s.address, s.hi, s.word, false, leaves_for::a_checkpoint);
        },
        &found);
  }
}

}  // namespace

std::vector<piece*> fibers_to_save(const piece* main) {
  std::vector<piece*> list;
  each_piece(
      [](piece* p, void* context) {
        if (p != spare_piece()) static_cast<std::vector<piece*>*>(context)->push_back(p);
      },
      &list);
  std::erase(list, main);
  std::unordered_set<const piece*> known;
  for (const piece* p = first_standing(); p != nullptr; p = p->next_ready) known.insert(p);
  each_open_ticket(
      [](const ticket& t, void* context) {
        if (t.is_awaited() && forwarded_to(t) == 0 && waits_for_several(t) == 0) {
          refuse_checkpoint(
              checkpoint_refusal::continues,
              "a continuation (future::then) waits for its result: wait for the future that "
              "then() returned first");
        }
        if (t.waiter != nullptr) static_cast<decltype(known)*>(context)->insert(t.waiter);
      },
      &known);
  for (const mutex_state* m = running.mutexes; m != nullptr; m = m->before) {
    if (!is_saved(m)) continue;
    refuse_checkpoint(
        checkpoint_refusal::part_of_main,
        "main holds a sojourn::mutex of the global heap, and would not hold it in a restored job: "
        "unlock it first");
  }
  refuse_unsaved_of_rank();
  for (const piece* p : list) refuse_unless_saved(p, known.contains(p));
  if (scan_is_enabled()) {
    for (piece* p : list) scan_for_private_memory(p);
  }
  return list;
}

}  // namespace sojourn::detail
