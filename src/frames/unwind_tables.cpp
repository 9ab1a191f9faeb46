// SPDX-License-Identifier: Apache-2.0
#include "frames/unwind_tables.hpp"

#include <cxxabi.h>
#include <unwind.h>

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>

#include "memory/runtime_resource.hpp"

namespace {

struct object_bases {
  void* text;
  void* data;
  void* function;
};

}  // namespace

// From libgcc: finds the description of the function that contains an address.
extern "C" const void* _Unwind_Find_FDE(void* pc, object_bases* bases);
extern "C" _Unwind_Reason_Code __gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class,
                                                    _Unwind_Exception*, _Unwind_Context*);

namespace sojourn::detail {

namespace {

// ---- Registers, by their numbers in the tables ------------------------------------------------

#if defined(__x86_64__)
constexpr std::uint64_t stack_pointer = 7;
constexpr std::uint64_t return_address = 16;
constexpr std::size_t not_preserved = preserved_registers;
constexpr std::size_t index_of(std::uint64_t number) {
  if (number == 3) return 0;
  if (number == 6) return 1;
  return number >= 12 && number <= 15 ? number - 10 : not_preserved;
}
#elif defined(__aarch64__)
constexpr std::uint64_t stack_pointer = 31;
constexpr std::uint64_t return_address = 30;
constexpr std::size_t not_preserved = preserved_registers;
constexpr std::size_t index_of(std::uint64_t number) {
  if (number >= 19 && number <= 29) return number - 19;
  return number >= 72 && number <= 79 ? number - 61 : not_preserved;
}
#endif

// ---- Reading ----------------------------------------------------------------------------------

/// How a pointer in a table is written (LSB, 10.5.1).
struct encoding {
  std::uint8_t bits;
  bool is_absent() const { return bits == 0xff; }
  std::uint8_t format() const { return bits & 0x0f; }
  bool is_relative_to_itself() const { return (bits & 0x70) == 0x10; }
  bool is_relative_to_function() const { return (bits & 0x70) == 0x40; }
  bool is_indirect() const { return (bits & 0x80) != 0; }
};

class table_reader {
 public:
  explicit table_reader(const void* at) : at_(static_cast<const std::uint8_t*>(at)) {}

  const std::uint8_t* at() const { return at_; }
  void skip(std::uint64_t bytes) { at_ += bytes; }
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint8_t byte() { return *at_++; }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t b = byte();
      if (shift < 64) value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if ((b & 0x80) == 0) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const std::uint8_t b = byte();
      if (shift < 64) value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      shift += 7;
      if ((b & 0x80) != 0) continue;
      if (shift < 64 && (b & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  std::uint64_t pointer(encoding how, std::uint64_t function = 0) {
    if (how.is_absent()) return 0;
    const auto itself = reinterpret_cast<std::uint64_t>(at_);
    std::uint64_t value = number(how.format());
    if (value == 0) return 0;
    if (how.is_relative_to_itself()) value += itself;
    if (how.is_relative_to_function()) value += function;
    if (how.is_indirect()) {
      std::memcpy(&value, reinterpret_cast<const void*>(value), sizeof value);
    }
    return value;
  }

 private:
  std::uint64_t number(std::uint8_t format) {
    switch (format) {
      case 0x01:
        return uleb();
      case 0x02:
        return get<std::uint16_t>();
      case 0x03:
        return get<std::uint32_t>();
      case 0x09:
        return static_cast<std::uint64_t>(sleb());
      case 0x0a:
        return static_cast<std::uint64_t>(std::int64_t{get<std::int16_t>()});
      case 0x0b:
        return static_cast<std::uint64_t>(std::int64_t{get<std::int32_t>()});
      default:
        return get<std::uint64_t>();
    }
  }

  const std::uint8_t* at_;
};

}  // namespace

// ---- Rules --------------------------------------------------------------------------------------

/// Where a register of the caller is.
struct register_rule {
  enum class place : std::uint8_t { unchanged, undefined, at_offset, at_expression, elsewhere };
  place where = place::unchanged;
  std::int64_t offset = 0;  ///< From the caller's stack pointer.
  const std::uint8_t* expression = nullptr;
};

/// What the tables say at one place in a function.
struct unwind_rules {
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  const std::uint8_t* cfa_expression = nullptr;
  std::array<register_rule, preserved_registers> preserved;
  register_rule return_address;
  std::uint64_t args_size = 0;

