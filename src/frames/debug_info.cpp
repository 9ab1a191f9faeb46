// SPDX-License-Identifier: Apache-2.0
#include "frames/debug_info.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/loaded_libraries.hpp"
#include "frames/code_owner.hpp"
#include "frames/symbols.hpp"

#if __has_include(<elfutils/libdw.h>)
#define SOJOURN_HAS_LIBDW 1
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#endif

namespace sojourn::detail {

#if SOJOURN_HAS_LIBDW

namespace {

/// The functions of libdw, looked up at run time, so that no program depends on the library.
struct libdw {
  decltype(&::dwarf_begin) begin;
  decltype(&::dwarf_end) end;
  decltype(&::dwarf_nextcu) nextcu;
  decltype(&::dwarf_offdie) offdie;
  decltype(&::dwarf_child) child;
  decltype(&::dwarf_siblingof) siblingof;
  decltype(&::dwarf_tag) tag;
  decltype(&::dwarf_haspc) haspc;
  decltype(&::dwarf_diename) diename;
  decltype(&::dwarf_attr) attr;
  decltype(&::dwarf_attr_integrate) attr_integrate;
  decltype(&::dwarf_formstring) formstring;
  decltype(&::dwarf_formudata) formudata;
  decltype(&::dwarf_formref_die) formref_die;
  decltype(&::dwarf_aggregate_size) aggregate_size;
  decltype(&::dwarf_getscopes_die) getscopes_die;
  decltype(&::dwarf_getsrc_die) getsrc_die;
  decltype(&::dwarf_linesrc) linesrc;
  decltype(&::dwarf_lineno) lineno;
  decltype(&::dwarf_getsrcfiles) getsrcfiles;
  decltype(&::dwarf_filesrc) filesrc;
  decltype(&::dwarf_getlocation_addr) getlocation_addr;
  decltype(&::dwarf_getelf) getelf;
  decltype(&::dwarf_getcfi) getcfi;
  decltype(&::dwarf_getcfi_elf) getcfi_elf;
  decltype(&::dwarf_cfi_end) cfi_end;
  decltype(&::dwarf_cfi_addrframe) cfi_addrframe;
  decltype(&::dwarf_frame_cfa) frame_cfa;
};

const libdw* load() {
  const optional_library library("libdw.so.1");
  static libdw f;
  bool complete =
      library.find("dwarf_begin", f.begin) && library.find("dwarf_end", f.end) &&
      library.find("dwarf_nextcu", f.nextcu) && library.find("dwarf_offdie", f.offdie) &&
      library.find("dwarf_child", f.child) && library.find("dwarf_siblingof", f.siblingof) &&
      library.find("dwarf_tag", f.tag) && library.find("dwarf_haspc", f.haspc) &&
      library.find("dwarf_diename", f.diename) && library.find("dwarf_attr", f.attr) &&
      library.find("dwarf_attr_integrate", f.attr_integrate) &&
      library.find("dwarf_formstring", f.formstring) &&
      library.find("dwarf_formudata", f.formudata) &&
      library.find("dwarf_formref_die", f.formref_die) &&
      library.find("dwarf_aggregate_size", f.aggregate_size) &&
      library.find("dwarf_getscopes_die", f.getscopes_die) &&
      library.find("dwarf_getsrc_die", f.getsrc_die) && library.find("dwarf_linesrc", f.linesrc) &&
      library.find("dwarf_lineno", f.lineno) && library.find("dwarf_getsrcfiles", f.getsrcfiles) &&
      library.find("dwarf_filesrc", f.filesrc) &&
      library.find("dwarf_getlocation_addr", f.getlocation_addr) &&
      library.find("dwarf_getelf", f.getelf) && library.find("dwarf_getcfi", f.getcfi) &&
      library.find("dwarf_getcfi_elf", f.getcfi_elf) && library.find("dwarf_cfi_end", f.cfi_end) &&
      library.find("dwarf_cfi_addrframe", f.cfi_addrframe) &&
      library.find("dwarf_frame_cfa", f.frame_cfa);
  return complete ? &f : nullptr;
}

/// Null when this machine has no libdw, and in statically linked programs.
const libdw* library() {
  static const libdw* found = load();
  return found;
}

class debug_info {
 public:
  debug_info(const libdw& functions, const std::string& path)
      : dw_(functions), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ >= 0) dwarf_ = dw_.begin(fd_, DWARF_C_READ);
    if (dwarf_ != nullptr) frames_ = dw_.getcfi_elf(dw_.getelf(dwarf_));
  }
  ~debug_info() {
    if (frames_ != nullptr) dw_.cfi_end(frames_);
    if (dwarf_ != nullptr) dw_.end(dwarf_);
    if (fd_ >= 0) close(fd_);
  }
  debug_info(const debug_info&) = delete;
  debug_info& operator=(const debug_info&) = delete;

