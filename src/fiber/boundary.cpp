// SPDX-License-Identifier: Apache-2.0
#include "fiber/boundary.hpp"

#include <cxxabi.h>
#include <unwind.h>

#include <array>
#include <cstring>
#include <typeinfo>
#include <utility>

#include "fiber/fork_links.hpp"
#include "fiber/piece.hpp"
#include "fiber/switch.hpp"
#include "sojourn/detail/running.hpp"

extern "C" const char sojourn_child_finish[];

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

/// Stands for the registers of a resumable context's own frame. No value is needed from there: the
/// context has saved all registers on the stack.
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

/// Words of a context of write_handler_context. The registers lie in reverse order, as they are
/// popped from the stack.
constexpr std::size_t context_registers = 1;
constexpr std::size_t context_pc = context_registers + preserved_registers;
constexpr std::size_t context_words = context_pc + 5;
static_assert(context_words * sizeof(std::uint64_t) == handler_context_bytes);

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
    // The call that such a frame forked with is no mark any more: begin with the frame's caller.
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
  // They lie in the opposite order, but for the first two.
  b.older.registers = {&link->registers[4], &link->registers[5], &link->registers[3],
                       &link->registers[2], &link->registers[1], &link->registers[0]};
  b.landing = row.landing;
  b.selector = row.selector;
#else
  (void)link;
#endif
  return b;
}

#if SOJOURN_FORKS_BY_TABLES

READS_FRAMES handler_entry separate(const boundary& b) {
  handler_entry entry{{}, b.end, b.landing, static_cast<std::uint64_t>(b.selector)};
  for (std::size_t i = 0; i < preserved_registers; ++i) {
    entry.registers[i] = std::exchange(*b.older.registers[i], 0);
  }
  reinterpret_cast<std::uint64_t*>(b.end)[-1] =
      reinterpret_cast<std::uint64_t>(sojourn_child_finish);
  return entry;
}

namespace {

/// The C++ runtime's record of an exception that is thrown (libstdc++, on 64-bit machines); what
/// was thrown lies behind it.
struct exception_record {
  const std::type_info* type;
  void (*destructor)(void*);
  void* unexpected;
  void* terminate;
  exception_record* next;
  int handlers;
  int selector;
  const void* action;
  const void* table;
  std::uint64_t landing;
  void* object;
  _Unwind_Exception unwind;
};

constexpr char class_of_thrown[] = "\0++CCUNG";

/// The one exception with which all handlers of forks are entered. One is enough, because a handler
/// has ended before the next begins.
exception_record* exception_of_handlers() {
  static exception_record* const record = [] {
    void* object = abi::__cxa_allocate_exception(sizeof(ticket_id));
    auto* r = static_cast<exception_record*>(object) - 1;
    *r = {};
    r->object = object;
    std::memcpy(&r->unwind.exception_class, class_of_thrown, sizeof r->unwind.exception_class);
    // Called at the end of each handler: the exception is not freed.
    r->unwind.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) {};
    return r;
  }();
  return record;
}

}  // namespace

}  // namespace sojourn::detail

namespace sojourn::detail {
const std::type_info* thrown_type(const _Unwind_Exception* exception) {
  if (std::memcmp(&exception->exception_class, class_of_thrown,
                  sizeof exception->exception_class) != 0) {
    return nullptr;
  }
  return (reinterpret_cast<const exception_record*>(exception + 1) - 1)->type;
}
}  // namespace sojourn::detail

extern "C" {
/// Makes the exception look as if it had been thrown with `result` and were on its way to a
/// handler. switch_*.S calls this, too.
[[gnu::used]] void* sojourn_begin_handler(sojourn::detail::ticket_id result,
                                          sojourn::detail::cut_of_child how) {
  using namespace sojourn::detail;
  note_cut(how);
  exception_record* const record = exception_of_handlers();
  record->handlers = 0;
  record->next = nullptr;
  std::memcpy(record->object, &result, sizeof result);
  ++running.exceptions->uncaught;
  return &record->unwind;
}
[[noreturn]] void sojourn_enter_handler(const std::uint64_t* registers, std::uint64_t sp,
                                        void* exception, std::uint64_t selector,
                                        std::uint64_t landing);
}

namespace sojourn::detail {

void enter_handler(const handler_entry& entry, ticket_id result) {
  sojourn_enter_handler(entry.registers.data(), entry.sp,
                        sojourn_begin_handler(result, entry.how_cut), entry.selector,
                        entry.landing);
}

void write_handler_context(void* to, const boundary& b, const handler_entry& entry,
                           ticket_id result) {
  std::array<std::uint64_t, context_words> words{};
  words[0] = reinterpret_cast<std::uint64_t>(sojourn_resume_handler);
  for (std::size_t i = 0; i < preserved_registers; ++i) {
    words[context_pc - 1 - i] = entry.registers[i];
  }
  words[context_pc] = b.older.pc;
  words[context_pc + 1] = entry.landing;
  words[context_pc + 2] = entry.selector;
  words[context_pc + 3] = result;
  words[context_pc + 4] = entry.how_cut;
  std::memcpy(to, words.data(), sizeof words);
}

#else

handler_entry separate(const boundary&) { return {}; }
void enter_handler(const handler_entry&, ticket_id) { __builtin_unreachable(); }
void write_handler_context(void*, const boundary&, const handler_entry&, ticket_id) {}
const std::type_info* thrown_type(const _Unwind_Exception*) { return nullptr; }

#endif

}  // namespace sojourn::detail
