// SPDX-License-Identifier: Apache-2.0
#include "rpc/exceptions.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "fiber/thrown.hpp"
#include "message/programs.hpp"
#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

/// The part before the text of an exception that came from another rank.
template <class Head>
Head head_of(const char* bytes, std::size_t size) {
  if (size < sizeof(Head)) {
    throw malformed_message(format("an exception of %zu bytes is malformed", size));
  }
  Head head;
  std::memcpy(&head, bytes, sizeof head);
  return head;
}

/// For exception types without any state.
template <class E>
exception_kind plain_kind() {
  return {&typeid(E), 0, [](const void*, char*, std::size_t) { return std::size_t{0}; },
          [](const char*, std::size_t) { throw E(); }};
}

exception_kind system_error_kind() {
  return {&typeid(std::system_error), 0,
          [](const void* exception, char* bytes, std::size_t room) {
            const auto& e = *static_cast<const std::system_error*>(exception);
            int words[2] = {e.code().value(), e.code().category() == std::generic_category()};
            std::memcpy(bytes, words, sizeof words);
            return sizeof words + put_text(bytes + sizeof words, room - sizeof words, e.what());
          },
          [](const char* bytes, std::size_t size) {
            const auto words = head_of<std::array<int, 2>>(bytes, size);
            const auto& category = words[1] ? std::generic_category() : std::system_category();
            // what() is "text: message of the code": the constructor adds the second part.
            std::string what(bytes + sizeof words, size - sizeof words);
            std::string tail = ": " + category.message(words[0]);
            if (what.size() >= tail.size() && what.ends_with(tail)) {
              what.resize(what.size() - tail.size());
            }
            throw std::system_error(words[0], category, what);
          }};
}

exception_kind rank_lost_kind() {
  return {&typeid(rank_lost), 0,
          [](const void* exception, char* bytes, std::size_t room) {
            const auto& e = *static_cast<const rank_lost*>(exception);
            const int rank = e.rank();
            std::memcpy(bytes, &rank, sizeof rank);
            return sizeof rank + put_text(bytes + sizeof rank, room - sizeof rank, e.what());
          },
          [](const char* bytes, std::size_t size) {
            const int rank = head_of<int>(bytes, size);
            throw rank_lost(rank, std::string(bytes + sizeof rank, size - sizeof rank));
          }};
}

/// The first so many kinds of the table are the same in all programs.
constexpr std::size_t standard_kinds = 35;

std::vector<exception_kind>& kinds() {
  static std::vector<exception_kind> table = [] {
    std::vector<exception_kind> standard{
        kind_of<std::logic_error>(),
        kind_of<std::invalid_argument>(),
        kind_of<std::domain_error>(),
        kind_of<std::length_error>(),
        kind_of<std::out_of_range>(),
        kind_of<std::runtime_error>(),
        kind_of<std::range_error>(),
        kind_of<std::overflow_error>(),
        kind_of<std::underflow_error>(),
        kind_of<error>(),
        kind_of<malformed_message>(),
        kind_of<different_program>(),
        kind_of<not_exported>(),
        kind_of<continuation_error>(),
        kind_of<dist_object_destroyed>(),
        kind_of<replicated_destroyed>(),
        plain_kind<std::exception>(),
        plain_kind<std::bad_alloc>(),
        plain_kind<std::bad_array_new_length>(),
        plain_kind<std::bad_cast>(),
        plain_kind<std::bad_typeid>(),
        plain_kind<std::bad_function_call>(),
        plain_kind<std::bad_optional_access>(),
        plain_kind<std::bad_variant_access>(),
        plain_kind<std::bad_weak_ptr>(),
        system_error_kind(),
        rank_lost_kind(),
        kind_of<int>(),
        kind_of<long>(),
        kind_of<unsigned>(),
        kind_of<double>(),
        kind_of<char>(),
        kind_of<bool>(),
        kind_of<short>(),
        kind_of<unsigned long>(),
    };
    SOJOURN_CHECK(standard.size() == standard_kinds, "%zu standard exceptions", standard.size());
    return standard;
  }();
  return table;
}

std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                              std::free);
  return status == 0 ? text.get() : name;
}

/// Longer names of types are cut off. An exception of such a type arrives as one of an unknown
/// type.
constexpr std::size_t name_max = 368;
/// Room for the own bytes of a registered type; the text after them may be long.
constexpr std::size_t bytes_max = 640;

/// The kind of exception that this program has registered under `name`, or null.
const exception_kind* registered_kind(std::string_view name) {
  const auto& all = kinds();
  for (std::size_t i = standard_kinds; i < all.size(); ++i) {
    if (name == all[i].type->name()) return &all[i];
  }
  return nullptr;
}

std::string what_of(const std::exception_ptr& exception, const std::type_info& type) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of type " + demangled(type.name());
  }
}

}  // namespace

bool register_exception(const exception_kind& kind) {
  kinds().push_back(kind);
  return true;
}

