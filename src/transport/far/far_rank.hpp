// SPDX-License-Identifier: Apache-2.0
// A rank of another host, as the transport of this rank sees it: the same rings as those of a near
// one, in private memory. What the transport writes, a link (link.hpp) takes out and sends; what a
// link has received it puts in, and the transport reads it.
//
// A message leaves only when there is room for it at the other end, of each class apart: so neither
// do requests that nobody reads hold up replies, nor can a rank fill another one's memory. Each
// message that goes the other way says how many have been read, as in shared memory; where none
// goes, a frame without a message says it.
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
  static constexpr std::uint16_t only_heard = 2;  ///< No message: it says what has been read.

  std::uint32_t bytes;  ///< Of payload, which follows.
  std::uint16_t kind;   ///< message_class, or only_heard.
  std::uint16_t handler;
  std::uint16_t flags;
  std::uint16_t unused;
  std::uint32_t number;  ///< Of the message in its class: from 1, as in a ring.
  std::uint64_t ticket;
  std::uint32_t heard[2];  ///< The number of the last message read, of each class.
};
static_assert(sizeof(far_frame) == header_bytes);

/// What a ring holds of a message that is too long for it and has come from another host.
struct far_payload {
  std::byte* at;
  std::uint64_t bytes;
  bool is_placed;  ///< Where transport::reply_place has said: nothing is given back.
};

class far_rank {
 public:
  /// What is too long for a ring, of a message that goes out: where it lies, and how it is freed.
  class long_messages {
   public:
    virtual ~long_messages() = default;
    /// Of a message in the ring whose header says that it is a long one.
    virtual std::span<const std::byte> payload(const shm::message_header& message) const = 0;
    virtual void free(const shm::message_header& message) = 0;
  };

  /// The same in all processes of a job, however many ranks their hosts have: both ends must agree
  /// on what there is room for.
  static constexpr std::size_t ring_bytes = 256 << 10;
  /// The payload of a message that comes and is longer, header included, does not lie in the ring.
  /// One that goes lies elsewhere from some shorter length on.
  static constexpr std::size_t short_bytes = 8 << 10;

  /// No message is longer than `payload_max`. What does not lie in a ring of what comes lies in
  /// `memory`. `last_number`: see ring_writer::attach.
  far_rank(std::size_t payload_max, long_messages& long_ones, std::pmr::memory_resource* memory,
           std::uint32_t last_number = 0);
  /// Requires: the transport's ends of the rings are still there.
  ~far_rank();
  far_rank(const far_rank&) = delete;
  far_rank& operator=(const far_rank&) = delete;

  // --- The transport's side

  /// Joins the transport's ends of the rings, which stay where they are. `stamps`: messages that
  /// come are stamped with the time (delays::stamp).
  void attach(shm::ring_writer (&out)[2], shm::ring_reader (&in)[2], bool stamps);
  /// Messages have been read, more than the other rank should be left without knowing of.
  void note_read() { tells_what_was_read_ = true; }
  /// Of what comes from this rank, whose number is `source`: see transport.hpp.
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
  /// The frame that goes next: replies first. The same one until sent(). False when there is none,
  /// or no room for one at the other end.
  bool next(outgoing& to);
  /// A message waits, if only for room at the other end.
  bool has_outgoing();
  /// The frame that next() gave has been sent, or copied.
  void sent();

  /// A frame has come: room for its payload, which is to be filled in before arrived() is called.
  /// A frame without a message has neither. Null, and `why`, when the other rank must not send such
  /// a frame: nothing more may be taken from it.
  struct incoming {
    std::byte* room = nullptr;
    bool is_message = false;
    const char* why = nullptr;
  };
  incoming begin(const far_frame& head);
  void arrived();
  /// What begin() has made room for does not come.
  void abandon();

  /// The rank is lost: what goes to it is thrown away, now and whenever throw_away() is called.
  void lose();
  void throw_away();
  bool is_lost() const { return is_lost_; }

 private:
  /// A long message counts as this part of the window.
  static constexpr std::size_t longest_of_window = 4;
  /// So no more of them than this are unread at the other end.
  static constexpr std::uint32_t long_unread_max = longest_of_window;

  /// Of one class: what goes to the other rank, and what comes.
  struct way {
    shm::ring_memory* out_memory = nullptr;
    shm::ring_memory* in_memory = nullptr;
    shm::ring_reader out;  ///< Of what the transport has written.
    shm::ring_writer in;
    shm::ring_reader* read = nullptr;            ///< The transport's end of `in`.
    std::uint32_t sent = 0;                      ///< The last message that has left.
    std::uint32_t heard = 0;                     ///< The last one that the other rank has read.
    std::uint32_t said = 0;                      ///< What it was told last of what was read here.
    std::uint32_t came = 0;                      ///< The last message that has come.
    std::size_t unheard_lines = 0;               ///< What is sent and not heard of takes there.
    std::uint32_t long_unread = 0;               ///< So many long messages that came are unread,
    std::uint32_t long_ones[long_unread_max]{};  ///< and these are their numbers, the oldest first.
    std::uint16_t* lines = nullptr;              ///< Of each of these messages, by number.
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

  /// What may be under way or unread at the other end takes at most so much of its ring: the rest
  /// is for what the ring's writer does not know of yet, and for what it skips at the ring's end.
  static constexpr std::size_t ring_over_window = 2;

  static constexpr std::size_t window_lines = ring_bytes / ring_over_window / shm::line;
  /// Of way::lines, a power of two: more than messages in the window, because numbers leave out 0.
  static constexpr std::size_t slots = 2 * window_lines;

  std::size_t payload_max_;
  long_messages& long_messages_;
  std::pmr::memory_resource* memory_;
  std::array<way, 2> ways_;
  bool stamps_ = false;
  bool tells_what_was_read_ = false;
  bool is_lost_ = false;
  // What next() has given.
  bool is_going_ = false;
  outgoing going_{};
  // What begin() has made room for.
  shm::message_header* coming_ = nullptr;
  message_class coming_kind_ = message_class::request;
  far_payload coming_long_{};
  int source_ = -1;
  transport::reply_place* place_ = nullptr;
};

}  // namespace sojourn::detail
