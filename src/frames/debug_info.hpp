// SPDX-License-Identifier: Apache-2.0
// Source lines, inlined functions and variables for code addresses, from a program's debug
// information (DWARF). It is read by libdw of elfutils, which is loaded at the first use: without
// it, or without debug information, functions are named by the symbol table alone.
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

/// The functions active at `address` of the file `program`, innermost first: the last one is the
/// function that the machine code called, the others are inlined into it. Empty when nothing is
/// known of the address. Requires: `address` is as in the file, so without the load address of a
/// position-independent program. For a caller, pass an address inside the call (the return address
/// less one), because the return address may belong to the next line. Not for signal handlers: it
/// allocates. The last program asked for stays open.
std::vector<source_frame> describe_address(const std::string& program, std::uint64_t address);

/// A local variable or argument.
struct frame_variable {
  std::string name;  ///< "" when there is none, or none is known.
  bool is_pointer;   ///< A pointer or a reference, or a part of one, lies there.
};

/// The local variable or argument that holds the byte at `offset_from_cfa` (mostly negative) in the
/// frame of the function at `pc`. The innermost inlined function comes first, and of blocks only
/// those open at `pc` count. Inlined functions of the runtime or the standard library are skipped:
/// the program's variables that they work on are found all the same, and their own may be
/// uninitialised. The name is empty when unknown: `program` has no debug information on variables
/// (that needs -g; -g1 has only lines), or the byte holds a temporary of the compiler.
frame_variable variable_at(const std::string& program, std::uint64_t pc,
                           std::int64_t offset_from_cfa);

/// The same for the variable that lies, in whole or in part, in DWARF's register `number` at `pc`.
frame_variable variable_in_register(const std::string& program, std::uint64_t pc, int number);
/// True when the debug information of the code at `pc` describes variables: then a place without a
/// name there holds no variable.
bool knows_variables(const std::string& program, std::uint64_t pc);

/// A variable by this name, in a message: "`name`"; "a temporary of a range-for" for those that
/// compilers make for such a loop; "a word" without a name.
std::string described_variable(const std::string& name);

/// Why no program's lines and variables can be named on this machine, in a sentence; "" when they
/// can.
std::string why_no_debug_info();

}  // namespace sojourn::detail
