// SPDX-License-Identifier: Apache-2.0
// Walks a stack, without changing it, by the tables that serve to unwind exceptions (.eh_frame,
// .gcc_except_table). For each caller it finds where the caller goes on, where younger frames saved
// its registers, and which handler surrounds its call. What the tables say of a return address is
// kept.
// Sources: DWARF 5, 6.4; Linux Standard Base 5.0, 10.6; Itanium C++ ABI, exception handling, level
// II.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

/// For functions that read any word of a frame, even in the red zones of the address sanitizer.
#define READS_FRAMES __attribute__((no_sanitize("address")))

namespace sojourn::detail {

#if defined(__x86_64__)
/// Registers that callees preserve: rbx, rbp, r12 to r15.
inline constexpr std::size_t preserved_registers = 6;
#elif defined(__aarch64__)
/// Registers that callees preserve: x19 to x29, d8 to d15.
inline constexpr std::size_t preserved_registers = 19;
#endif

/// A frame in the middle of a call.
struct frame_at_call {
  std::uint64_t pc = 0;  ///< Its return address: where it goes on.
  std::uint64_t sp = 0;  ///< Its stack pointer then.
  /// Where its values of the preserved registers are: in younger frames, which saved them.
  std::array<std::uint64_t*, preserved_registers> registers;
};

/// What the tables say of a return address.
struct unwind_row {
  std::uint64_t pc = 0;
  /// The row of the caller that the last frame with this row had; never null.
  mutable const unwind_row* caller = nullptr;
  /// What `wanted` returned for the type of the innermost wanted handler around the call; null when
  /// there is no such handler.
  const void* handler = nullptr;
  std::uint64_t landing = 0;    ///< Where that handler begins …
  std::int32_t selector = 0;    ///< … with this in the register that tells handlers apart.
  std::int32_t cfa_offset = 0;  ///< From the base register to the caller's stack pointer.
  bool cfa_is_from_sp = false;  ///< The base register is the stack pointer, not base_register.
  bool is_plain = false;        ///< It has no handler, and is left by adding a constant to sp.
  enum class form : std::uint8_t {
    unknown,  ///< There are no tables, or this code does not understand them.
    end,      ///< The oldest frame of its stack.
    offsets,  ///< All saved registers lie at constant distances from the caller's stack pointer.
    expressions
  } how = form::unknown;
  std::uint32_t saves = 0;  ///< The registers that the frame has saved, a bit each.
  std::int32_t return_at =
      -1;  ///< Where the return address lies, in words from the caller's stack pointer.
  /// Where the saved registers lie, in words from the caller's stack pointer.
  std::array<std::int16_t, preserved_registers> saved_at{};
  const struct unwind_rules* rules = nullptr;  ///< Of a row of the form `expressions`.

  /// The index of rbp or x29: frames are found from this register and the stack pointer only.
  static constexpr std::size_t base_register = preserved_registers == 6 ? 1 : 10;
};

/// Reads rows and keeps them in a hash table that grows: each return address that was ever asked
/// for has its row there. (So no code may be loaded at addresses of a library that was unloaded.)
class unwind_tables {
 public:
  /// `wanted` returns null for types whose handlers do not matter; for other types, rows keep what
  /// it returns.
  explicit unwind_tables(const void* (*wanted)(const std::type_info& type)) : wanted_(wanted) {}
  unwind_tables(const unwind_tables&) = delete;
  unwind_tables& operator=(const unwind_tables&) = delete;

  /// The row of the return address `pc`. Its address never changes.
  const unwind_row& row(std::uint64_t pc) {
    const entry& first = entries_[place_of(pc)];
    if (first.pc == pc && pc != 0) [[likely]]
      return *first.row;
    return find(pc);
  }

  /// Stands for a row that does not exist: unknown, of the return address 0.
  const unwind_row* nobody() const { return &nobody_; }

 private:
  struct entry {
    std::uint64_t pc = 0;  ///< 0: this entry is empty.
    const unwind_row* row = nullptr;
  };

  std::size_t place_of(std::uint64_t pc) const { return (pc ^ pc >> 10) & last_place_; }
  const unwind_row& find(std::uint64_t pc);
  const unwind_row& add(std::uint64_t pc);
  void insert(const entry& e);
  void grow();
  void read(std::uint64_t pc, unwind_row& row) const;

  const void* (*wanted_)(const std::type_info& type);
  unwind_row nobody_{.caller = &nobody_};
  static constexpr std::size_t places_at_first = 1024;
  std::array<entry, places_at_first> first_entries_{};
  entry* entries_ = first_entries_.data();
  std::size_t last_place_ = places_at_first - 1;  ///< A power of two, less 1.
  std::size_t used_ = 0;
};

/// A walk from a frame to its callers. Most frames save the same few registers again. So a walk
/// only notes which frames it has left, and looks at what they saved when it is asked for
/// registers.
class stack_walk {
 public:
  stack_walk() = default;
  /// From the frame `from`, to callers whose stack pointer is at most `end`.
  stack_walk(unwind_tables& tables, const frame_at_call& from, std::uint64_t end)
      : frame_(from), tables_(&tables), end_(end), last_(tables.nobody()) {}

  std::uint64_t sp() const { return frame_.sp; }
  /// The row of the present frame. Requires: the frame's stack pointer is below `end`.
  const unwind_row& row() {
    const unwind_row* const expected = last_->caller;
    if (expected->pc == frame_.pc) [[likely]]
      return *expected;
    return *(last_->caller = &tables_->row(frame_.pc));
  }
  /// The present frame. Requires: the last step was not a light one.
  const frame_at_call& frame();

  /// Goes to the caller of the present frame. Returns false, and stays, at the end of a stack and
  /// where the row is unknown.
  bool leave();
  /// Goes on to the first frame, the present one included, around whose call there is a wanted
  /// handler, but only while stack pointers are below `until`. Returns false when there is none:
  /// the walk has then reached `until`, or a frame that it cannot leave.
  bool go_to_handler(std::uint64_t until);
  /// The same, for a walk that will not be asked for its frame any more.
  bool go_to_handler_lightly(std::uint64_t until);

 private:
  struct left_frame {
    const unwind_row* row;
    std::uint64_t* words;  ///< Its saves lie at distances from here.
  };
  static constexpr std::size_t base = unwind_row::base_register;

  template <bool all>
  void pass_plain_frames(std::uint64_t until);
  template <bool all>
  bool go(std::uint64_t until);
  template <bool all>
  bool step(const unwind_row& row);
  bool step_by_rules(const unwind_row& row);
  void look_at_saves();

  frame_at_call
      frame_;  ///< Only its base register is always right; for the other registers see left_.
  unwind_tables* tables_ = nullptr;
  std::uint64_t end_ = 0;
  const unwind_row* last_ = nullptr;  ///< The row of the frame that was left last.
  std::size_t left_count_ = 0;
  std::array<left_frame, 8> left_;
};

}  // namespace sojourn::detail
