// SPDX-License-Identifier: Apache-2.0
// The transport between ranks of one host: rings in a memfd that the launcher passes on, two from
// each rank to each (requests, replies), blocks for long messages, and a word to sleep on. The
// rings of ranks of other hosts are private memory, which a link empties and fills (far_rank.hpp):
// what deals with near ranks does not know of that.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory_resource>

#include "transport/shm/blocks.hpp"
#include "transport/shm/delays.hpp"
#include "transport/shm/layout.hpp"
#include "transport/shm/passed_over.hpp"
#include "transport/shm/process_memory.hpp"
#include "transport/shm/ring.hpp"
#include "transport/shm/yielding.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {
class link;
}

namespace sojourn::detail::shm {

/// Where a job has several hosts: the ranks of this one, whose numbers follow each other, and what
/// carries messages to the others.
struct several_hosts {
  int first_near;
  int near;
  link* carrier;
  int bell;                                     ///< See wake_line.
  std::pmr::memory_resource* memory = nullptr;  ///< For long messages; usually runtime_resource().
};

class shm_transport final : public transport {
 public:
  /// `memory` is the transport's part of the segment. `cores` fewer than ranks: yields early.
  /// `last_number`: see ring_writer::attach. `hosts`: null when all ranks are on this one.
  shm_transport(std::byte* memory, int rank, int ranks, int cores, std::uint32_t last_number = 0,
                const several_hosts* hosts = nullptr);
  ~shm_transport() override;

  /// Learns whether a rank needs fences.
  void begin() override;

  std::byte* reserve(int to, message_class kind, std::size_t bytes) override {
    bytes += header_bytes;
    if (bytes > short_max_) [[unlikely]]
      return reserve_long(to, kind, bytes);
    message_header* header = peers_[to].out[at(kind)].reserve(bytes_in_ring(bytes));
    if (header == nullptr) return nullptr;
    reserved_ = header;
    return payload_of(header, bytes_in_ring(bytes));
  }

