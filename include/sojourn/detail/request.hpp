// SPDX-License-Identifier: Apache-2.0
// Requests: a target (call_target.hpp) and arguments, which are copied as bytes where all travel
// so, and are marshalled otherwise. Both ends of each are here, once for all targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/call_target.hpp"
#include "sojourn/detail/leaving.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/wire.hpp"

namespace sojourn::detail {

template <class... A>
[[gnu::always_inline]] inline void check_arguments([[maybe_unused]] int to, const A&... arguments) {
  (check_leaving(leaves_as::argument, to, &arguments), ...);
}

// Arguments as a target sees them: get() returns them as a tuple, and they are used while a
// `reading` of them lives.

/// The reading of arguments that lie in the handler's frames.
struct no_reading {
  explicit no_reading(const void*) {}
};

/// Marshalled arguments whose message is consumed.
template <class... A>
struct own_arguments {
  using reading = no_reading;
  std::tuple<A...>& get() { return values.get(); }

  incoming_values<A...>& values;
};

/// Arguments that are views of a message: the reader promises not to wait. The end of the reading
/// frees the message, before the answer is sent: the answer tells the caller how far its messages
/// have been read, and the caller can then use the same lines of the ring again.
template <class... A>
struct arguments_in_message {
  class reading {
   public:
    explicit reading(arguments_in_message* of) : message_(of->message) {
      begin_promise(promise_of_handler::view, of->called);
    }
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;
    ~reading() {
      end_promise();
      message_.consume();
    }

   private:
    nonblocking<> promise_;  // so that checked mode also reports a wait that needs no switch
    request& message_;
  };
  std::tuple<A...>& get() { return values.get(); }

  incoming_values<A...>& values;
  request& message;
  const char* called;
};

/// The buffers that messages with such arguments are read into.
template <class... A>
inline receive_buffers buffers_of;

/// How a request goes to a rank. A way may have must_run(), which is called before begin() when
/// this rank keeps values until the call has read them.
struct request_way {
  int to;
  bool answered;

  /// begin() reserves room for a message of so many bytes; commit() sends it to its handler.
  outgoing begin(std::size_t bytes) const { return begin_request(to, bytes, answered); }
  void commit(const outgoing& out, std::uint16_t handler) const {
    commit_request(to, handler, out.ticket);
  }
};

/// A request of `Target` with arguments `A`, by value: the target's head and the arguments as
/// bytes, or, if not all of these travel so, the head and then the marshalled arguments. The
/// handler's frames hold what marshalled arguments own, so they stay.
template <class Target, class... A>
struct request_of {
  using head = typename Target::head;
  static constexpr bool is_plain = (travels<A> && ...);

  struct payload_type {
    [[no_unique_address]] head what;
    std::tuple<A...> arguments;

    using reading = no_reading;
    std::tuple<A...>& get() { return arguments; }
  };
  static constexpr std::size_t head_room =
      std::is_empty_v<head> ? 0 : (sizeof(head) + 15) / 16 * 16;
  /// Arguments are read in the message itself: the function then promises not to wait.
  static constexpr bool reads_in_place = (is_a<A, view> || ...);
  /// The bytes of the shortest message.
  static constexpr std::size_t least() {
    if constexpr (is_plain) return sizeof(payload_type);
    return head_room + header_room;
  }

  static void handle(request& message) { read(message, Target{}); }
  /// Reads the message, and has the target run.
  [[gnu::always_inline]] static void read(request& message, const Target& target) {
    if (message.bytes < least()) [[unlikely]]
      return refuse_request(message, least());
    if constexpr (is_plain) {
      if (Target::keeps(message)) return;
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
      const ticket_id answer = message.ticket;
      Target::take(message);
      target.run(payload.value.what, answer, payload.value);
    } else {
      read_marshalled(message, target);
    }
  }

