// SPDX-License-Identifier: Apache-2.0
// What the files of the dispatcher share: its state, and what each rank knows of every other. Only
// the sources of this floor include this header.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <vector>

#include "fiber/scheduler.hpp"
#include "memory/runtime_resource.hpp"
#include "message/hooks.hpp"
#include "message/own_requests.hpp"
#include "message/runtime_message.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/wire.hpp"
#include "transport/active_transport.hpp"
#include "transport/sleepers.hpp"

namespace sojourn::detail {

/// How many messages of each rank a poll takes.
inline constexpr int messages_a_round = 16;

struct user_handler {
  request_handler run;
  bool may_migrate;
  const char* promises =
      nullptr;            ///< If the handler never waits: the compiler's name for what it calls.
  std::size_t keeps = 0;  ///< If its messages may be kept for later: their least size.
};

/// A sender that waits for room.
struct pending_send {
  std::size_t bytes;
  void (*go)(void*);
  void* context;
  bool needs_credit;
  piece* waiter;
};
struct late_reply {
  runtime_message kind;
  std::uint16_t flags;
  ticket_id ticket;
  std::pmr::vector<std::byte> bytes;
  bool written = true;  ///< False between reserve_reply and commit_reply.
};
/// A full bundle of calls (bundle_table.hpp) for which there was no room, as a handler made it: the
/// handler went on.
struct late_bundle {
  std::byte* runs;
  std::size_t bytes;
  std::size_t memory;  ///< Bytes of the runtime's memory from `runs` on.
  scope_ticket weight;
  void* scope;
};
/// What this rank knows of another.
struct peer {
  /// Reasons why a message to the rank cannot be written at once. They are bits in one word,
  /// because every call looks at them. It looks at nothing else: if fibers asked the queues,
  /// addresses of the queues would stay on their stacks, and the scan would take them for pointers
  /// of the program.
  using obstacles = std::uint32_t;
  static constexpr obstacles senders_wait = 1;   ///< `senders` is not empty.
  static constexpr obstacles replies_wait = 2;   ///< `replies` is not empty.
  static constexpr obstacles has_bundle = 4;     ///< A bundle of calls waits, and goes first.
  static constexpr obstacles other_program = 8;  ///< The rank refuses calls without a name.
  static constexpr obstacles is_lost = 16;       ///< The rank has ended.
  /// Set for all peers together: this rank has shared memory, so on_dispatch.tell is called before
  /// a message.
  static constexpr obstacles shares_memory = 32;

  obstacles before_calls = 0;
  obstacles before_replies = 0;
  std::uint32_t unanswered = 0;
  bool is_noted_lost = false;
  std::deque<pending_send> senders;  // wait for room
  std::deque<pending_send> callers;  // wait for answers to earlier calls
  // In memory that is not malloc's, because of replies about shared memory: see
  // take_replies_about_shared_memory().
  std::pmr::deque<late_reply> replies{runtime_resource()};
  std::pmr::deque<late_bundle> late_bundles{runtime_resource()};

  /// To be called when a queue has changed.
  void note_senders() { note(before_calls, senders_wait, !senders.empty()); }
  void note_replies() { note(before_replies, replies_wait, !replies.empty()); }

