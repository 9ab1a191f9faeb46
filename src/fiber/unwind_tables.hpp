// SPDX-License-Identifier: Apache-2.0
// Leaving frames by the tables that exceptions are unwound by (.eh_frame, .gcc_except_table), while
// the frames stay as they are: where a caller goes on, where younger frames saved its registers,
// and which handler its call stands under. What the tables say of a return address is read once.
// Sources: DWARF 5, 6.4; Linux Standard Base 5.0, 10.6; Itanium C++ ABI, exception handling, level
// II.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

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
  std::uint64_t pc;  ///< Its return address: where it goes on.
  std::uint64_t sp;  ///< Its stack pointer then.
  /// Where its values of these registers are: in a younger frame, which saved them.
  std::array<std::uint64_t*, preserved_registers> registers;
};

/// What the tables say of a return address.
struct unwind_row {
  std::uint64_t pc = 0;  ///< 0: of none.
  /// The handler of a wanted type that the call stands under: the innermost; null without one.
  const std::type_info* handler = nullptr;
  std::uint64_t landing = 0;    ///< Where that handler begins …
  std::int32_t selector = 0;    ///< … with this in the register that tells handlers apart.
  std::int32_t cfa_offset = 0;  ///< The caller's stack pointer lies so far from the base register.
  std::uint16_t args_size = 0;  ///< Bytes of arguments on the stack, which the handler drops.
  std::uint8_t cfa_register = 0;  ///< An index among the preserved ones, or base_sp.
  enum class form : std::uint8_t {
    unknown,  ///< There are no tables, or they say what this does not understand.
    end,      ///< The oldest frame of its stack.
    offsets,  ///< All that was saved lies at a constant distance.
    expressions
  } how = form::unknown;
  /// Where registers were saved, in words from the caller's stack pointer; 0: not here.
  std::array<std::int16_t, preserved_registers> saved{};
  std::int16_t return_at = -1;                 ///< The same of its return address.
  const struct unwind_rules* rules = nullptr;  ///< Of `expressions`.

  static constexpr std::uint8_t base_sp = 0xff;
};

/// Reads and keeps rows.
class unwind_tables {
 public:
  /// `wanted`: handlers of these types are looked for.
  explicit unwind_tables(bool (*wanted)(const std::type_info& type)) : wanted_(wanted) {}

  /// Good until the next call.
  const unwind_row& row(std::uint64_t pc) {
    unwind_row& r = rows_[(pc ^ pc >> 10) % rows_.size()];
    if (r.pc != pc) [[unlikely]]
      read(pc, r);
    return r;
  }
  /// Makes the frame's caller of it. False, and the frame as it was, at the end of a stack and
  /// where the row does not tell.
  static bool leave(frame_at_call& frame, const unwind_row& row);

 private:
  void read(std::uint64_t pc, unwind_row& row) const;

  bool (*wanted_)(const std::type_info& type);
  std::array<unwind_row, 1024> rows_{};
};

}  // namespace sojourn::detail
