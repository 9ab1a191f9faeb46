// SPDX-License-Identifier: Apache-2.0
// What a request calls: a function or a method. (thread.hpp has threads, named.hpp what is exported
// by name.) A target says
//
//   head          what the message holds in front of the arguments
//   result        what the call returns
//   may_migrate   the frames of its handler may leave their rank, if no argument owns memory
//   never_waits   the handler needs no stack of its own
//   name()        the compiler's name for what is called
//   is_registered its handler has a number, which messages name
//   may_be_kept   its messages may be kept for later (register_request_handler)
//   keeps(message)  the message is kept now: it is consumed, and there is nothing to do
//   take(message)   frees the message, or what was kept of it
//   run(head, answer, arguments)   calls it, and sends the outcome to the ticket `answer`. While it
//                 uses the `arguments` (request.hpp), and no longer, a `reading` of them must live:
//                 its end frees a message that is read in place.
//
// A target without a number (is_registered) is used at one end only: it needs the members that
// sending needs, or those that reading needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/batch.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/moves.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/thrown.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/waiting/monitor.hpp"

namespace sojourn::detail {

/// A callable without captures in the form in which it travels: nothing, or the index of a
/// function.
template <class F, bool IsPointer = is_function_pointer<F>>
struct travelling_callable {
  explicit travelling_callable(F) {}
  F get() const {
    static_assert(std::is_empty_v<F>);
    alignas(F) unsigned char storage[sizeof(F)] = {};
    return *reinterpret_cast<F*>(storage);
  }
};
template <class F>
struct travelling_callable<F, true> {
  explicit travelling_callable(F fn) : index(function_index(reinterpret_cast<void (*)()>(fn))) {}
  F get() const { return reinterpret_cast<F>(function_at(index)); }
  std::uint32_t index;
};
template <class F>
struct travelling_callable<nonblocking<F>, false> : travelling_callable<F> {
  explicit travelling_callable(const nonblocking<F>& fn) : travelling_callable<F>(fn.fn) {}
  nonblocking<F> get() const { return nonblocking<F>(travelling_callable<F>::get()); }
};

/// Runs `call` and sends its outcome; when nobody waits for it, only an exception is handed on.
template <class R, class Call>
void run_call(ticket_id answer, Call&& call) noexcept {
  if (answer != 0) {
    send_outcome<R>(answer, call);
    return;
  }
  std::exception_ptr failure;
  try {
    call();
    return;
  } catch (const thrown_past&) {
    failure = caught_past();
  } catch (...) {
    failure = caught_past();
  }
  one_way_failed(failure);
}

/// A target whose messages are not kept.
struct consumed_target {
  static constexpr bool is_registered = true;
  static constexpr bool may_be_kept = false;
  static constexpr bool keeps(request&) { return false; }
  static void take(request& message) { message.consume(); }
};

template <class F>
const char* callable_name() {
  return __PRETTY_FUNCTION__;
}

template <class F, class R>
struct function_target : consumed_target {
  using head = travelling_callable<F>;
  using result = R;
  static constexpr bool may_migrate = true;
  static constexpr bool never_waits = is_nonblocking<F>;
  static const char* name() { return callable_name<F>(); }

  template <class Arguments>
  static void run(head& fn, ticket_id answer, Arguments& arguments) {
    run_call<R>(answer, [&]() -> R {
      [[maybe_unused]] const typename Arguments::reading reading(&arguments);
      return std::apply(fn.get(), std::move(arguments.get()));
    });
  }
};

/// It promises not to wait: the program says so, or it reads its items in a message.
template <auto Method>
inline constexpr bool promises_not_to_wait =
    nonblocking_method<Method> || takes_batch<decltype(Method)>;

/// Calls `Method` on an object of this rank; C is the class that declares it.
template <auto Method, class T, class C, class R, class... A>
[[gnu::always_inline]] inline R call_method(T* object, std::tuple<A...>& arguments) {
  const handled_method_guard guard;
  keep_address(object);
  [[maybe_unused]] const address_kept_of<T> kept(object);
  std::conditional_t<std::is_const_v<T>, const C, C>* as_declared = object;
  return in_turn(*object, [&]() -> R {
    [[maybe_unused]] const promise_if<promises_not_to_wait<Method>> promise;
    return std::apply([&](A&... a) -> R { return (as_declared->*Method)(std::move(a)...); },
                      arguments);
  });
}

template <auto Method>
const char* method_name() {
  return __PRETTY_FUNCTION__;
}

/// Refuses a call of an object that is not in this rank's heap.
[[noreturn]] void refuse_object(std::uint64_t address);
template <class T>
[[gnu::always_inline]] inline T* object_here(T* object) {
  auto address = reinterpret_cast<std::uint64_t>(object);
  if (!is_here(address)) [[unlikely]]
    refuse_object(address);
  return object;
}

/// Makes the call that `Target` describes once more, on another rank, and returns its result.
/// (request.hpp)
template <class Target, class... A>
typename Target::result call_again(int rank, const typename Target::head& to,
                                   std::tuple<A...>& arguments);

/// The object whose method is called. In checked mode its rank checks the object first, and can
/// tell who asked.
template <bool Checked>
struct method_head {
  void* object;
};
template <>
struct method_head<true> {
  void* object;
  code_site site;
};

/// A method of an object of the receiving rank. The handler's frames hold `this`, so they stay.
template <auto Method, class T, class C, class R, bool Checked>
struct method_target : consumed_target {
  using head = method_head<Checked>;
  using result = R;
  static constexpr bool may_migrate = false;
  /// A call may have to wait for its turn (monitor), whatever the method promises.
  static constexpr bool never_waits =
      promises_not_to_wait<Method> && !std::is_base_of_v<monitor, T>;
  /// It may have to wait for copies of the object, and cannot.
  static void note_promise() {
    if constexpr (!is_const_method<decltype(Method)>) changed_without_waiting<T> = true;
    is_called_blindly<std::remove_const_t<T>> = true;
  }
  static const char* name() { return method_name<Method>(); }