  std::vector<source_frame> describe(std::uint64_t address, const std::string& symbol) const {
    std::optional<position> at = find_position(address);
    if (!at) return {};
    std::vector<source_frame> frames;
    source_frame frame{"", "", 0, false};
    if (Dwarf_Line* line = dw_.getsrc_die(&at->unit, address); line != nullptr) {
      const char* file = dw_.linesrc(line, nullptr, nullptr);
      if (file != nullptr) frame.file = file;
      (void)dw_.lineno(line, &frame.line);
    }
    for (std::size_t i = at->scopes.size(); i-- > 0;) {
      Dwarf_Die& scope = at->scopes[i];
      int tag = dw_.tag(&scope);
      if (tag == DW_TAG_inlined_subroutine) {
        frame.function = name_of(scope);
        frame.inlined = true;
        frames.push_back(frame);
        frame = {"", file_of_call(*at, scope), number(scope, DW_AT_call_line), false};
      } else if (tag == DW_TAG_subprogram) {
        frame.function = !symbol.empty() ? symbol : name_of(scope);
        frames.push_back(frame);
        return frames;
      }
    }
    if (symbol.empty()) return {};
    // The debug information has the function's lines only.
    frame.function = symbol;
    frames.push_back(frame);
    return frames;
  }

  frame_variable variable(std::uint64_t pc, std::int64_t offset) const {
    return find_variable(
        pc, [&](Dwarf_Die& die, const base& frame) { return part_at(die, pc, offset, frame); });
  }

  frame_variable variable_in_register(std::uint64_t pc, int number) const {
    return find_variable(
        pc, [&](Dwarf_Die& die, const base&) { return part_in_register(die, pc, number); });
  }

  bool knows_variables(std::uint64_t pc) const {
    std::optional<position> at = find_position(pc);
    Dwarf_Die die;
    if (!at || dw_.child(&at->unit, &die) != 0) return false;
    do {
      if (dw_.tag(&die) == DW_TAG_base_type) return true;
    } while (dw_.siblingof(&die, &die) == 0);
    return false;
  }

 private:
  /// Where an address lies: its compilation unit, and the scopes that contain it, from the function
  /// inwards.
  struct position {
    Dwarf_Die unit;
    std::vector<Dwarf_Die>
        scopes;  ///< Function, then blocks and inlined functions, outermost first.
  };
  /// A register and the frame base, as distances from the CFA (the canonical frame address).
  struct base {
    int reg;  ///< Number by DWARF; -1: only the frame base is known.
    std::int64_t reg_offset;
    bool has_frame;
    std::int64_t frame_offset;
  };

  std::optional<position> find_position(std::uint64_t address) const {
    if (dwarf_ == nullptr) return std::nullopt;
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    // Unit by unit, because clang does not write the index .debug_aranges.
    for (std::size_t header = 0;
         dw_.nextcu(dwarf_, offset, &next, &header, nullptr, nullptr, nullptr) == 0;
         offset = next) {
      position at{};
      if (dw_.offdie(dwarf_, offset + header, &at.unit) == nullptr) continue;
      if (dw_.haspc(&at.unit, address) <= 0) continue;
      // With -g1, clang describes only functions into which others were inlined. Functions of local
      // classes, lambdas among them, may be nested in a function that does not contain `address`;
      // looking into all functions takes long, and is done only when nothing else is found.
      if (!descend(at.unit, address, inside::scopes, at.scopes)) {
        descend(at.unit, address, inside::functions, at.scopes);
      }
      return at;
    }
    return std::nullopt;
  }

