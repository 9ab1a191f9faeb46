// SPDX-License-Identifier: Apache-2.0
// Source lines, inlined functions and variables for code addresses, from a program's debug
// information (DWARF). It is read by libdw of elfutils, which is looked for when it is first
// needed: without it, or without debug information, functions are named by the symbol table alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sojourn::detail {

/// One function that is active at an address.
struct source_frame {
  std::string function;  ///< Demangled.
  std::string file;      ///< As the compiler was given it; "" when not known.
  int line;              ///< 0 when not known.
  bool inlined;          ///< True: part of the next frame's machine code.
};

/// The functions active at `address` of the file `program`, innermost first; the last one is that
/// which the machine calls. Empty when nothing is known of the address. Requires: `address` is one
/// of the file, as in a program that is not position independent; of a caller, give an address
/// inside the call (the return address less one), for the return address may belong to the next
/// line. Not for signal handlers: it allocates. The last program asked for stays open.
std::vector<source_frame> describe_address(const std::string& program, std::uint64_t address);

/// A local variable or argument.
struct frame_variable {
  std::string name;  ///< "" when there is none, or none is known.
  bool is_pointer;   ///< A pointer or a reference lies there: the whole of it, or a part.
};

/// The local variable or argument that holds the byte at `offset_from_cfa` (mostly
/// negative) in the frame of the function at `pc`: of the innermost inlined function that has one
/// there, of blocks that are open at `pc` only. What the runtime or the standard library declares
/// in a function of theirs that was inlined does not count: the variables of the program that it
/// works on do, and its own may be unset. Without name when unknown: `program` has no debug
/// information on variables (it needs -g; -g1 has only lines), or the byte holds what the compiler
/// put there.
frame_variable variable_at(const std::string& program, std::uint64_t pc,
                           std::int64_t offset_from_cfa);

/// The one that is in a register there, by DWARF's number, in whole or in part.
frame_variable variable_in_register(const std::string& program, std::uint64_t pc, int number);
/// True when the debug information of the code at `pc` tells of variables: what it does not name
/// there, no variable holds.
bool knows_variables(const std::string& program, std::uint64_t pc);

/// Why lines and variables of no program can be named here: a sentence; "" when they can.
std::string why_no_debug_info();

}  // namespace sojourn::detail