  template <class Arguments>
  static void run(head& to, ticket_id answer, Arguments& arguments) {
    run_call<R>(answer, [&]() -> R {
      [[maybe_unused]] const typename Arguments::reading reading(&arguments);
      T* const object = static_cast<T*>(to.object);
      const auto address = reinterpret_cast<std::uint64_t>(object);
      if (!is_here(address) || (job.has_moved && may_have_moved(address, sizeof(T)))) [[unlikely]]
        return run_where_it_is(to, answer, arguments.get());
      if constexpr (Checked) {
        check_access(reinterpret_cast<std::uint64_t>(object), kind_of_object<T>(), name(), to.site);
      } else {
        object_here(object);
      }
      [[maybe_unused]] const change_by<decltype(Method), T> changes(object, sizeof(T));
      // Checked mode refuses what such a method sends, however it is called. (Without it, the
      // promise is open around the whole handler, or the whole batch.)
      if constexpr (Checked && never_waits) {
        const handler_promise lives(promise_of_handler::nonblocking, name());
        return call_method<Method, T, C, R>(object, arguments.get());
      } else {
        return call_method<Method, T, C, R>(object, arguments.get());
      }
    });
  }

  static constexpr bool handles_batches = takes_batch<decltype(Method)>;
  /// Calls the method for the `count` payloads of a run at once; false when the object has to be
  /// looked for. The method's promise is open.
  static bool run_batch(std::uint64_t address, const std::byte* first, std::size_t count) {
    static_assert(!std::is_base_of_v<monitor, T>,
                  "sojourn: an object whose calls may have to wait for their turn (monitor) cannot "
                  "have a method that takes a batch, which promises not to wait");
    if (!is_here(address) || (job.has_moved && may_have_moved(address, sizeof(T)))) return false;
    const handled_method_guard guard;
    T* object = reinterpret_cast<T*>(address);
    [[maybe_unused]] const change_by<decltype(Method), T> changes(object, sizeof(T));
    keep_address(object);
    [[maybe_unused]] const address_kept_of<T> kept(object);
    std::conditional_t<std::is_const_v<T>, const C, C>* as_declared = object;
    (as_declared->*Method)({first, count});
    return true;
  }

  /// The object may have moved: to this rank or from it.
  template <class... A>
  [[gnu::noinline]] static R run_where_it_is(const head& to, ticket_id answer,
                                             std::tuple<A...>& arguments) {
    const auto address = reinterpret_cast<std::uint64_t>(to.object);
    if (owner_of(address) == no_owner) refuse_object(address);
    const object_place at = find_object_for(answer != 0 ? home_of(answer) : job.me, address,
                                            shape_of<std::remove_const_t<T>>());
    if (at.here == nullptr) return call_again<method_target>(at.rank, to, arguments);
    if (at.block == nullptr) {
      if constexpr (Checked) check_access(address, kind_of_object<T>(), name(), to.site);
      [[maybe_unused]] const change_by<decltype(Method), T> changes(to.object, sizeof(T));
      return call_method<Method, T, C, R>(static_cast<T*>(at.here), arguments);
    }
    const use_of_copy use(at.block);
    [[maybe_unused]] const change_by<decltype(Method), T> changes(to.object, sizeof(T));
    return call_method<Method, T, C, R>(static_cast<T*>(at.here), arguments);
  }
};

}  // namespace sojourn::detail
