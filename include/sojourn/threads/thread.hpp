// SPDX-License-Identifier: Apache-2.0
// Threads: computations with a name that is valid in the whole job, which move to another rank by
// themselves or are moved by others. Source: Sang and Rego, Efficient Implementation of Thread
// Migration on Distributed-Memory Multiprocessors (1993).
//
// A thread that visits all ranks, with its containers (docs/examples/threads.cpp):
//
//     void collect(global_ptr<long> result) {
//       std::pmr::map<int, std::pmr::string> seen(thread_heap());
//       long sum = 0;
//       for (rank_t r = 0; r < rank_count(); ++r) {
//         migrate(self(), r);
//         sum += rank_me() + 1;
//         seen[r] = "rank " + std::to_string(rank_me()) + ", as it was seen there";
//       }
//       store(result, static_cast<long>(seen.size()) * 1000 + sum);
//     }
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/inline_string.hpp"
#include "sojourn/detail/request.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

/// Why a thread was not moved, or not found.
enum class thread_refusal : std::uint8_t {
  none,
  unknown,            ///< There is no such thread: it was joined or detached, or never existed.
  finished,           ///< It has ended.
  pinned,             ///< It was started with thread_options::pinned.
  other_program,      ///< The rank runs another program, or is on a host of another kind.
  holds_lock,         ///< A sojourn::mutex is held in its frames, or a shared::mutex by it.
  handles_exception,  ///< It is in a catch block, or an exception is on its way.
  initialises,        ///< It is initialising a static variable.
  in_method,          ///< A method of an object of its rank is running in it.
  stays,              ///< A `stay`, an open `finish`, or a child that refers to its frames.
  waits_here,         ///< It waits for something that only its rank can provide: a mutex, say.
};

/// Thrown where a thread cannot be moved or found.
class thread_error : public error {
 public:
  thread_error(thread_refusal why, const std::string& what) : error(what), why_(why) {}
  thread_refusal why() const { return why_; }

 private:
  thread_refusal why_;
};

/// The name of a thread: a plain value that travels, valid on every rank of the job until the
/// thread has been joined, or has ended after detach().
class thread {
 public:
  using id_type = std::uint64_t;

  /// Names no thread.
  constexpr thread() = default;
  constexpr id_type id() const { return id_; }
  constexpr explicit operator bool() const { return id_ != 0; }
  friend constexpr bool operator==(thread, thread) = default;

  /// Suspends until the thread has ended; rethrows what left its function. Requires: called once,
  /// by one fiber of any rank. Errors: thread_error (unknown) when it was joined or detached;
  /// sojourn::error when it joins itself, or another fiber joins it already.
  void join();
  /// Says that nobody will join the thread. An exception that leaves its function then ends the
  /// job. Suspends: when called on another rank than the one that started the thread. Errors: as
  /// join(), but a thread may detach itself.
  void detach();
  /// True when it has ended and was not joined. Suspends: as detach().
  bool finished() const;
  /// The rank of its oldest frames, as far as the rank that started it knows; activations of it may
  /// be elsewhere. Suspends: as detach(). Errors: thread_error (unknown, finished).
  rank_t where() const;

  /// The thread of an id that id() gave.
  static constexpr thread of_id(id_type id) {
    thread t;
    t.id_ = id;
    return t;
  }

 private:
  id_type id_ = 0;  // the ticket of its result
};

/// Where a thread prefers to run: with an object, at the rank that owns it.
class affinity {
 public:
  constexpr affinity() = default;
  constexpr affinity(std::nullptr_t) {}
  /// Requires: `object` is null or of this job.
  template <class T>
  affinity(global_ptr<T> object)
      : rank_(object ? static_cast<std::int16_t>(object.where()) : std::int16_t{-1}) {}
  /// With whatever lies on a rank.
  static constexpr affinity to(rank_t rank) {
    affinity there;
    there.rank_ = static_cast<std::int16_t>(rank);
    return there;
  }
  constexpr explicit operator bool() const { return rank_ >= 0; }
  /// Requires: there is one.
  constexpr rank_t where() const { return rank_; }

 private:
  std::int16_t rank_ = -1;
};

struct thread_options {
  inline_string<23> name = {};  ///< For reports.
  bool pinned = false;          ///< Stays on the rank it was started on.
  /// Shares its stack's addresses with other such threads: while it is suspended it takes only as
  /// much memory as its frames have bytes, and it is copied into place to run. For very many
  /// threads. (Sang and Rego, section 4.5)
  bool shared_stack = false;
  /// `spawn` starts it at the owner of this object. Load balance (balance.hpp) never takes it away
  /// from there, and hands it to no other rank; migrate moves it like any other thread.
  sojourn::affinity affinity = {};
};

/// The running thread; names none in a main fiber, or in a handler that does not belong to a
/// thread.
thread self();
/// The name of the running thread, for reports; "" for none.
inline_string<23> this_thread_name();
void name_this_thread(const inline_string<23>& name);
/// Gives the running thread another affinity, as in thread_options::affinity; null ends it. The
/// thread stays where it is until the rank of the object has nothing to do and asks for threads.
/// Errors: sojourn::error when the caller is not a thread, or is an activation that runs on another
/// rank than the thread's oldest frames.
void set_affinity(affinity to);

/// A heap of the running thread's own, which travels with it: what is built on it (std::pmr
/// containers and strings) is complete on every rank, at the same addresses. It is made when it is
/// first asked for, and ends with the thread. Errors: as set_affinity(); std::bad_alloc, also from
/// the heap itself.
std::pmr::memory_resource* thread_heap();

