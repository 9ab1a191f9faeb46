// SPDX-License-Identifier: Apache-2.0
// Calls by name as the templates see them: what a caller knows of a name, what a program exports
// under it, and the two ends of a call. Looking up names is compiled in src/rpc/named.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/method.hpp"
#include "sojourn/detail/request.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/type_text.hpp"

namespace sojourn::detail {

/// A name as a template argument.
template <std::size_t Size>
struct fixed_name {
  char text[Size]{};

  consteval fixed_name() = default;
  consteval fixed_name(const char (&literal)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, Size - 1}; }
};

/// "counter" and "add" as "counter.add".
template <std::size_t A, std::size_t B>
consteval fixed_name<A + B> dotted(const fixed_name<A>& a, const fixed_name<B>& b) {
  fixed_name<A + B> both;
  for (std::size_t i = 0; i + 1 < A; ++i) both.text[i] = a.text[i];
  both.text[A - 1] = '.';
  for (std::size_t i = 0; i < B; ++i) both.text[A + i] = b.text[i];
  return both;
}

/// The message of a call begins with this. If the caller does not know the entry, the name and the
/// signature follow, each with its NUL, padded to a multiple of 16 bytes. Then come the arguments.
struct named_header {
  std::uint64_t key;
  std::uint32_t entry;  ///< Index in the receiver's table, or no_entry.
  /// 0 if the message names the entry. Otherwise the length of the two texts (a multiple of 16)
  /// plus name_stub::values, which a receiver that refuses the call uses: it tells the caller to
  /// let go of the values.
  std::uint32_t text;

  static constexpr std::uint32_t no_entry = ~0u;
  std::size_t text_bytes() const { return text & ~15u; }
  std::uint32_t values() const { return text & 15; }
};

struct export_entry;

/// What a call of a function sends in place of an object.
struct travelling_nothing {};

/// What this rank, as a caller, knows of a name. In static storage, because frames that migrate
/// refer to it.
struct name_stub {
  std::uint64_t key;  ///< Hash of the name, the signature, and the sizes of what travels as bytes.
  const char* name;
  const char* signature;
  /// By rank, one more than the entry in the table there; 0 when not known. (MRPC, stub caching)
  const std::uint32_t* entries;
  const export_entry* here;  ///< What this program exports under the name, or null.
  name_stub* next;           ///< The next stub of this rank in the same bucket.
  bool is_known;
  /// Where, among the arguments of a call, the values begin that the caller may keep for the
  /// receiver (marshalled_header): the distance from the first argument in units of 16 bytes, plus
  /// 1. 0: there are none.
  std::uint8_t values = 0;
};

/// The `entries` of a stub that knows none yet.
extern const std::uint32_t no_entries[];

/// What a program exports under a name.
struct export_entry {
  using runner = void (*)(const export_entry& entry, request& message, const std::byte* arguments);

  std::uint64_t key;
  runner run;
  void (*call_here)();  ///< For a method: really R (*)(const export_entry&, T&, A&&…).
  name_stub* stub;
  std::uint32_t argument_bytes;
  bool is_method;
  alignas(16) std::byte implementation[16];  ///< A function or method pointer; or nothing.
};

/// To be called before run(). Errors are reported when the job starts.
void add_export(const export_entry& entry);

/// Room for the arguments of a call; no suspension between this and commit_named. May itself
/// suspend, as begin_request does.
outgoing begin_named(name_stub& stub, int to, std::size_t argument_bytes, bool answered);
void commit_named(int to, bool is_method, ticket_id ticket);
/// Throws not_exported: an object of this rank is called by a name that its program does not know.
[[noreturn]] void not_exported_here(const name_stub& stub);
/// Answers a message that is shorter than its arguments: the caller gets an error.
void refuse_malformed(const export_entry& entry, request& message);