  enum class inside { scopes, functions };

  /// Adds the scopes inside `parent` that contain `address`; false when there are none. Looks into
  /// namespaces and classes, and, for inside::functions, into functions that do not contain
  /// `address`.
  bool descend(Dwarf_Die& parent, std::uint64_t address, inside where,
               std::vector<Dwarf_Die>& scopes) const {
    Dwarf_Die die;
    if (dw_.child(&parent, &die) != 0) return false;
    do {
      switch (dw_.tag(&die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_lexical_block:
          if (dw_.haspc(&die, address) > 0) {
            scopes.push_back(die);
            descend(die, address, inside::scopes, scopes);
            return true;
          }
          if (where == inside::functions && descend(die, address, where, scopes)) return true;
          break;
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
          // A function may be nested in these; they have no addresses of their own.
          if (descend(die, address, where, scopes)) return true;
          break;
        default:
          break;
      }
    } while (dw_.siblingof(&die, &die) == 0);
    return false;
  }

  int number(Dwarf_Die& die, unsigned attribute) const {
    Dwarf_Attribute storage;
    Dwarf_Word value = 0;
    if (dw_.formudata(dw_.attr(&die, attribute, &storage), &value) != 0) return 0;
    return static_cast<int>(value);
  }

  std::string file_of_call(position& at, Dwarf_Die& inlined) const {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    auto index = static_cast<std::size_t>(number(inlined, DW_AT_call_file));
    if (dw_.getsrcfiles(&at.unit, &files, &count) != 0 || index >= count) return "";
    const char* file = dw_.filesrc(files, index, nullptr, nullptr);
    return file != nullptr ? file : "";
  }

  std::string name_of(Dwarf_Die& die) const {
    Dwarf_Attribute storage;
    for (unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
      const char* name = dw_.formstring(dw_.attr_integrate(&die, attribute, &storage));
      if (name != nullptr) return demangle(name);
    }
    const char* name = dw_.diename(&die);
    if (name == nullptr) return "";
    return enclosing(die) + name;
  }

  /// The qualifiers of a function without a linkage name: "tree::node::", or "main::{lambda}::" for
  /// the operator() of a lambda.
  std::string enclosing(const Dwarf_Die& function) const {
    Dwarf_Die declared = function;
    Dwarf_Attribute storage;
    for (unsigned attribute : {DW_AT_abstract_origin, DW_AT_specification}) {
      Dwarf_Die target;
      if (dw_.formref_die(dw_.attr(&declared, attribute, &storage), &target) != nullptr) {
        declared = target;
      }
    }
    Dwarf_Die* scopes = nullptr;
    int count = dw_.getscopes_die(&declared, &scopes);
    std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(scopes, &std::free);
    std::string text;
    for (int i = 1; i < count; ++i) {
      int tag = dw_.tag(&scopes[i]);
      bool is_namespace = tag == DW_TAG_namespace;
      bool is_class = tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
      const char* name = dw_.diename(&scopes[i]);
      if (tag == DW_TAG_subprogram) {
        return enclosing(scopes[i]) + (name != nullptr ? name : "") + "::" + text;
      }
      if (!is_namespace && !is_class) continue;
      // The class of a lambda has no name, or one that the compiler made up.
      bool is_lambda = is_class && (name == nullptr || name[0] == '<');
      text.insert(0, (is_lambda         ? "{lambda}"
                      : name == nullptr ? "(anonymous namespace)"
                                        : std::string(name)) +
                         "::");
    }
    return text;
  }

  /// How the places of a frame's variables relate to the CFA. Most expressions of clang do not
  /// mention the CFA but a register, the frame base; the unwinder's table says how far from the CFA
  /// that register is.
  std::optional<base> frame_base(position& at, std::uint64_t pc) const {
    base b{-1, 0, false, 0};
    for (Dwarf_CFI* cfi : {frames_, dw_.getcfi(dwarf_)}) {
      Dwarf_Frame* frame = nullptr;
      if (cfi == nullptr || dw_.cfi_addrframe(cfi, pc, &frame) != 0) continue;
      std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owner(frame, &std::free);
      Dwarf_Op* ops = nullptr;
      std::size_t count = 0;
      if (dw_.frame_cfa(frame, &ops, &count) != 0 || count != 1) continue;
      if (ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31) {
        b.reg = ops->atom - DW_OP_breg0;
        b.reg_offset = -static_cast<std::int64_t>(ops->number);
      } else if (ops->atom == DW_OP_bregx) {
        b.reg = static_cast<int>(ops->number);
        b.reg_offset = -static_cast<std::int64_t>(ops->number2);
      }
      break;
    }
    Dwarf_Attribute storage;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    Dwarf_Attribute* attribute = dw_.attr_integrate(&at.scopes.front(), DW_AT_frame_base, &storage);
    if (attribute != nullptr && dw_.getlocation_addr(attribute, pc, &ops, &count, 1) == 1 &&
        count == 1) {
      if (ops->atom == DW_OP_call_frame_cfa) {
        b.has_frame = true;
      } else if (ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31 &&
                 ops->atom - DW_OP_reg0 == b.reg) {
        b.has_frame = true;
        b.frame_offset = b.reg_offset;
      }
    }
    return b;
  }

  /// The first variable in the scopes around `pc`, innermost first, for which part(die, frame)
  /// returns an offset: where in the variable the sought place lies.
  template <class Part>
  frame_variable find_variable(std::uint64_t pc, Part part) const {
    std::optional<position> at = find_position(pc);
    if (!at || at->scopes.empty()) return {};
    std::optional<base> frame = frame_base(*at, pc);
    for (std::size_t i = at->scopes.size(); i-- > 0;) {
      Dwarf_Die die;
      if (dw_.child(&at->scopes[i], &die) != 0) continue;
      do {
        int tag = dw_.tag(&die);
        if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) continue;
        std::optional<std::int64_t> within = part(die, *frame);
        if (!within) continue;
        const char* name = dw_.diename(&die);
        // Variables that the compiler made, such as the range of a range-based for, are not
        // filtered out: their names begin with two underscores.
        if (name != nullptr && !is_of_library(*at, i)) return {name, is_pointer(die, *within)};
      } while (dw_.siblingof(&die, &die) == 0);
    }
    return {};
  }

