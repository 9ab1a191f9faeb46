// SPDX-License-Identifier: Apache-2.0
// Names for code addresses: reads the symbol table of an ELF executable, without any library, so
// that a death report can name functions. It knows files and addresses, not processes or stacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sojourn::detail {

/// The functions of one executable file, by address. A file that is absent, not a 64-bit ELF file
/// of this byte order, damaged or stripped gives an empty table: a missing name is never an error.
class symbol_table {
 public:
  explicit symbol_table(const std::string& path);

  bool empty() const { return functions_.empty(); }

  /// Calls visit(name, address, end) for each function, in the order of their addresses; the name
  /// is as in the file.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const function& f : functions_) visit(names_.c_str() + f.name, f.address, f.end);
  }

  /// True when the file is linked to run at the addresses it states (not position independent), so
  /// that addresses of a process that ran it can be looked up as they are.
  bool fixed_addresses() const { return fixed_addresses_; }

  /// Demangled name of the function that contains `address`, or "" when none does. `address` is as
  /// in the file: for a position-independent program, subtract where it was loaded.
  std::string name_at(std::uintptr_t address) const;

 private:
  struct function {
    std::uint64_t address;
    std::uint64_t end;   ///< Past its last byte.
    std::uint32_t name;  ///< Offset in names_, which ends with a NUL.
    bool sized;          ///< False: the file does not say where it ends (assembly without .size).
  };

  std::vector<function> functions_;  ///< By address.
  std::string names_;
  bool fixed_addresses_ = false;
};

/// The name of a symbol as written in the source, or `name` itself when it is not a mangled C++
/// name. (A function `w` of a C program is not wchar_t, as which types are mangled.)
std::string demangle(const char* name);
/// The same for the name of a type, as type_info has it.
std::string demangle_type(const char* name);

/// "0x4012ab".
std::string hexadecimal(std::uintptr_t value);

/// The function of this program, or of a library it has loaded, that contains `address`; the
/// address itself in hexadecimal when no symbol says. Reads the program's file at the first call.
/// Not for signal handlers: it allocates.
std::string symbolise(std::uintptr_t address);

}  // namespace sojourn::detail