/// Moves a thread, with all its frames, to a rank, where it goes on with its next statement.
///
/// If `t` is the running thread, migrate returns on rank `to`, and not before, whoever else moves
/// it. Another thread, wherever it is, moves when it is ready, sleeps, or waits for a result;
/// migrate returns when it has left. If that thread goes elsewhere by itself first, it counts as
/// moved: it might have been on `to`, and gone on. A thread is where its oldest frames are: an
/// activation of it that is elsewhere stays there, and its result goes to where they are by then.
/// Suspends. Errors: thread_error, and then nothing has moved; sojourn::error when there is no such
/// rank.
void migrate(thread t, rank_t to);

namespace detail {

/// A ticket for the result of a thread that is started on `rank`.
ticket_id thread_open(int rank);
std::pmr::memory_resource* heap_of_running_thread();
void set_affinity_of_running_thread(int rank);
/// thread_begins and thread_ends are called around the body of a thread, on the rank where it
/// starts and on that where it ends.
void thread_begins(ticket_id thread, const thread_options& options);
/// Load balance is on: threads that have arrived wait for their turn to start, and may be handed to
/// another rank meanwhile.
extern bool threads_wait_to_start;
/// If the thread may start later, keeps its message (a kept message) and returns true; the message
/// is then consumed.
bool keep_thread(request& message);
/// Frees the room of a thread's message, or of what was kept of it.
void thread_taken(request& message);
void thread_ends();

/// The body of a thread. Where its arguments own memory, its oldest frames do, so it stays on its
/// rank: it is pinned, and keep_thread leaves it.
template <class F>
struct thread_target {
  struct head {
    thread_options options;  // First: keep_thread looks at it.
    [[no_unique_address]] travelling_callable<F> fn;
  };
  using result = void;
  static constexpr bool may_migrate = true;
  static constexpr bool never_waits = false;
  static constexpr bool is_registered = true;
  static constexpr bool may_be_kept = true;
  static const char* name() { return callable_name<F>(); }
  static bool keeps(request& message) { return threads_wait_to_start && keep_thread(message); }
  static void take(request& message) { thread_taken(message); }

  template <class Arguments>
  static void run(head& how, ticket_id thread, Arguments& arguments) {
    thread_begins(thread, how.options);
    send_outcome<void>(thread, [&] {
      [[maybe_unused]] const typename Arguments::reading reading(&arguments);
      std::apply(how.fn.get(), std::move(arguments.get()));
    });
    thread_ends();
  }
};

template <class F, class... A>
struct checked_thread {
  static_assert(is_captureless<F>,
                "sojourn: the function of a thread cannot capture variables, for it may leave its "
                "rank: pass them as arguments");
  static_assert(
      (marshals<A> && ...),
      "sojourn: an argument of this thread cannot travel: it holds a pointer or a reference, "
      "or is of a class without `serialize`; sojourn/calls/marshal.hpp lists what can");
  static_assert(!(is_a<A, view> || ...),
                "sojourn: a thread may wait, so its arguments are not read in the message: pass a "
                "std::span<const T> or std::string_view in place of a view");
  static_assert(
      std::is_invocable_v<F, A...>,
      "sojourn: the arguments of this thread do not fit the function, which must take that many "
      "parameters, by value or const&");
  using request = request_of<thread_target<F>, A...>;
};

/// The default options. A separate type, so that they are built in the message.
struct usual_options {
  operator thread_options() const { return {}; }
};

/// The way of a message that starts a thread.
struct thread_way : request_way {
  outgoing begin(std::size_t bytes) const {
    outgoing out = request_way::begin(bytes);
    out.ticket = thread_open(to);
    return out;
  }
};

/// Becomes a thread_target<F>::head.
template <class F, class Options, bool MayMove>
struct head_of_thread {
  const Options& options;
  F fn;

  explicit operator typename thread_target<F>::head() const {
    if constexpr (MayMove) {
      return {static_cast<thread_options>(options), travelling_callable<F>(fn)};
    } else {
      thread_options pinned = options;
      pinned.pinned = true;
      return {pinned, travelling_callable<F>(fn)};
    }
  }
};

template <class Options, class F, class... A>
thread start_thread(rank_t rank, const Options& options, F fn, A... arguments) {
  check_arguments(rank, arguments...);
  using start = typename checked_thread<F, A...>::request;
  const head_of_thread<F, Options, start::is_plain> head{options, fn};
  return thread::of_id(start::send(thread_way{{rank, false}}, head, arguments...));
}

}  // namespace detail

/// Starts a thread that runs fn(arguments…) on `rank`, as soon as that rank has time. `fn` is a
/// function or a callable without captures; what it returns is dropped. Join or detach the thread:
/// otherwise its outcome is kept until the job ends. A thread whose arguments do not all travel as
/// bytes is pinned, because its oldest frames own them. Suspends: only when the way to `rank` is
/// full.
template <class F, class... A>
thread spawn_on(rank_t rank, const thread_options& options, F fn, A... arguments) {
  return detail::start_thread(rank, options, fn, std::move(arguments)...);
}
template <class F, class... A>
  requires(!std::is_same_v<F, thread_options>)
thread spawn_on(rank_t rank, F fn, A... arguments) {
  return detail::start_thread(rank, detail::usual_options(), fn, std::move(arguments)...);
}

/// The same on this rank, or on the rank of the thread's affinity.
template <class F, class... A>
thread spawn(const thread_options& options, F fn, A... arguments) {
  rank_t rank = options.affinity ? options.affinity.where() : rank_me();
  return spawn_on(rank, options, fn, std::move(arguments)...);
}
template <class F, class... A>
  requires(!std::is_same_v<F, thread_options>)
thread spawn(F fn, A... arguments) {
  return spawn_on(rank_me(), fn, std::move(arguments)...);
}

}  // namespace sojourn