  /// True when the scope stands in an inlined function of the runtime or the standard library.
  bool is_of_library(position& at, std::size_t scope) const {
    while (dw_.tag(&at.scopes[scope]) == DW_TAG_lexical_block && scope > 0) --scope;
    return dw_.tag(&at.scopes[scope]) == DW_TAG_inlined_subroutine &&
           owner_of_name(name_of(at.scopes[scope])) != code_owner::program;
  }

  /// The type of a variable or member, without const, volatile, _Atomic and typedefs.
  bool type_of(Dwarf_Die& die, Dwarf_Die& type) const {
    Dwarf_Attribute storage;
    if (dw_.formref_die(dw_.attr_integrate(&die, DW_AT_type, &storage), &type) == nullptr) {
      return false;
    }
    for (;;) {
      int tag = dw_.tag(&type);
      if (tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_typedef &&
          tag != DW_TAG_atomic_type) {
        return true;
      }
      Dwarf_Die next;
      if (dw_.formref_die(dw_.attr_integrate(&type, DW_AT_type, &storage), &next) == nullptr) {
        return false;
      }
      type = next;
    }
  }

  /// True when a pointer lies `offset` bytes into the variable.
  bool is_pointer(Dwarf_Die& variable, std::int64_t offset) const {
    Dwarf_Die type;
    return type_of(variable, type) && holds_pointer(type, offset, 0);
  }

