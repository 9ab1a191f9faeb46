// SPDX-License-Identifier: Apache-2.0
#include "fiber/fork_handler.hpp"

#include <cxxabi.h>

#include <cstring>
#include <utility>

#include "fiber/switch.hpp"
#include "sojourn/detail/running.hpp"

extern "C" const char sojourn_child_finish[];

namespace sojourn::detail {

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
    // Empty, because the handler calls it at its end and the exception must not be freed.
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