 private:
  static void note(obstacles& all, obstacles one, bool is_there) {
    all = is_there ? all | one : all & ~one;
  }
};
/// The request between begin_request and commit_request.
struct half_written_request {
  /// True only if something depends on it: in a finish scope, and when this rank has shared memory.
  bool is_noted = false;
  scope_ticket weight{};           ///< Weight of the finish scope.
  std::byte* weight_at = nullptr;  ///< Where `weight` belongs; null outside of finish scopes.
};
/// Functions of other threads (posts.cpp); null in programs that never post.
struct post_calls {
  void (*open)() = nullptr;  ///< Lets threads post from now on.
  int (*take)() =
      nullptr;  ///< Makes tasks of the functions that threads have posted; returns how many.
  int (*close)() =
      nullptr;  ///< Refuses posts from now on; returns how many posted functions will never run.
};
struct dispatcher_state {
  active_transport* transport = nullptr;
  own_requests own;
  peer* peers = nullptr;  // one for each rank
  int ranks = 0;          // how many ranks; 0 before run()
  const user_handler* handlers = nullptr;
  std::size_t handler_count = 0;
  std::size_t waiting_senders = 0;
  std::size_t waiting_replies = 0;
  std::size_t late_bundle_memory = 0;
  traffic moved{};
  traffic moved_collective{};
  // What the loop is to call in a round: bits, which signal handlers and other threads set, too.
  static constexpr unsigned each_round = 1;
  static constexpr unsigned next_round = 2;
  static constexpr unsigned posts_wait = 4;
  std::atomic<unsigned> round_calls = 0;
  post_calls posts;
  sleepers bed;  // to wake this rank from other threads
  unsigned looks_in_vain =
      0;  // how often the rank has looked for messages since it has nothing to do
  unsigned polling_rounds = 0;  // how many rounds in a row fibers only gave their turns
  unsigned looks_until_idle = 0;
  const std::atomic<std::uint32_t>* losses = nullptr;  // how many ranks have ended
  std::uint32_t losses_noted = 0;
  std::uint32_t losses_seen = 0;
  int first_lost = no_rank;
  unsigned rounds_with_sleepers = 0;
  bool sleepers_are_due = false;
  half_written_request half_written;
  bool refuses_requests =
      false;  // a function runs that has promised not to wait, not even for room
};
extern dispatcher_state dispatcher;
inline peer& peer_of(int rank) { return dispatcher.peers[static_cast<std::size_t>(rank)]; }

// ---- outbound.cpp -------------------------------------------------------------------------------

/// Ends the rank. Called when a function makes a call while dispatcher.refuses_requests is set.
[[noreturn]] void refuse_request_of_nonblocking();

/// True when a sender that waits for room or credit, or a message that waits for room, may go.
bool sender_can_go();
/// Sends messages that have waited for room, and lets senders go on that have the room or credit
/// they waited for; returns how many.
int let_waiting_go();
/// Sends replies to a rank that have waited for room, while there is room.
int send_late_replies(int to);
inline int retry_senders() {
  if (dispatcher.waiting_senders == 0 && dispatcher.waiting_replies == 0) [[likely]]
    return 0;
  return let_waiting_go();
}
/// The pending_send::go of a fiber that waits; `sender` is its piece. Any other `go` sends a
/// message of the runtime.
void wake_sender(void* sender);

// ---- inbound.cpp --------------------------------------------------------------------------------

/// Fills in the table of handlers, and what fibers tell this floor. Once, before any message.
void attach_inbound();
/// Handles a message. Returns true when a fiber has become ready, which is to run before more
/// messages are looked at.
bool deliver(arrival& a, void*);
/// The same, for polls while a fiber is ready already, such as one that yields in order to let
/// messages run.
bool deliver_all(arrival& a, void*);
/// Delivers requests of this rank to itself, as many as a poll takes from another rank.
int deliver_own();

// ---- losses.cpp ---------------------------------------------------------------------------------

/// True when a rank has ended for which meet_losses() has not been called.
inline bool has_new_loss() {
  return dispatcher.losses != nullptr &&
         dispatcher.losses->load(std::memory_order_acquire) != dispatcher.losses_seen;
}
/// Notes which ranks have ended. All messages of these ranks can be polled from now on.
void note_losses();
/// Fails what waits for the ranks that note_losses() has noted. Requires: all their messages have
/// been read. (A rank that has ended since then is left for the next call.)
void meet_losses();

/// is_lost() inline.
inline bool has_ended(int rank) { return (peer_of(rank).before_calls & peer::is_lost) != 0; }

// ---- all ----------------------------------------------------------------------------------------

inline bool counts_as_traffic(std::uint16_t handler) {
  return handler != static_cast<std::uint16_t>(runtime_message::collective);
}

}  // namespace sojourn::detail
