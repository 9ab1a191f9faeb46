// SPDX-License-Identifier: Apache-2.0
// Walks a stack, without changing it, by the tables that serve to unwind exceptions (.eh_frame,
// .gcc_except_table). For each caller it finds where the caller goes on, where younger frames saved
// its registers, and which handler surrounds its call. What the tables say of a return address is
// kept.
// Sources: DWARF 5, 6.4; Linux Standard Base 5.0, 10.6; Itanium C++ ABI, exception handling, level
// II.
#pragma once

#include <array>
#include <bit>
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
  std::uint64_t pc = 0;  ///< The return address; 0: this row is empty.
  /// What `wanted` said of the innermost handler of a wanted type around the call; null when there
  /// is no such handler.
  const void* handler = nullptr;
  std::uint64_t landing = 0;    ///< Where that handler begins …
  std::int32_t selector = 0;    ///< … with this in the register that tells handlers apart.
  std::int32_t cfa_offset = 0;  ///< From the base register to the caller's stack pointer.
  bool cfa_is_from_sp = false;  ///< The base register is the stack pointer, not base_register.
  enum class form : std::uint8_t {
    unknown,  ///< There are no tables, or this code does not understand them.
    end,      ///< The oldest frame of its stack.
    offsets,  ///< All saved registers lie at constant distances from the caller's stack pointer.
    expressions
  } how = form::unknown;
  std::uint32_t saves = 0;      ///< The registers that the frame has saved, a bit each.
  std::int32_t return_at = -1;  ///< Where its return address lies, in words from that pointer.
  /// Where the saved registers lie, likewise.
  std::array<std::int16_t, preserved_registers> saved_at{};
  const struct unwind_rules* rules = nullptr;  ///< Of a row of the form `expressions`.

  /// The index of rbp or x29: frames are found from this register and the stack pointer only.
  static constexpr std::size_t base_register = preserved_registers == 6 ? 1 : 10;
};

/// Reads and keeps rows.
class unwind_tables {
 public:
  /// `wanted` returns null for types whose handlers do not matter. Rows keep what it returns for
  /// others.
  explicit unwind_tables(const void* (*wanted)(const std::type_info& type)) : wanted_(wanted) {}

  /// The row of the return address `pc`; valid until the next call.
  const unwind_row& row(std::uint64_t pc) {
    unwind_row& r = rows_[(pc ^ pc >> 10) % rows_.size()];
    if (r.pc != pc) [[unlikely]]
      read(pc, r);
    return r;
  }
  /// Turns `frame` into its caller, whose stack pointer must be at most `end`. False, with `frame`
  /// unchanged, at the end of a stack and where the row is unknown. Unless `all`, follows only the
  /// register from which frames are found.
  template <bool all = true>
  READS_FRAMES static bool leave(frame_at_call& frame, const unwind_row& row, std::uint64_t end) {
    if (row.how != unwind_row::form::offsets) [[unlikely]]
      return leave_by_rules(frame, row, end);
    // The compiler must assume that the writes below change the words read here: so each word is
    // read once, before.
    const std::uint64_t from = frame.sp;
    const std::uint64_t base =
        row.cfa_is_from_sp ? from : *frame.registers[unwind_row::base_register];
    const std::uint64_t sp = base + static_cast<std::uint64_t>(std::int64_t{row.cfa_offset});
    if (sp <= from || sp > end) [[unlikely]]
      return false;
    auto* const words = reinterpret_cast<std::uint64_t*>(sp);
    frame.pc = words[row.return_at];
    frame.sp = sp;
    constexpr std::uint32_t base_bit = 1u << unwind_row::base_register;
    for (std::uint32_t saves = all ? row.saves : row.saves & base_bit; saves != 0;
         saves &= saves - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(saves));
      frame.registers[i] = words + row.saved_at[i];
    }
    return true;
  }

 private:
  static bool leave_by_rules(frame_at_call& frame, const unwind_row& row, std::uint64_t end);
  void read(std::uint64_t pc, unwind_row& row) const;

  const void* (*wanted_)(const std::type_info& type);
  std::array<unwind_row, 1024> rows_{};
};

}  // namespace sojourn::detail
