// SPDX-License-Identifier: Apache-2.0
// A rank of another host, as the transport of this rank sees it: the same rings as those of a near
// rank, but in private memory. A link (link.hpp) takes the transport's messages out of these rings
// and sends them. It puts received messages into them, and the transport reads them there.
//
// A message leaves only when there is room for it at the other end. Each class has room of its own,
// so requests that nobody reads do not hold up replies, and no rank can fill another one's memory.
// Each message that goes the other way says how many have been read, as in shared memory. If no
// message goes the other way, a frame without a message says it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "transport/shm/ring.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

/// What stands before each message on its way to another host. All hosts of a job have the same
/// byte order.
struct far_frame {
  static constexpr std::uint16_t only_heard = 2;  ///< No message; only says what has been read.

  std::uint32_t bytes;  ///< Length of the payload, which follows.
  std::uint16_t kind;   ///< message_class, or only_heard.
  std::uint16_t handler;
  std::uint16_t flags;
  std::uint16_t unused;
  std::uint32_t number;  ///< Number of the message in its class: from 1, as in a ring.
  std::uint64_t ticket;
  std::uint32_t heard[2];  ///< The number of the last message read, of each class.
};
static_assert(sizeof(far_frame) == header_bytes);

/// Stands in a ring for the payload of a message that is too long for it and has come from another
/// host.
struct far_payload {
  std::byte* at;
  std::uint64_t bytes;
  bool is_placed;  ///< It lies where transport::reply_place has said, so it is not given back.
};

class far_rank {
 public:
  /// Tells where the payload of a message lies that goes out and is too long for a ring, and frees
  /// it.
  class long_messages {
   public:
    virtual ~long_messages() = default;
    /// Requires: the header of this message, which is in the ring, says that it is a long one.
    virtual std::span<const std::byte> payload(const shm::message_header& message) const = 0;
    virtual void free(const shm::message_header& message) = 0;
  };

  /// The same in all processes of a job, however many ranks their hosts have, because both ends
  /// must agree on how much room there is.
  static constexpr std::size_t ring_bytes = 256 << 10;
  /// If a message that comes is longer, header included, its payload does not lie in the ring. For
  /// messages that go, this limit is lower.
  static constexpr std::size_t short_bytes = 8 << 10;

  /// No payload is longer than `payload_max`. Payloads that come and do not lie in a ring lie in
  /// `memory`. `last_number`: see ring_writer::attach.
  far_rank(std::size_t payload_max, long_messages& long_ones, std::pmr::memory_resource* memory,
           std::uint32_t last_number = 0);
  /// Requires: the transport's ends of the rings still exist.
  ~far_rank();
  far_rank(const far_rank&) = delete;
  far_rank& operator=(const far_rank&) = delete;

  // --- The transport's side

  /// Connects the transport's ends of the rings, which must not move afterwards. `stamps`: messages
  /// that come are stamped with the time (delays::stamp).
  void attach(shm::ring_writer (&out)[2], shm::ring_reader (&in)[2], bool stamps);
  /// So many messages have been read that the other rank should be told soon.
  void note_read() { tells_what_was_read_ = true; }
  /// See transport.hpp. `source`: the number of this rank.
  void place_replies(int source, transport::reply_place* place) {
    source_ = source;
    place_ = place;
  }
  /// Gives back the payload of a long message that has come.
  void free_payload(const far_payload& payload);

  // --- The link's side

  struct outgoing {
    far_frame head;
    std::span<const std::byte> payload;
  };
  /// Gives the frame that goes next: replies first. It stays the same until sent(). Returns false
  /// when there is none, or no room for one at the other end.
  bool next(outgoing& to);
  /// True when a message waits to leave, even if there is no room for it at the other end.
  bool has_outgoing();
  /// The frame that next() gave has been sent, or copied.
  void sent();

  /// A frame has come. begin() makes room for its payload, which is to be filled in before
  /// arrived() is called. A frame without a message has no room, and arrived() is not called for
  /// it. `why` is not null when the other rank must not send such a frame: nothing more may be
  /// taken from it then.
  struct incoming {
    std::byte* room = nullptr;
    bool is_message = false;
    const char* why = nullptr;
  };
  incoming begin(const far_frame& head);
  void arrived();
  /// The message for which begin() has made room does not come.
  void abandon();

  /// The rank is lost: messages to it are thrown away, now and whenever throw_away() is called.
  void lose();
  void throw_away();
  bool is_lost() const { return is_lost_; }

 private:
  /// A long message counts as the window's length divided by this.
  static constexpr std::size_t longest_of_window = 4;
  /// So at most this many long messages are unread at the other end.
  static constexpr std::uint32_t long_unread_max = longest_of_window;

  /// One class: the messages to the other rank, and those from it.
  struct way {
    shm::ring_memory* out_memory = nullptr;
    shm::ring_memory* in_memory = nullptr;
    shm::ring_reader out;  ///< What the transport has written.
    shm::ring_writer in;
    shm::ring_reader* read = nullptr;  ///< The transport's end of `in`.
    std::uint32_t sent = 0;            ///< The last message that has left.
    std::uint32_t heard = 0;  ///< The last one that the other rank has read, as far as it has said.
    std::uint32_t said = 0;   ///< The last one read here that the other rank was told of.
    std::uint32_t came = 0;   ///< The last message that has come.
    std::size_t unheard_lines =
        0;  ///< Lines that messages take there which were sent and perhaps not read.
    std::uint32_t long_unread = 0;               ///< How many long messages that came are unread.
    std::uint32_t long_ones[long_unread_max]{};  ///< Their numbers, the oldest first.
    std::uint16_t* lines = nullptr;  ///< Lines of each message that was sent, by number.
  };
  static std::size_t window_lines_of(std::size_t in_ring, bool is_long) {
    return is_long ? window_lines / longest_of_window : shm::lines_of(in_ring) / shm::line;
  }
  bool hear(const far_frame& head);
  bool give(way& of, message_class kind);
  void fill_in_heard();
  bool says_all_that_was_read() const;
  const char* refuses(const far_frame& head) const;
  static void forget_read(way& of);

  /// The window: messages that are on their way, or unread at the other end, take at most this part
  /// of its ring. The rest is for messages that were read, but not as far as the ring's writer
  /// knows, and for what the writer skips at the ring's end.
  static constexpr std::size_t ring_over_window = 2;

  static constexpr std::size_t window_lines = ring_bytes / ring_over_window / shm::line;
  /// Length of way::lines, a power of two. More than there are messages in the window, because
  /// numbers leave out 0.
  static constexpr std::size_t slots = 2 * window_lines;

  std::size_t payload_max_;
  long_messages& long_messages_;
  std::pmr::memory_resource* memory_;
  std::array<way, 2> ways_;
  bool stamps_ = false;
  bool tells_what_was_read_ = false;
  bool is_lost_ = false;
  // The frame that next() has given.
  bool is_going_ = false;
  outgoing going_{};
  // The message for which begin() has made room.
  shm::message_header* coming_ = nullptr;
  message_class coming_kind_ = message_class::request;
  far_payload coming_long_{};
  int source_ = -1;
  transport::reply_place* place_ = nullptr;
};

}  // namespace sojourn::detail