  bool holds_pointer(Dwarf_Die& type, std::int64_t offset, int depth) const {
    constexpr int nested_max = 32;
    if (depth > nested_max) return false;
    switch (dw_.tag(&type)) {
      case DW_TAG_pointer_type:
      case DW_TAG_reference_type:
      case DW_TAG_rvalue_reference_type:
        return offset < 8;
      case DW_TAG_array_type: {
        Dwarf_Die element;
        if (!type_of(type, element)) return false;
        std::int64_t bytes = size_of(element);
        return bytes > 0 && holds_pointer(element, offset % bytes, depth + 1);
      }
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
        break;
      default:
        return false;
    }
    Dwarf_Die member;
    if (dw_.child(&type, &member) != 0) return false;
    do {
      int tag = dw_.tag(&member);
      if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
      Dwarf_Attribute storage;
      // A static member is not part of the object.
      if (dw_.attr(&member, DW_AT_external, &storage) != nullptr) continue;
      std::int64_t start = number(member, DW_AT_data_member_location);
      Dwarf_Die part;
      if (offset < start || !type_of(member, part) || offset >= start + size_of(part)) continue;
      if (holds_pointer(part, offset - start, depth + 1)) return true;
    } while (dw_.siblingof(&member, &member) == 0);
    return false;
  }

  /// The offset within the variable of the byte at `offset` from the CFA, if the variable covers
  /// that byte.
  std::optional<std::int64_t> part_at(Dwarf_Die& variable, std::uint64_t pc, std::int64_t offset,
                                      const base& frame) const {
    return part(variable, pc, [&](const Dwarf_Op& op, std::int64_t bytes) {
      std::optional<std::int64_t> start = start_of(op, frame);
      bool covers = start && offset >= *start && offset < *start + bytes;
      return covers ? std::optional<std::int64_t>(offset - *start) : std::nullopt;
    });
  }

  std::optional<std::int64_t> part_in_register(Dwarf_Die& variable, std::uint64_t pc,
                                               int number) const {
    return part(variable, pc, [&](const Dwarf_Op& op, std::int64_t) {
      bool covers =
          (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31 && op.atom - DW_OP_reg0 == number) ||
          (op.atom == DW_OP_regx && static_cast<int>(op.number) == number);
      return covers ? std::optional<std::int64_t>(0) : std::nullopt;
    });
  }

  /// Goes through the places that hold the parts of the variable at `pc`, and calls
  /// place(operation, bytes) for each. `place` returns the offset of the sought byte in that part,
  /// if it is there. Returns the byte's offset in the whole variable.
  template <class Place>
  std::optional<std::int64_t> part(Dwarf_Die& variable, std::uint64_t pc, Place place) const {
    Dwarf_Attribute storage;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    Dwarf_Attribute* attribute = dw_.attr_integrate(&variable, DW_AT_location, &storage);
    if (attribute == nullptr || dw_.getlocation_addr(attribute, pc, &ops, &count, 1) != 1) {
      return std::nullopt;
    }
    if (count == 1) return place(ops[0], size_of_variable(variable));
    // The compiler has split the variable: the operations are places, each followed by the size of
    // its piece. A size without a place: this piece was optimised away.
    std::int64_t before = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (ops[i].atom == DW_OP_piece) {
        before += static_cast<std::int64_t>(ops[i].number);
        continue;
      }
      if (i + 1 >= count || ops[i + 1].atom != DW_OP_piece) return std::nullopt;
      auto bytes = static_cast<std::int64_t>(ops[i + 1].number);
      if (std::optional<std::int64_t> within = place(ops[i], bytes)) return before + *within;
      before += bytes;
      ++i;
    }
    return std::nullopt;
  }

  static std::optional<std::int64_t> start_of(const Dwarf_Op& op, const base& frame) {
    auto distance = static_cast<std::int64_t>(op.number);
    if (op.atom == DW_OP_call_frame_cfa) return 0;
    if (op.atom == DW_OP_fbreg && frame.has_frame) return frame.frame_offset + distance;
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31 && op.atom - DW_OP_breg0 == frame.reg) {
      return frame.reg_offset + distance;
    }
    return std::nullopt;
  }

  std::int64_t size_of_variable(Dwarf_Die& variable) const {
    Dwarf_Die type;
    return type_of(variable, type) ? size_of(type) : 8;
  }
  std::int64_t size_of(Dwarf_Die& type) const {
    Dwarf_Word bytes = 0;
    // The size of a pointer or reference is not always stated.
    return dw_.aggregate_size(&type, &bytes) != 0 ? 8 : static_cast<std::int64_t>(bytes);
  }

  const libdw& dw_;
  int fd_;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* frames_ = nullptr;  ///< Of the unwinder; the debug information may have others.
};