  /// Sends a message that begins with head(from). Returns the ticket of the answer, or what
  /// way.begin() has for a request that is not answered.
  template <class Way, class From, class... B>
  [[gnu::always_inline]] static ticket_id send(const Way& way, const From& from, B&... arguments) {
    if constexpr (is_plain) {
      const outgoing out = way.begin(sizeof(payload_type));
      if constexpr (alignof(payload_type) <= 16) {
        ::new (static_cast<void*>(out.payload)) payload_type{head(from), {std::move(arguments)...}};
      } else {
        payload_type aligned{head(from), {std::move(arguments)...}};
        std::memcpy(out.payload, static_cast<const void*>(&aligned), sizeof aligned);
      }
      way.commit(out, handler_of(false));
      return out.ticket;
    } else {
      return send_marshalled(way, from, arguments...);
    }
  }
  template <class Way, class From>
  [[gnu::always_inline]] static ticket_id send_tuple(const Way& way, const From& from,
                                                     std::tuple<A...>& arguments) {
    if constexpr (is_plain) {
      return send(way, from, arguments);
    } else {
      return std::apply([&](A&... a) { return send_marshalled(way, from, a...); }, arguments);
    }
  }

  inline static const std::uint16_t handler = [] {
    if constexpr (reads_in_place || Target::never_waits) {
      if constexpr (requires { Target::note_promise(); }) Target::note_promise();
    }
    return register_request_handler(&handle, Target::may_migrate && is_plain,
                                    Target::never_waits ? Target::name() : nullptr,
                                    Target::may_be_kept && is_plain ? least() : 0);
  }();

 private:
  /// A function that never waits has a handler that never waits, except when the sender kept long
  /// values back (`is_kept`): the receiver then may have to ask for them in messages, because the
  /// system does not let it read the sender's memory.
  inline static const std::uint16_t handler_that_waits = register_request_handler(&handle, false);

  static std::uint16_t handler_of([[maybe_unused]] bool is_kept) {
    if constexpr (!Target::is_registered) {
      return 0;
    } else {
      if constexpr (Target::never_waits && !is_plain) {
        if (is_kept) return handler_that_waits;
      }
      return handler;
    }
  }

  static void read_marshalled(request& message, const Target& target) {
    room<head> what;
    std::memcpy(static_cast<void*>(&what.value), message.payload,
                head_room == 0 ? 0 : sizeof(head));
    const ticket_id answer = message.ticket;
    incoming_values<A...> in(message.payload + head_room, message.bytes - head_room, message.source,
                             reads_in_place ? nullptr : &buffers_of<A...>);
    if (in.abandoned()) [[unlikely]] {
      Target::take(message);
      if (answer != 0) send_result(answer, nullptr, 0);
      return;
    }
    if constexpr (reads_in_place) {
      if (in.is_whole()) {
        arguments_in_message<A...> arguments{in, message, Target::name()};
        return target.run(what.value, answer, arguments);
      }
    }
    Target::take(message);
    own_arguments<A...> arguments{in};
    target.run(what.value, answer, arguments);
  }

  template <class Way, class From>
  static ticket_id send_marshalled(const Way& way, const From& from, A&... arguments) {
    stays_here stays;
    const measured size = measure(arguments...);
    if (size.is_long(whole_request_max)) [[unlikely]] {
      wait_for_room_to_keep(size.whole);
      message_of_kept_values kept(size, std::move(arguments)...);
      if constexpr (requires { way.must_run(); }) way.must_run();
      const outgoing out = begin(way, from, kept.bytes());
      kept.write(out.payload + head_room);
      way.commit(out, handler_of(true));
      return out.ticket;
    }
    if (marshals_apart) [[unlikely]] {
      const written_apart apart(size.whole, arguments...);
      const outgoing out = begin(way, from, apart.bytes());
      apart.write(out.payload + head_room);
      way.commit(out, handler_of(false));
      return out.ticket;
    }
    const outgoing out = begin(way, from, header_room + size.whole);
    const std::exception_ptr failure =
        write_whole(out.payload + head_room, size.whole, arguments...);
    way.commit(out, handler_of(false));
    if (failure != nullptr) [[unlikely]] {
      if (out.ticket != 0) ticket_drop(out.ticket);
      std::rethrow_exception(failure);
    }
    return out.ticket;
  }
  template <class Way, class From>
  static outgoing begin(const Way& way, [[maybe_unused]] const From& from, std::size_t bytes) {
    const outgoing out = way.begin(head_room + bytes);
    if constexpr (head_room != 0) ::new (static_cast<void*>(out.payload)) head(from);
    return out;
  }
};

template <class Target, class... A>
typename Target::result call_again(int rank, const typename Target::head& to,
                                   std::tuple<A...>& arguments) {
  ++counts.calls_relayed;
  return take_value<typename Target::result>(
      request_of<Target, A...>::send_tuple(request_way{rank, true}, to, arguments));
}

}  // namespace sojourn::detail
