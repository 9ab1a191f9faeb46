// SPDX-License-Identifier: Apache-2.0
// Names of code addresses as a report shows them: the program's own functions, not the runtime's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frames/symbols.hpp"

namespace sojourn::detail {

struct code_place {
  std::string function;  ///< Short: "lookup", "node::find", "a lambda in main".
  std::string file;      ///< Without its folders; "" when not known.
  int line = 0;
};

/// "`lookup` (btree.cpp:12)", or without the line when that is not known.
std::string text_of(const code_place& place);

/// The functions of one program, by the addresses on its stacks. Keeps what it has looked up.
class code_places {
 public:
  explicit code_places(std::string program);

  /// The program's own functions among those that are active at `frames`, youngest first, inlined
  /// ones included.
  std::vector<code_place> of(const std::uint64_t* frames, std::size_t count);

 private:
  const std::vector<code_place>& at(std::uint64_t address);

  std::string program_;
  symbol_table symbols_;
  std::map<std::uint64_t, std::vector<code_place>> known_;
};

}  // namespace sojourn::detail