namespace {

void encode_object(const std::exception_ptr& exception, encoded_exception& to) {
  to.rank = job.me;
  to.name_size = to.bytes_size = 0;
  const std::type_info* type = exception.__cxa_exception_type();
  // An exception_ptr is the object's address (Itanium C++ ABI, as libstdc++ implements it).
  const void* object = *reinterpret_cast<void* const*>(&exception);
  for (std::uint32_t i = 0; i < standard_kinds; ++i) {
    if (*kinds()[i].type != *type) continue;
    to.kind = i;
    to.size =
        static_cast<std::uint32_t>(kinds()[i].encode(object, to.text, encoded_exception::text_max));
    return;
  }
  to.kind = encoded_exception::by_name;
  std::string name = type->name();
  std::string what;
  const exception_kind* kind = registered_kind(name);
  if (kind == nullptr && *type == typeid(remote_exception)) {
    // The exception was thrown on a third rank: it keeps the name and the rank from there.
    const auto& e = *static_cast<const remote_exception*>(object);
    to.kind = encoded_exception::by_plain_name;
    to.rank = e.rank();
    name = e.type_name();
    what = e.what();
  } else {
    what = what_of(exception, *type);
  }
  to.name_size = static_cast<std::uint16_t>(name.copy(to.text, name_max));
  if (kind != nullptr) {
    to.bytes_size =
        static_cast<std::uint16_t>(kind->encode(object, to.text + to.name_size, bytes_max));
  }
  const std::size_t before = std::size_t{to.name_size} + to.bytes_size;
  to.size = static_cast<std::uint32_t>(
      put_text(to.text + before, encoded_exception::text_max - before, what));
}

[[noreturn]] void rethrow_object(const encoded_exception& e) {
  if (e.kind < standard_kinds) kinds()[e.kind].rethrow(e.text, e.size);
  std::string name(e.text, e.name_size);
  const char* own = e.text + e.name_size;
  std::string what(own + e.bytes_size, e.size);
  if (e.kind == encoded_exception::by_plain_name) throw remote_exception(name, what, e.rank);
  if (const exception_kind* kind = registered_kind(name);
      kind != nullptr && (kind->bytes == 0 || kind->bytes == e.bytes_size)) {
    kind->rethrow(own, e.bytes_size);
  }
  throw remote_exception(demangled(name.c_str()), what, e.rank);
}

/// Reads the frames that came after the exception; false when they are malformed.
bool read_frames(const encoded_exception& e, thrown_frames& from) {
  if (e.from_size < offsetof(thrown_frames, code) || e.from_size > sizeof from) return false;
  std::memcpy(static_cast<void*>(&from), e.text + e.bytes_of_text(), e.from_size);
  return from.bytes() == e.from_size && from.rank >= 0 && from.rank < job.count;
}

}  // namespace

void encode(const std::exception_ptr& exception, encoded_exception& to) {
  encode_object(exception, to);
  to.from_size = 0;
  if (const thrown_frames* from = thrown_from(exception)) {
    to.from_size = static_cast<std::uint32_t>(from->bytes());
    std::memcpy(to.text + to.bytes_of_text(), from, to.from_size);
  }
}

void encode_for(int rank, const std::exception_ptr& exception, encoded_exception& to) {
  encode(exception, to);
  if (runs_other_program(rank)) to.from_size = 0;
}

std::vector<std::byte> encoded(const std::exception_ptr& exception) {
  encoded_exception e;
  encode(exception, e);
  if (several_programs) e.from_size = 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(&e);
  return {bytes, bytes + e.bytes()};
}

std::exception_ptr decoded(const void* bytes, std::size_t size) {
  try {
    rethrow(bytes, size);
  } catch (...) {
    return std::current_exception();
  }
}

void rethrow(const void* bytes, std::size_t size) {
  encoded_exception e;
  std::memcpy(static_cast<void*>(&e), bytes, std::min(size, sizeof e));
  thrown_frames from;
  bool fits = size >= offsetof(encoded_exception, text) && size <= sizeof e &&
              e.name_size <= encoded_exception::text_max && e.size <= encoded_exception::text_max &&
              e.bytes_size <= encoded_exception::text_max &&
              e.bytes_of_text() <= encoded_exception::text_max;
  if (fits && e.kind < standard_kinds) {
    fits = kinds()[e.kind].bytes == 0 || kinds()[e.kind].bytes == e.size;
  }
  if (!fits || e.bytes() != size || (e.from_size != 0 && !read_frames(e, from))) {
    throw malformed_message(format("an exception of %zu bytes is malformed", size));
  }
  if (from.in_all == 0) rethrow_object(e);
  std::exception_ptr exception;
  try {
    rethrow_object(e);
  } catch (...) {
    exception = std::current_exception();
  }
  note_thrown_from(exception, from);
  std::rethrow_exception(std::move(exception));
}

}  // namespace sojourn::detail