  void commit(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
              std::uint64_t ticket) override {
    peer& p = peers_[to];
    message_header* header = reserved_;
    header->ticket = ticket;
    header->handler = handler;
    header->flags = static_cast<std::uint16_t>(long_flag_ | flags);
    long_flag_ = 0;
    header->heard[0] = p.in[0].read();
    header->heard[1] = p.in[1].read();
    if (delays_ != nullptr) [[unlikely]]
      header->sent = delays::stamp(now_ns());
    p.out[at(kind)].commit(header);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps the order, too
    if (fences_) std::atomic_thread_fence(std::memory_order_seq_cst);
    // No fence here: a rank that falls asleep has one executed on this rank's core (see wait).
    if (wake_[to].asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake(to);
  }

  bool lend(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
            std::uint64_t ticket, const loan& payload) override;

  unfinished set_aside() override {
    const unfinished message{reserved_, long_flag_};
    long_flag_ = 0;
    return message;
  }
  void take_up(const unfinished& message) override {
    reserved_ = static_cast<message_header*>(message.message);
    long_flag_ = message.flags;
  }
  bool is_reserved() const override;

  std::size_t payload_max() const override {
    return layout_.blocks * layout_.block_bytes - header_bytes;
  }

  int poll(bool (*deliver)(arrival&, void*), void* context, int most) override;
  int poll_replies(bool (*deliver)(arrival&, void*), void* context, int most, int only) override;
  void enter_handler(interrupted what) override;
  void place_replies(reply_place* place) override;
  void prepare(int to, message_class kind) override { peers_[to].out[at(kind)].prepare(); }
  bool spins_for_replies() const override { return spins_for_replies_; }
  void give_core_away() override;
  bool poll_reply(int source, bool (*deliver)(arrival&, void*), void* context) override;
  void consume(const arrival& message) override;
  bool anything_arrived() const override;
  void wait(bool (*other_work)(), void (*around_sleep)(bool falls_asleep) = nullptr,
            std::uint64_t deadline_ns = never_ns) override;
  bool read_memory(int from, std::uint64_t address, void* to, std::size_t bytes) override;
  bool write_memory(int to, std::uint64_t address, const void* from, std::size_t bytes) override;

  bool has_room(int to, message_class kind, std::size_t bytes) const override;

  void lose(int rank) override;
  void finish() override;

  bool delays_messages() const override { return delays_ != nullptr; }
  std::uint64_t way_ns() const override { return delays_ == nullptr ? 0 : delays_->way_ns(); }
  bool holds_own() override;
  void own_passed() override;

 private:
  /// All that is between this rank and another, by class.
  struct peer {
    ring_writer out[2];
    ring_reader in[2];
  };
  static std::size_t at(message_class kind) { return static_cast<std::size_t>(kind); }
  static message_class other(message_class kind) {
    return kind == message_class::reply ? message_class::request : message_class::reply;
  }
  struct far_ranks;
  bool is_far(int rank) const {
    return static_cast<unsigned>(rank - first_near_) >= static_cast<unsigned>(layout_.near);
  }
  std::byte* blocks_of(int rank) const {
    return memory_ + layout_.blocks_offset() +
           static_cast<std::size_t>((rank - first_near_) * layout_.blocks) * layout_.block_bytes;
  }
  void attach_far(const several_hosts& hosts, std::uint32_t last_number);
  void wait_among_hosts(bool (*other_work)(), void (*around_sleep)(bool falls_asleep),
                        std::uint64_t deadline_ns);
  int take_replies(bool (*deliver)(arrival&, void*), void* context, int most, int only);
  int poll_among_hosts(bool (*deliver)(arrival&, void*), void* context, int most);
  bool anything_here() const;
  bool poll_reply_otherwise(int source, bool (*deliver)(arrival&, void*), void* context);
  arrival arrival_of(const message_header* header, int source, message_class kind);
  std::byte* reserve_long(int to, message_class kind, std::size_t bytes);
  void wake(int rank);
  void tell_writers();
  bool requests_arrived() const;
  bool pass_over(const arrival& a);
  int deliver_passed_over(bool (*deliver)(arrival&, void*), void* context, int most);
  void consume_rare(const arrival& a);
  void wake_writer(int rank);
  std::size_t number_of(int source, message_class kind) const {
    return static_cast<std::size_t>(source) * 2 + at(kind);
  }
  std::size_t number_of_own() const { return static_cast<std::size_t>(ranks_) * 2; }
  int poll_delayed(bool (*deliver)(arrival&, void*), void* context, int most);
  bool poll_reply_delayed(int source, bool (*deliver)(arrival&, void*), void* context);
  std::uint64_t due(int source, message_class kind, std::uint64_t now_ns);
  bool may_deliver(int source, message_class kind, std::uint64_t now_ns) {
    return due(source, kind, now_ns) <= now_ns;
  }
  std::uint64_t first_due();

  layout layout_;
  std::byte* memory_;
  wake_line* wake_;
  int rank_;
  int ranks_;
  int first_near_;
  int first_source_ = 0;      // whose turn it is to be polled first
  int replies_in_a_row_ = 0;  // polls that ended with a reply, one after the other
  unsigned replies_in_place_ = 0;
  int spins_;
  int reply_spins_;
  int yields_;
  yielding giving_away_;  // where fibers poll
  std::uint64_t last_nap_ns_ = 0;
  yielding yielding_;
  int spins_a_yield_;
  bool fences_ = false;
  bool membarrier_ = false;
  bool spins_for_replies_;
  std::size_t short_max_;
  peer* peers_;                         // one for each rank
  std::uint16_t long_flag_ = 0;         // of the message reserved last
  message_header* reserved_ = nullptr;  // what the next commit publishes
  passed_over passed_over_;
  static constexpr int all_bits = -1;
  // No bits while replies have been passed over: poll() takes nothing from the rings.
  int in_order_ = all_bits;
  delays* delays_ = nullptr;  // of the rings to this rank, and of its own requests
  far_ranks* far_ = nullptr;  // null when all ranks are on this host
  own_blocks blocks_;
  process_memory memory_of_;  // of other ranks
};

}  // namespace sojourn::detail::shm
