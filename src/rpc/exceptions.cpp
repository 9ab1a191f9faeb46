// SPDX-License-Identifier: Apache-2.0
#include "rpc/exceptions.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "sojourn/detail/archive.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

/// For types whose only state is their type.
template <class E>
exception_kind plain_kind() {
  return {&typeid(E), [](const void*, char*, std::size_t) { return std::size_t{0}; },
          [](const char*, std::size_t) { throw E(); }};
}

exception_kind system_error_kind() {
  return {&typeid(std::system_error),
          [](const void* exception, char* bytes, std::size_t room) {
            const auto& e = *static_cast<const std::system_error*>(exception);
            int words[2] = {e.code().value(), e.code().category() == std::generic_category()};
            std::memcpy(bytes, words, sizeof words);
            std::size_t size = std::min(std::strlen(e.what()), room - sizeof words);
            std::memcpy(bytes + sizeof words, e.what(), size);
            return sizeof words + size;
          },
          [](const char* bytes, std::size_t size) {
            int words[2];
            std::memcpy(words, bytes, sizeof words);
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

std::vector<exception_kind>& kinds() {
  static std::vector<exception_kind> table = [] {
    return std::vector<exception_kind>{
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
        kind_of<int>(),
        kind_of<long>(),
        kind_of<unsigned>(),
        kind_of<double>(),
        kind_of<char>(),
        kind_of<bool>(),
        kind_of<short>(),
        kind_of<unsigned long>(),
    };
  }();
  return table;
}

std::string demangled(const char* name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                              std::free);
  return status == 0 ? text.get() : name;
}

std::uint32_t put_text(encoded_exception& to, std::size_t at, const std::string& text) {
  std::size_t size = std::min(text.size(), encoded_exception::text_max - at);
  std::memcpy(to.text + at, text.data(), size);
  return static_cast<std::uint32_t>(size);
}

}  // namespace

bool register_exception(const exception_kind& kind) {
  kinds().push_back(kind);
  return true;
}

void encode(const std::exception_ptr& exception, encoded_exception& to) {
  to.rank = job.me;
  to.name_size = 0;
  to.kind = encoded_exception::unregistered;
  const std::type_info* type = exception.__cxa_exception_type();
  for (std::uint32_t i = 0; i < kinds().size(); ++i) {
    if (*kinds()[i].type != *type) continue;
    to.kind = i;
    // An exception_ptr is the object's address (Itanium C++ ABI, as libstdc++ implements it).
    const void* object = *reinterpret_cast<void* const*>(&exception);
    to.size =
        static_cast<std::uint32_t>(kinds()[i].encode(object, to.text, encoded_exception::text_max));
    return;
  }
  try {
    std::rethrow_exception(exception);
  } catch (const remote_exception& e) {
    // Thrown on yet another rank: it keeps its first name and rank.
    to.rank = e.rank();
    to.name_size = put_text(to, 0, e.type_name().substr(0, 256));
    to.size = put_text(to, to.name_size, e.what());
  } catch (const std::exception& e) {
    to.name_size = put_text(to, 0, demangled(type->name()).substr(0, 256));
    to.size = put_text(to, to.name_size, e.what());
  } catch (...) {
    to.name_size = put_text(to, 0, demangled(type->name()).substr(0, 256));
    to.size = put_text(to, to.name_size, "an exception of type " + demangled(type->name()));
  }
}

void rethrow(const void* bytes, std::size_t size) {
  encoded_exception e;
  std::memcpy(&e, bytes, std::min(size, sizeof e));
  bool fits = size >= offsetof(encoded_exception, text) && size <= sizeof e &&
              e.name_size <= encoded_exception::text_max && e.size <= encoded_exception::text_max;
  if (!fits || e.bytes() != size) {
    throw malformed_message(format("an exception of %zu bytes is malformed", size));
  }
  if (e.kind < kinds().size()) kinds()[e.kind].rethrow(e.text, e.size);
  throw remote_exception(std::string(e.text, e.name_size),
                         std::string(e.text + e.name_size, e.size), e.rank);
}

}  // namespace sojourn::detail