  register_rule* of(std::uint64_t number) {
    if (number == detail::return_address) return &return_address;
    const std::size_t index = index_of(number);
    return index == not_preserved ? nullptr : &preserved[index];
  }
};

namespace {

/// The part that descriptions of several functions have in common, and refer to.
struct common_description {
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  encoding addresses{0};
  encoding tables{0xff};
  bool has_augmentation = false;
  bool is_of_cpp = false;
  bool is_of_signal = false;
  const std::uint8_t* first = nullptr;
  const std::uint8_t* end = nullptr;
};

common_description read_common(const std::uint8_t* at) {
  common_description common;
  table_reader in(at);
  const auto bytes = in.get<std::uint32_t>();
  common.end = in.at() + bytes;
  in.skip(sizeof(std::uint32_t));
  const std::uint8_t version = in.byte();
  const auto* augmentation = reinterpret_cast<const char*>(in.at());
  in.skip(std::strlen(augmentation) + 1);
  common.code_unit = in.uleb();
  common.data_unit = in.sleb();
  if (version == 1) {
    in.skip(1);  // the number of the return address
  } else {
    in.uleb();
  }
  common.first = in.at();
  if (*augmentation != 'z') return common;
  common.has_augmentation = true;
  const std::uint64_t length = in.uleb();
  common.first = in.at() + length;
  for (const char* each = augmentation + 1; *each != 0; ++each) {
    switch (*each) {
      case 'R':
        common.addresses = {in.byte()};
        break;
      case 'L':
        common.tables = {in.byte()};
        break;
      case 'P': {
        const encoding how{in.byte()};
        common.is_of_cpp =
            in.pointer(how) == reinterpret_cast<std::uint64_t>(&__gxx_personality_v0);
        break;
      }
      case 'S':
        common.is_of_signal = true;
        break;
      default:
        break;
    }
  }
  return common;
}

/// Carries out the instructions of a description for the places from `at` to `pc`. False when it
/// meets one that it does not know.
bool carry_out(const std::uint8_t* first, const std::uint8_t* end, const common_description& common,
               std::uint64_t at, std::uint64_t pc, unwind_rules& now, const unwind_rules& initial) {
  using place = register_rule::place;
  constexpr std::size_t remembered_max = 8;
  std::array<unwind_rules, remembered_max> remembered;
  std::size_t depth = 0;
  table_reader in(first);
  const auto set = [&now](std::uint64_t number, place where, std::int64_t offset = 0,
                          const std::uint8_t* expression = nullptr) {
    if (register_rule* rule = now.of(number)) *rule = {where, offset, expression};
  };
  const auto restore = [&](std::uint64_t number) {
    unwind_rules before = initial;
    if (register_rule* rule = now.of(number)) *rule = *before.of(number);
  };
  const auto skip_expression = [&in] {
    const std::uint8_t* expression = in.at();
    const std::uint64_t bytes = in.uleb();
    in.skip(bytes);
    return expression;
  };
  while (in.at() < end && at <= pc) {
    const std::uint8_t instruction = in.byte();
    const std::uint8_t low = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case 0x40:  // advance_loc
        at += low * common.code_unit;
        continue;
      case 0x80:  // offset
        set(low, place::at_offset, static_cast<std::int64_t>(in.uleb()) * common.data_unit);
        continue;
      case 0xc0:
        restore(low);
        continue;
      default:
        break;
    }
    switch (instruction) {
      case 0x00:  // nop
        break;
      case 0x01:  // set_loc
        at = in.pointer(common.addresses);
        break;
      case 0x02:  // advance_loc1, 2, 4
        at += in.get<std::uint8_t>() * common.code_unit;
        break;
      case 0x03:
        at += in.get<std::uint16_t>() * common.code_unit;
        break;
      case 0x04:
        at += in.get<std::uint32_t>() * common.code_unit;
        break;
      case 0x05: {  // offset_extended, and with a sign
        const std::uint64_t number = in.uleb();
        set(number, place::at_offset, static_cast<std::int64_t>(in.uleb()) * common.data_unit);
        break;
      }
      case 0x11: {
        const std::uint64_t number = in.uleb();
        set(number, place::at_offset, in.sleb() * common.data_unit);
        break;
      }
      case 0x06:  // restore_extended
        restore(in.uleb());
        break;
      case 0x07:  // undefined
        set(in.uleb(), place::undefined);
        break;
      case 0x08:  // same_value
        set(in.uleb(), place::unchanged);
        break;
      case 0x09: {  // register
        const std::uint64_t number = in.uleb();
        in.uleb();
        set(number, place::elsewhere);
        break;
      }
      case 0x0a:  // remember_state
        if (depth == remembered_max) return false;
        remembered[depth++] = now;
        break;
      case 0x0b:  // restore_state
        if (depth == 0) return false;
        remembered[--depth].args_size = now.args_size;  // as the C++ runtime does
        now = remembered[depth];
        break;
      case 0x0c:  // def_cfa
        now.cfa_register = in.uleb();
        now.cfa_offset = static_cast<std::int64_t>(in.uleb());
        now.cfa_expression = nullptr;
        break;
      case 0x0d:  // def_cfa_register
        now.cfa_register = in.uleb();
        now.cfa_expression = nullptr;
        break;
      case 0x0e:  // def_cfa_offset
        now.cfa_offset = static_cast<std::int64_t>(in.uleb());
        break;
      case 0x12:  // def_cfa_sf
        now.cfa_register = in.uleb();
        now.cfa_offset = in.sleb() * common.data_unit;
        now.cfa_expression = nullptr;
        break;
      case 0x13:  // def_cfa_offset_sf
        now.cfa_offset = in.sleb() * common.data_unit;
        break;
      case 0x0f:  // def_cfa_expression
        now.cfa_expression = skip_expression();
        break;
      case 0x10: {  // expression
        const std::uint64_t number = in.uleb();
        set(number, place::at_expression, 0, skip_expression());
        break;
      }
      case 0x2d:  // GNU_window_save: on aarch64, signed return addresses, which we do not use
        return false;
      case 0x2e:  // GNU_args_size
        now.args_size = in.uleb();
        break;
      default:
        return false;
    }
  }
  return true;
}

// ---- Handlers -----------------------------------------------------------------------------------

constexpr std::array<std::uint8_t, 16> bytes_of_format{8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8};

/// Finds the innermost handler of a wanted type around the call before `pc`.
void find_handler(const std::uint8_t* table, std::uint64_t function, std::uint64_t pc,
                  const void* (*wanted)(const std::type_info&), unwind_row& row) {
  table_reader in(table);
  const encoding landings{in.byte()};
  const std::uint64_t base = landings.is_absent() ? function : in.pointer(landings, function);
  const encoding type_encoding{in.byte()};
  const std::uint8_t* types = nullptr;
  if (!type_encoding.is_absent()) {
    const std::uint64_t distance = in.uleb();
    types = in.at() + distance;
  }
  const encoding sites{in.byte()};
  const std::uint64_t length = in.uleb();
  const std::uint8_t* const actions = in.at() + length;
  while (in.at() < actions) {
    const std::uint64_t start = in.pointer(sites);
    const std::uint64_t bytes = in.pointer(sites);
    const std::uint64_t landing = in.pointer(sites);
    const std::uint64_t action = in.uleb();
    if (pc - (function + start) >= bytes) continue;
    if (landing == 0 || action == 0 || types == nullptr) return;
    // Of the try blocks that the call lies in, the innermost one's handlers come first.
    table_reader next(actions + action - 1);
    for (;;) {
      const std::int64_t selector = next.sleb();
      const std::uint8_t* const here = next.at();
      const std::int64_t distance = next.sleb();
      if (selector > 0) {
        table_reader entry(types - static_cast<std::uint64_t>(selector) *
                                       bytes_of_format[type_encoding.format()]);
        const auto* type =
            reinterpret_cast<const std::type_info*>(entry.pointer(type_encoding, function));
        const void* const said = type != nullptr ? wanted(*type) : nullptr;
        if (said != nullptr) {
          row.handler = said;
          row.landing = base + landing;
          row.selector = static_cast<std::int32_t>(selector);
          return;
        }
      }
      if (distance == 0) return;
      next = table_reader(here + distance);
    }
  }
}

/// Writes `rules` to `row`. Returns false when a register was saved at a place that is not at a
/// constant distance, or when a distance is too long for a row.
bool fits_row(const unwind_rules& rules, unwind_row& row) {
  using place = register_rule::place;
  if (rules.cfa_expression != nullptr) return false;
  row.cfa_is_from_sp = rules.cfa_register == stack_pointer;
  using limits = std::numeric_limits<std::int32_t>;
  if (rules.cfa_offset < limits::min() || rules.cfa_offset > limits::max()) return false;
  row.cfa_offset = static_cast<std::int32_t>(rules.cfa_offset);
  const auto fits = [](const register_rule& rule, std::int16_t& words) {
    words = static_cast<std::int16_t>(rule.offset / 8);
    return rule.where == place::at_offset && std::int64_t{words} * 8 == rule.offset;
  };
  for (std::size_t i = 0; i < preserved_registers; ++i) {
    const register_rule& rule = rules.preserved[i];
    if (rule.where == place::unchanged) continue;
    row.saves |= 1u << i;
    if (!fits(rule, row.saved_at[i])) return false;
  }
  std::int16_t return_at = 0;
  const bool fit = fits(rules.return_address, return_at);
  row.return_at = return_at;
  return fit;
}

/// True for the registers from which frames are found.
bool finds_frames(std::uint64_t number) {
  return number == stack_pointer || index_of(number) == unwind_row::base_register;
}
READS_FRAMES std::uint64_t value_of(std::uint64_t number, const frame_at_call& frame) {
  return number == stack_pointer ? frame.sp : *frame.registers[unwind_row::base_register];
}

/// The value of an expression of the tables; nothing if this code does not understand it. `first`:
/// what lies on the expression's stack at the beginning.
READS_FRAMES std::optional<std::uint64_t> value_of(const std::uint8_t* expression,
                                                   const frame_at_call& frame,
                                                   std::optional<std::uint64_t> first) {
  table_reader in(expression);
  const std::uint64_t bytes = in.uleb();
  const std::uint8_t* const end = in.at() + bytes;
  std::array<std::uint64_t, 16> stack{};
  std::size_t depth = 0;
  const auto push = [&](std::uint64_t value) {
    if (depth == stack.size()) return false;
    stack[depth++] = value;
    return true;
  };
  if (first) push(*first);
  while (in.at() < end) {
    const std::uint8_t operation = in.byte();
    bool good = true;
    if (operation >= 0x70 && operation <= 0x8f) {  // breg
      const std::uint64_t number = operation - 0x70u;
      const auto offset = static_cast<std::uint64_t>(in.sleb());
      good = finds_frames(number) && push(value_of(number, frame) + offset);
    } else if (operation >= 0x30 && operation <= 0x4f) {  // lit
      good = push(operation - 0x30u);
    } else if (operation == 0x06 && depth >= 1) {  // deref
      std::memcpy(&stack[depth - 1], reinterpret_cast<const void*>(stack[depth - 1]),
                  sizeof(std::uint64_t));
    } else if (operation == 0x23 && depth >= 1) {  // plus_uconst
      stack[depth - 1] += in.uleb();
    } else if (operation == 0x08) {  // const1u, 1s, 2s
      good = push(in.get<std::uint8_t>());
    } else if (operation == 0x09) {
      good = push(static_cast<std::uint64_t>(std::int64_t{in.get<std::int8_t>()}));
    } else if (operation == 0x0b) {
      good = push(static_cast<std::uint64_t>(std::int64_t{in.get<std::int16_t>()}));
    } else if ((operation == 0x1a || operation == 0x1c || operation == 0x22) && depth >= 2) {
      const std::uint64_t right = stack[--depth];
      std::uint64_t& left = stack[depth - 1];
      left = operation == 0x1a ? left & right : operation == 0x1c ? left - right : left + right;
    } else {
      good = false;
    }
    if (!good) return std::nullopt;
  }
  if (depth == 0) return std::nullopt;
  return stack[depth - 1];
}

}  // namespace

void stack_walk::look_at_saves() {
  std::uint32_t found = 0;
  while (left_count_ > 0) {
    const left_frame each = left_[--left_count_];
    // If several frames saved a register, the oldest of them has the present frame's value. The
    // oldest is met first here.
    for (std::uint32_t saves = each.row->saves & ~found; saves != 0; saves &= saves - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(saves));
      frame_.registers[i] = each.words + each.row->saved_at[i];
    }
    found |= each.row->saves;
  }
}

const frame_at_call& stack_walk::frame() {
  look_at_saves();
  return frame_;
}

READS_FRAMES bool stack_walk::step_by_rules(const unwind_row& row) {
  if (row.how != unwind_row::form::expressions) return false;
  look_at_saves();
  const unwind_rules& rules = *row.rules;
  using place = register_rule::place;
  std::optional<std::uint64_t> cfa;
  if (rules.cfa_expression != nullptr) {
    cfa = value_of(rules.cfa_expression, frame_, std::nullopt);
  } else {
    cfa = value_of(rules.cfa_register, frame_) + static_cast<std::uint64_t>(rules.cfa_offset);
  }
  if (!cfa || *cfa <= frame_.sp || *cfa > end_) return false;
  const auto saved_at = [&](const register_rule& rule) -> std::uint64_t* {
    std::optional<std::uint64_t> address;
    if (rule.where == place::at_offset) {
      address = *cfa + static_cast<std::uint64_t>(rule.offset);
    } else if (rule.where == place::at_expression) {
      address = value_of(rule.expression, frame_, cfa);
    }
    return address ? reinterpret_cast<std::uint64_t*>(*address) : nullptr;
  };
  frame_at_call caller = frame_;
  for (std::size_t i = 0; i < preserved_registers; ++i) {
    const register_rule& rule = rules.preserved[i];
    if (rule.where == place::unchanged) continue;
    caller.registers[i] = saved_at(rule);
    if (caller.registers[i] == nullptr) return false;
  }
  const std::uint64_t* const back = saved_at(rules.return_address);
  if (back == nullptr) return false;
  caller.pc = *back;
  caller.sp = *cfa;
  frame_ = caller;
  last_ = &row;
  return true;
}

template <bool all>
READS_FRAMES inline bool stack_walk::step(const unwind_row& row) {
  if (row.how != unwind_row::form::offsets) return step_by_rules(row);
  const std::uint64_t from = row.cfa_is_from_sp ? frame_.sp : *frame_.registers[base];
  const std::uint64_t sp = from + static_cast<std::uint64_t>(std::int64_t{row.cfa_offset});
  if (sp <= frame_.sp || sp > end_) return false;
  if (all && left_count_ == left_.size()) look_at_saves();
  auto* const words = reinterpret_cast<std::uint64_t*>(sp);
  if (all) left_[left_count_++] = {&row, words};
  if ((row.saves & 1u << base) != 0) frame_.registers[base] = words + row.saved_at[base];
  frame_.pc = words[row.return_at];
  frame_.sp = sp;
  last_ = &row;
  return true;
}

// Keeps its state in local variables, because the compiler must assume that a store to left_
// changes members.
template <bool all>
READS_FRAMES inline void stack_walk::pass_plain_frames(std::uint64_t until) {
  std::uint64_t pc = frame_.pc;
  std::uint64_t sp = frame_.sp;
  std::uint64_t* base_at = frame_.registers[base];
  const unwind_row* last = last_;
  std::size_t left = left_count_;
  while (sp < until) {
    const unwind_row* row = last->caller;
    if (row->pc != pc) row = last->caller = &tables_->row(pc);
    if (!row->is_plain || (all && left == left_.size())) break;
    const std::uint64_t next = sp + static_cast<std::uint64_t>(std::int64_t{row->cfa_offset});
    if (next > end_) break;
    auto* const words = reinterpret_cast<std::uint64_t*>(next);
    if (all) left_[left++] = {row, words};
    if ((row->saves & 1u << base) != 0) base_at = words + row->saved_at[base];
    pc = words[row->return_at];
    sp = next;
    last = row;
  }
  frame_.pc = pc;
  frame_.sp = sp;
  frame_.registers[base] = base_at;
  last_ = last;
  left_count_ = left;
}

template <bool all>
bool stack_walk::go(std::uint64_t until) {
  for (;;) {
    pass_plain_frames<all>(until);
    if (frame_.sp >= until) return false;
    const unwind_row& here = row();
    if (here.handler != nullptr) return true;
    if (!step<all>(here)) return false;
  }
}

bool stack_walk::leave() { return step<true>(row()); }
bool stack_walk::go_to_handler(std::uint64_t until) { return go<true>(until); }
bool stack_walk::go_to_handler_lightly(std::uint64_t until) {
  left_count_ = 0;  // forgets these frames: their saves would replace those of frames that are left
                    // from now on
  return go<false>(until);
}

const unwind_row& unwind_tables::find(std::uint64_t pc) {
  if (pc == 0) return nobody_;
  for (std::size_t at = place_of(pc);; at = (at + 1) & last_place_) {
    if (entries_[at].pc == pc) return *entries_[at].row;
    if (entries_[at].pc == 0) return add(pc);
  }
}

const unwind_row& unwind_tables::add(std::uint64_t pc) {
  if (2 * ++used_ > last_place_) grow();
  auto* const row = ::new (runtime_resource()->allocate(sizeof(unwind_row)))
      unwind_row{.pc = pc, .caller = &nobody_};
  read(pc, *row);
  insert({pc, row});
  return *row;
}

void unwind_tables::insert(const entry& e) {
  std::size_t at = place_of(e.pc);
  while (entries_[at].pc != 0) at = (at + 1) & last_place_;
  entries_[at] = e;
}

void unwind_tables::grow() {
  entry* const old = entries_;
  const std::size_t places = last_place_ + 1;
  entries_ = static_cast<entry*>(runtime_resource()->allocate(2 * places * sizeof(entry)));
  std::uninitialized_fill_n(entries_, 2 * places, entry{});
  last_place_ = 2 * places - 1;
  for (std::size_t i = 0; i < places; ++i) {
    if (old[i].pc != 0) insert(old[i]);
  }
  if (old != first_entries_.data()) runtime_resource()->deallocate(old, places * sizeof(entry));
}

void unwind_tables::read(std::uint64_t pc, unwind_row& row) const {
  object_bases bases{};
  // A return address may lie after its function, whose last instruction was the call.
  const std::uint64_t at = pc - 1;
  const auto* description =
      static_cast<const std::uint8_t*>(_Unwind_Find_FDE(reinterpret_cast<void*>(at), &bases));
  if (description == nullptr) return;
  table_reader in(description);
  const auto bytes = in.get<std::uint32_t>();
  const std::uint8_t* const end = in.at() + bytes;
  const std::uint8_t* const distance_at = in.at();
  const common_description common = read_common(distance_at - in.get<std::int32_t>());
  if (common.is_of_signal) return;
  const std::uint64_t function = in.pointer(common.addresses);
  in.pointer({common.addresses.format()});
  std::uint64_t table = 0;
  if (common.has_augmentation) {
    const std::uint64_t length = in.uleb();
    const std::uint8_t* const behind = in.at() + length;
    if (length != 0) table = in.pointer(common.tables, function);
    in = table_reader(behind);
  }
  unwind_rules rules;
  const unwind_rules none;
  if (!carry_out(common.first, common.end, common, 0, ~std::uint64_t{0}, rules, none)) return;
  const unwind_rules initial = rules;
  if (!carry_out(in.at(), end, common, function, at, rules, initial)) return;
  if (rules.return_address.where == register_rule::place::undefined) {
    row.how = unwind_row::form::end;
  } else if (rules.cfa_expression == nullptr && !finds_frames(rules.cfa_register)) {
    row.how = unwind_row::form::unknown;
  } else if (fits_row(rules, row)) {
    row.how = unwind_row::form::offsets;
  } else {
    void* room = runtime_resource()->allocate(sizeof rules);
    row.rules = ::new (room) unwind_rules(rules);
    row.how = unwind_row::form::expressions;
  }
  // A call with arguments on the stack has no such handler here: the handler would have to drop
  // them.
  if (common.is_of_cpp && table != 0 && rules.args_size == 0) {
    find_handler(reinterpret_cast<const std::uint8_t*>(table), function, at, wanted_, row);
  }
  row.is_plain = row.how == unwind_row::form::offsets && row.cfa_is_from_sp && row.cfa_offset > 0 &&
                 row.handler == nullptr;
}

}  // namespace sojourn::detail