/// FNV-1a.
constexpr std::uint64_t mix_key(std::uint64_t hash, std::string_view bytes) {
  for (char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

/// Adds the size of a type that is copied as bytes: it must be the same on both sides.
template <class T>
constexpr std::uint64_t mix_size(std::uint64_t hash) {
  if constexpr (!std::is_void_v<T>) {
    if constexpr (travels<T>) hash = (hash ^ sizeof(T)) * 0x100000001b3u;
  }
  return hash;
}

template <class R, class... P>
constexpr text_buffer call_text(std::string_view of_class, bool is_const) {
  text_list parameters;
  (parameters.add(type_text<P>()), ...);
  text_buffer text = type_text<R>();
  if (!of_class.empty()) text = text + " " + of_class + "::";
  return text + "(" + parameters.view() + (is_const ? ") const" : ")");
}

/// A signature taken apart: R(P…), R (T::*)(P…) or R (T::*)(P…) const.
template <class Signature>
struct signature_of {
  static_assert(std::is_void_v<Signature>,
                "sojourn: the signature of a method is R(P...), or R (T::*)(P...), const or not");
};
template <class R, class... P>
struct signature_of<R(P...)> {
  using result = R;
  using arguments = std::tuple<travelling_parameter<P>...>;
  using object = void;
  using implementation = R (*)(P...);
  static constexpr bool is_method = false;
  static constexpr std::size_t arity = sizeof...(P);
  static constexpr bool parameters_travel =
      ((parameter_travels<P> && marshals<travelling_parameter<P>>) && ...);
  static constexpr bool has_plain_arguments = (travels<travelling_parameter<P>> && ...);
  /// The frames of an access own nothing, so that they may migrate.
  static constexpr bool is_plain_access = has_plain_arguments && travels<R>;
  static constexpr text_buffer text() { return call_text<R, P...>("", false); }
  static constexpr std::uint64_t mix_sizes(std::uint64_t hash) {
    hash = mix_size<R>(hash);
    ((hash = mix_size<travelling_parameter<P>>(hash)), ...);
    return hash;
  }
};
template <class T, class R, class... P>
struct signature_of<R (T::*)(P...)> : signature_of<R(P...)> {
  using object = T;
  using implementation = R (T::*)(P...);
  static constexpr bool is_method = true;
  static constexpr text_buffer text() { return call_text<R, P...>(type_text<T>().view(), false); }
};
template <class T, class R, class... P>
struct signature_of<R (T::*)(P...) const> : signature_of<R(P...)> {
  using object = const T;
  using implementation = R (T::*)(P...) const;
  static constexpr bool is_method = true;
  static constexpr text_buffer text() { return call_text<R, P...>(type_text<T>().view(), true); }
};

template <class Signature>
struct signature_text {
  static constexpr std::size_t size = signature_of<Signature>::text().size();
  static constexpr std::array<char, size + 1> value = [] {
    std::array<char, size + 1> chars{};
    text_buffer text = signature_of<Signature>::text();
    for (std::size_t i = 0; i < size; ++i) chars[i] = text.view()[i];
    return chars;
  }();
};

/// One name with its signature, as both ends of a call have it.
template <fixed_name Name, class Signature>
struct named {
  using signature = signature_of<Signature>;
  using result = typename signature::result;
  using arguments = typename signature::arguments;
  using object = typename signature::object;

  static constexpr std::uint64_t key = [] {
    std::uint64_t hash = mix_key(0xcbf29ce484222325u, Name.view());
    hash = mix_key(hash ^ '\n',
                   {signature_text<Signature>::value.data(), signature_text<Signature>::size});
    return signature::mix_sizes(hash);
  }();
  /// name_stub::values.
  static constexpr std::uint8_t values = signature::has_plain_arguments ? 0
                                         : signature::is_method         ? 2
                                                                        : 1;
  inline static constinit name_stub stub = {
      key,   Name.text, signature_text<Signature>::value.data(), no_entries, nullptr, nullptr,
      false, values};

  /// The name in the form in which bad_access and checked mode expect a method's name.
  static const char* method_text() {
    static const std::string text = "Method = &" + std::string(Name.view()) + "]";
    return text.c_str();
  }
};

/// What the message has in front of the arguments.
template <class Named>
using named_head =
    std::conditional_t<Named::signature::is_method, method_head<false>, travelling_nothing>;
/// A call by name as its caller sends it. Its handler is found by the entry in front of it.
template <class Named>
struct named_target : consumed_target {
  using head = named_head<Named>;
  using result = typename Named::result;
  static constexpr bool is_registered = false;
  static const char* name() { return Named::method_text(); }
};
template <class Target, class Arguments>
struct request_with;
template <class Target, class... A>
struct request_with<Target, std::tuple<A...>> {
  using type = request_of<Target, A...>;
};
template <class Target, class Named>
using named_request = typename request_with<Target, typename Named::arguments>::type;

template <class Named>
struct named_way {
  int to;
  bool answered;

  outgoing begin(std::size_t bytes) const { return begin_named(Named::stub, to, bytes, answered); }
  void commit(const outgoing& out, std::uint16_t) const {
    commit_named(to, Named::signature::is_method, out.ticket);
  }
};

template <class Named>
inline constexpr bool knows_its_values =
    Named::values == 0 ||
    std::size_t{Named::values} - 1 == named_request<named_target<Named>, Named>::head_room / 16;

/// The caller's end: sends a call; returns the ticket of its answer, or 0.
template <class Named, class... First>
ticket_id send_named(int to, bool answered, typename Named::arguments values, First... first) {
  static_assert(knows_its_values<Named>);
  const named_head<Named> head{const_cast<void*>(static_cast<const void*>(first))...};
  return named_request<named_target<Named>, Named>::send_tuple(named_way<Named>{to, answered}, head,
                                                               values);
}

/// The callee's end, for one implementation.
template <class Named, class Implementation>
struct exported {
  using result = typename Named::result;

  static Implementation implementation_of(const export_entry& entry) {
    room<Implementation> copy;
    std::memcpy(static_cast<void*>(&copy.value), entry.implementation, sizeof(Implementation));
    return copy.value;
  }

  /// Frames of its run() may migrate, unless they hold an object (for a method) or own memory.
  struct target : named_target<Named> {
    Implementation implementation;
    int source;

    template <class Arguments>
    void run([[maybe_unused]] named_head<Named>& to, ticket_id answer, Arguments& arguments) const {
      [[maybe_unused]] std::conditional_t<Named::signature::has_plain_arguments, nothing,
                                          stays_here> stays;
      if constexpr (Named::signature::is_method) {
        auto& object = *static_cast<typename Named::object*>(to.object);
        check_object(object, source);
        carry_out(implementation, answer, arguments, object);
      } else {
        carry_out(implementation, answer, arguments);
      }
    }
  };

  /// `bytes`: the part of `m` after its header.
  static void run(const export_entry& entry, request& m, const std::byte* bytes) {
    request rest = m;
    rest.payload = bytes;
    rest.bytes = static_cast<std::uint32_t>(m.bytes - (bytes - m.payload));
    named_request<target, Named>::read(rest, target{{}, implementation_of(entry), m.source});
  }

  template <class Arguments, class... Object>
  static void carry_out(Implementation implementation, ticket_id answer, Arguments& arguments,
                        Object&... object) noexcept {
    run_call<result>(answer, [&]() -> result {
      [[maybe_unused]] const typename Arguments::reading reading(&arguments);
      (bring_parts_home(object), ...);
      [[maybe_unused]] const changes_of<Object...> changes(object...);
      return std::apply(
          [&](auto&... a) -> result {
            if constexpr (sizeof...(Object) != 0) {
              const handled_method_guard guard;
              return in_turn(object..., [&]() -> result {
                return std::invoke(implementation, object..., std::move(a)...);
              });
            } else {
              return implementation(std::move(a)...);
            }
          },
          arguments.get());
    });
  }

  template <class T>
  static void check_object(T& object, int source) {
    if (checked()) [[unlikely]] {
      check_access(reinterpret_cast<std::uint64_t>(&object), kind_of_object<T>(),
                   Named::method_text(), {0, source});
    }
  }

  template <class T, class... A>
  static result call_here(const export_entry& entry, T& object, A&&... a) {
    check_object(object, job.me);
    bring_parts_home(object);
    [[maybe_unused]] const changes_of<T> changes(object);
    return in_turn(object, [&]() -> result {
      return std::invoke(implementation_of(entry), object, std::forward<A>(a)...);
    });
  }

  template <class... A>
  static void (*pointer_to_call_here(std::type_identity<std::tuple<A...>>))() {
    return reinterpret_cast<void (*)()>(&call_here<typename Named::object, A...>);
  }

  static void add(Implementation implementation) {
    if constexpr (Named::signature::is_method)
      is_called_blindly<std::remove_const_t<typename Named::object>> = true;
    static_assert(sizeof(Implementation) <= sizeof(export_entry::implementation));
    export_entry entry{};
    entry.key = Named::key;
    entry.run = run;
    entry.stub = &Named::stub;
    entry.argument_bytes = named_request<named_target<Named>, Named>::least();
    entry.is_method = Named::signature::is_method;
    if constexpr (Named::signature::is_method) {
      entry.call_here = pointer_to_call_here(std::type_identity<typename Named::arguments>{});
    }
    std::memcpy(entry.implementation, static_cast<const void*>(&implementation),
                sizeof(Implementation));
    add_export(entry);
  }
};

/// Access to an object by a method's name.
template <class M, class T, class... A>
struct named_access {
  using named = typename M::named;
  using result = typename M::result;
  using arguments = typename M::arguments;

  static_assert(named::signature::is_method,
                "sojourn: this name belongs to a function, not to a method: call it with rpc");
  static_assert(
      !named::signature::is_method ||
          std::is_same_v<std::remove_const_t<T>, std::remove_const_t<typename named::object>>,
      "sojourn: this is not a method of the object that the global_ptr points to");
  static_assert(std::is_const_v<typename named::object> || !std::is_const_v<T>,
                "sojourn: a method that is not const cannot be called through a "
                "global_ptr<const T>");
  static_assert(std::is_constructible_v<arguments, A...> && sizeof...(A) == named::signature::arity,
                "sojourn: the arguments of this access do not fit the method's parameters");

  static constexpr bool is_plain = named::signature::is_plain_access;
  static constexpr bool is_cacheable = false;
  static constexpr bool is_movable = false;
  static constexpr bool writes = !std::is_const_v<typename named::object>;
  /// The caller need not know it. Objects of such a type do not move; run_here() sees to its parts.
  static constexpr std::size_t object_bytes = 1;
  static const char* name() { return named::method_text(); }

  /// Also an object of this rank is called by a message: the method runs later.
  [[gnu::noinline]] static future<result> start(std::uint64_t address, arguments a) {
    return future_access::of_ticket<future<result>>(
        send(owner_of_object(address, name()), address, {}, a));
  }

  // The parts of perform() (access.hpp).

  static ticket_id send(int owner, std::uint64_t address, code_site, arguments& a) {
    ++counts.calls_remote;
    return send_named<named>(owner, true, std::move(a),
                             reinterpret_cast<typename named::object*>(address));
  }

  // The object is on this rank. The program is the one that made the call, because frames never go
  // to a rank with another program.
  static result run_on_object(const object_place&, std::uint64_t address, code_site site,
                              arguments& a) {
    return run_here(address, site, a);
  }
  static result run_here(std::uint64_t address, code_site, arguments& a) {
    const export_entry* entry = named::stub.here;
    if (entry == nullptr) not_exported_here(named::stub);
    auto* object = reinterpret_cast<typename named::object*>(address);
    method_guard guard;
    return std::apply(
        [&]<class... B>(B&... b) -> result {
          auto call =
              reinterpret_cast<result (*)(const export_entry&, typename named::object&, B&&...)>(
                  entry->call_here);
          return call(*entry, *object, std::move(b)...);
        },
        a);
  }
};

}  // namespace sojourn::detail
