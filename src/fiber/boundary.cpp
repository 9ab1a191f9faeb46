// SPDX-License-Identifier: Apache-2.0
#include "fiber/boundary.hpp"

#include <array>
#include <typeinfo>
#include <utility>

#include "fiber/fork_links.hpp"
#include "fiber/handler_context.hpp"
#include "fiber/piece.hpp"
#include "fiber/switch.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

/// What a handler for cut_child says of the call that it surrounds.
struct call_form {
  const std::type_info* type;
  mark_kind kind;
  child_result returns;
};

template <mark_kind Kind, std::uint8_t Bytes, bool IsReal>
call_form form_of() {
  return {&typeid(cut_child<Kind, Bytes, IsReal>), Kind, {Bytes, IsReal}};
}

template <mark_kind Kind>
std::array<call_form, 7> forms_of() {
  return {form_of<Kind, 0, false>(), form_of<Kind, 1, false>(), form_of<Kind, 2, false>(),
          form_of<Kind, 4, false>(), form_of<Kind, 8, false>(), form_of<Kind, 4, true>(),
          form_of<Kind, 8, true>()};
}

/// The call_form of a cut_child type; null for every other type.
const void* form_of(const std::type_info& type) {
  static const auto forms = [] {
    std::array<call_form, 21> all{};
    std::size_t next = 0;
    for (const auto& some : {forms_of<mark_kind::fork>(), forms_of<mark_kind::fork_by_reference>(),
                             forms_of<mark_kind::fork_pinned>()}) {
      for (const call_form& each : some) all[next++] = each;
    }
    return all;
  }();
  for (const call_form& each : forms) {
    if (*each.type == type) return &each;
  }
  return nullptr;
}

/// Stands for the registers of a resumable context's own frame. Their values are of no interest,
/// because the context has saved all registers on the stack.
std::uint64_t nobodys = 0;

unwind_tables tables(form_of);

}  // namespace

boundary boundary_of(mark* m) {
  boundary b;
  b.at = reinterpret_cast<std::uint64_t>(m);
  b.end = reinterpret_cast<std::uint64_t>(m->sp);
  b.kind = m->kind;
  b.open = m;
  return b;
}

namespace {

std::uint64_t* youngest_words(const piece* p) {
  return p->is_in_place() ? reinterpret_cast<std::uint64_t*>(p->sp)
                          : reinterpret_cast<std::uint64_t*>(p->image);
}

READS_FRAMES bool is_in_handler([[maybe_unused]] const std::uint64_t* words) {
#if SOJOURN_FORKS_BY_TABLES
  return *words == reinterpret_cast<std::uint64_t>(sojourn_resume_handler);
#else
  return false;
#endif
}

/// The first frame of a resumable context: the word at `sp` is the address where it goes on, and
/// the code there pops that word.
READS_FRAMES frame_at_call frame_at(std::uint64_t sp, const std::uint64_t* words) {
  frame_at_call frame{*words, sp + sizeof(std::uint64_t), {}};
  frame.registers.fill(&nobodys);
  return frame;
}

}  // namespace

bool frames_are_in_place(const piece* p) {
  return p->is_in_place() ||
         (p->in_place_from == p->sp + handler_context_bytes && is_in_handler(youngest_words(p)));
}

READS_FRAMES boundaries::boundaries(const piece* p) : hi_(p->hi) {
  if (p->has_forks) {
    std::uint64_t* const words = youngest_words(p);
    frame_at_call youngest = frame_at(p->sp, words);
    const bool in_handler = is_in_handler(words);
    if (in_handler) {
      youngest.pc = words[context_pc];
      youngest.sp = p->sp + handler_context_bytes;
      for (std::size_t i = 0; i < preserved_registers; ++i) {
        youngest.registers[i] = &words[context_pc - 1 - i];
      }
    }
    walk_ = stack_walk(tables, youngest, hi_);
    // In such a frame the call that forked is no mark any more, so the walk begins with the frame's
    // caller.
    if (in_handler) knows_ = walk_.leave();
  }
  begin(p->youngest, p->has_forks && knows_);
}

boundaries::boundaries(const piece* p, std::uint64_t sp) : boundaries(sp, p->hi) {}

READS_FRAMES boundaries::boundaries(std::uint64_t sp, std::uint64_t hi) : hi_(hi) {
  const bool has_forks = may_have_forks();
  if (has_forks) {
    walk_ = stack_walk(tables, frame_at(sp, reinterpret_cast<const std::uint64_t*>(sp)), hi_);
  }
  begin(running.youngest, has_forks);
}

void boundaries::begin(mark* youngest, bool has_forks) {
  next_mark_ = reinterpret_cast<std::uint64_t>(youngest) < hi_ ? youngest : nullptr;
  if (has_forks && !checked()) {  // in checked mode all forks have marks in frames
    walks_to_ = next_mark_ != nullptr ? reinterpret_cast<std::uint64_t>(next_mark_->sp) : hi_;
  }
  advance();
}

void boundaries::advance() {
  if (walks_to_ == 0) return take_mark();
  const bool has_handler = walk_.go_to_handler(walks_to_);
  if (has_handler) take_call(walk_.row());
  if (has_handler ? !walk_.leave() : walk_.sp() < walks_to_) [[unlikely]] {
    walks_to_ = 0;
    knows_ = walk_.row().how == unwind_row::form::end;
  }
  if (!has_handler) take_mark();
}

void boundaries::take_call(const unwind_row& row) {
  const auto& form = *static_cast<const call_form*>(row.handler);
  now_.older = walk_.frame();
  now_.at = now_.end = now_.older.sp;
  now_.kind = form.kind;
  now_.open = nullptr;
  now_.returns = form.returns;
  now_.landing = row.landing;
  now_.selector = row.selector;
}

void boundaries::take_mark() {
  if (mark* const m = next_mark_) {
    now_ = boundary_of(m);
    next_mark_ = reinterpret_cast<std::uint64_t>(m->outer) < hi_ ? m->outer : nullptr;
    if (walks_to_ != 0) {
      walks_to_ = next_mark_ != nullptr ? reinterpret_cast<std::uint64_t>(next_mark_->sp) : hi_;
    }
  } else {
    now_ = {};
    is_last_ = true;
  }
}

std::uint64_t boundaries::end_of_next() {
  if (walks_to_ != 0) {
    if (walk_.go_to_handler_lightly(walks_to_)) return walk_.sp();
    if (walk_.sp() < walks_to_) knows_ = walk_.row().how == unwind_row::form::end;
  }
  if (next_mark_ != nullptr) return reinterpret_cast<std::uint64_t>(next_mark_->sp);
  is_last_ = true;
  return ~std::uint64_t{0};
}

std::uint64_t end_of_outer(boundaries each, const boundary& b) {
  while (each && each->at < b.at) ++each;
  return each.end_of_next();
}

boundary boundary_of(fork_link* link) {
  boundary b;
#if SOJOURN_FORK_LINKS
  const unwind_row& row = tables.row(link->pc);
  const auto& form = *static_cast<const call_form*>(row.handler);
  b.at = b.end = link->at();
  b.kind = form.kind;
  b.returns = form.returns;
  b.older.pc = link->pc;
  b.older.sp = b.at;
  // A link has the registers in the opposite order, except for the first two.
  b.older.registers = {&link->registers[4], &link->registers[5], &link->registers[3],
                       &link->registers[2], &link->registers[1], &link->registers[0]};
  b.landing = row.landing;
  b.selector = row.selector;
#else
  (void)link;
#endif
  return b;
}

}  // namespace sojourn::detail