std::mutex one_at_a_time;

/// The debug information of `program`, read anew when the previous call was for another program.
/// Null without libdw. Requires: one_at_a_time is locked.
const debug_info* information(const std::string& program) {
  if (library() == nullptr) return nullptr;
  static std::string path;
  static std::unique_ptr<debug_info> open;
  if (open == nullptr || path != program) {
    open = std::make_unique<debug_info>(*library(), program);
    path = program;
  }
  return open.get();
}

}  // namespace

#endif

std::vector<source_frame> describe_address(const std::string& program, std::uint64_t address) {
  static std::mutex symbols_lock;
  std::string symbol;
  {
    std::lock_guard lock(symbols_lock);
    static std::string path;
    static std::unique_ptr<symbol_table> symbols;
    if (symbols == nullptr || path != program) {
      symbols = std::make_unique<symbol_table>(program);
      path = program;
    }
    symbol = symbols->name_at(address);
    // A part that the compiler has moved elsewhere is called "f() [clone .cold]".
    symbol.resize(std::min(symbol.size(), symbol.find(" [clone ")));
  }
  // Without a symbol the debug information is not asked: that of functions which the linker left
  // out claims the addresses from 0 up.
  if (symbol.empty()) return {};
#if SOJOURN_HAS_LIBDW
  std::lock_guard lock(one_at_a_time);
  if (const debug_info* info = information(program); info != nullptr) {
    std::vector<source_frame> frames = info->describe(address, symbol);
    if (!frames.empty()) return frames;
  }
#endif
  return {{symbol, "", 0, false}};
}

frame_variable variable_at(const std::string& program, std::uint64_t pc,
                           std::int64_t offset_from_cfa) {
#if SOJOURN_HAS_LIBDW
  std::lock_guard lock(one_at_a_time);
  const debug_info* info = information(program);
  return info == nullptr ? frame_variable{} : info->variable(pc, offset_from_cfa);
#else
  (void)program, (void)pc, (void)offset_from_cfa;
  return {};
#endif
}

frame_variable variable_in_register(const std::string& program, std::uint64_t pc, int number) {
#if SOJOURN_HAS_LIBDW
  std::lock_guard lock(one_at_a_time);
  const debug_info* info = information(program);
  return info == nullptr ? frame_variable{} : info->variable_in_register(pc, number);
#else
  (void)program, (void)pc, (void)number;
  return {};
#endif
}

bool knows_variables(const std::string& program, std::uint64_t pc) {
#if SOJOURN_HAS_LIBDW
  std::lock_guard lock(one_at_a_time);
  const debug_info* info = information(program);
  return info != nullptr && info->knows_variables(pc);
#else
  (void)program, (void)pc;
  return false;
#endif
}

std::string described_variable(const std::string& name) {
  if (name.empty()) return "a word";
  // By gcc and by clang, which numbers them.
  const std::string of_loop = name.substr(0, name.find_last_not_of("0123456789") + 1);
  for (const char* made :
       {"__for_range", "__for_begin", "__for_end", "__range", "__begin", "__end"}) {
    if (of_loop == made) return "a temporary of a range-for";
  }
  return "`" + name + "`";
}

std::string why_no_debug_info() {
#if SOJOURN_HAS_LIBDW
  return library() != nullptr ? "" : "libdw.so.1 is not installed";
#else
  return "this program was built without elfutils/libdw.h";
#endif
}

}  // namespace sojourn::detail
