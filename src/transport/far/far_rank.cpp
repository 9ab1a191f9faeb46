// SPDX-License-Identifier: Apache-2.0
#include "transport/far/far_rank.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.hpp"
#include "memory/runtime_resource.hpp"
#include "transport/shm/delays.hpp"

namespace sojourn::detail {

namespace {

constexpr message_class both[] = {message_class::reply, message_class::request};
std::size_t at(message_class kind) { return static_cast<std::size_t>(kind); }

constexpr std::size_t memory_bytes = sizeof(shm::ring_memory) + far_rank::ring_bytes;

/// The system provides pages only when messages use them.
shm::ring_memory* new_ring() {
  void* memory = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<shm::ring_memory*>(memory);
}

std::uint32_t number_of(const shm::message_header& message) {
  return static_cast<std::uint32_t>(message.word.load(std::memory_order_relaxed) >> 32);
}

bool is_long(const shm::message_header& message) {
  return (message.flags & transport::flag_long) != 0;
}

}  // namespace

far_rank::far_rank(std::size_t payload_max, long_messages& long_ones,
                   std::pmr::memory_resource* memory, std::uint32_t last_number)
    : payload_max_(payload_max), long_messages_(long_ones), memory_(memory) {
  for (way& w : ways_) {
    w.out_memory = new_ring();
    w.in_memory = new_ring();
    w.out.attach(w.out_memory, ring_bytes, last_number);
    w.in.attach(w.in_memory, ring_bytes, last_number);
    w.sent = w.heard = w.said = w.came = last_number;
    w.lines = runtime_array<std::uint16_t>(slots);
  }
}

far_rank::~far_rank() {
  abandon();
  for (way& w : ways_) {
    while (const shm::message_header* unread = w.read == nullptr ? nullptr : w.read->next()) {
      if (is_long(*unread)) free_payload(*reinterpret_cast<const far_payload*>(unread + 1));
      w.read->consume(unread->length());
    }
    munmap(w.out_memory, memory_bytes);
    munmap(w.in_memory, memory_bytes);
  }
}

void far_rank::attach(shm::ring_writer (&out)[2], shm::ring_reader (&in)[2], bool stamps) {
  stamps_ = stamps;
  for (std::size_t k = 0; k < 2; ++k) {
    way& w = ways_[k];
    out[k].attach(w.out_memory, ring_bytes, w.sent);
    in[k].attach(w.in_memory, ring_bytes, w.came);
    w.read = &in[k];
  }
}

// --- What goes

void far_rank::fill_in_heard() {
  for (std::size_t k = 0; k < 2; ++k) going_.head.heard[k] = ways_[k].read->read();
}

bool far_rank::says_all_that_was_read() const {
  return ways_[0].said == ways_[0].read->read() && ways_[1].said == ways_[1].read->read();
}

/// Makes the first message of a class the one that goes next. Returns false when there is none, or
/// no room for it at the other end.
bool far_rank::give(way& of, message_class kind) {
  const shm::message_header* message = of.out.next();
  if (message == nullptr) return false;
  const std::size_t length = message->length();
  if (of.unheard_lines + window_lines_of(length, is_long(*message)) > window_lines) return false;
  going_.payload = is_long(*message) ? long_messages_.payload(*message)
                                     : std::span(shm::payload_of(message, length),
                                                 length - shm::payload_offset(length));
  going_.head = {.bytes = static_cast<std::uint32_t>(going_.payload.size()),
                 .kind = static_cast<std::uint16_t>(kind),
                 .handler = message->handler,
                 .flags = static_cast<std::uint16_t>(message->flags & ~transport::flag_long),
                 .unused = 0,
                 .number = number_of(*message),
                 .ticket = message->ticket,
                 .heard = {}};
  return true;
}

bool far_rank::next(outgoing& to) {
  if (is_lost_) return false;
  if (!is_going_) {
    for (message_class kind : both) {
      if ((is_going_ = give(ways_[at(kind)], kind))) break;
    }
    if (!is_going_) {
      if (says_all_that_was_read()) tells_what_was_read_ = false;
      if (!tells_what_was_read_) return false;
      is_going_ = true;
      going_ = {};
      going_.head.kind = far_frame::only_heard;
    }
    fill_in_heard();
  }
  to = going_;
  return true;
}

bool far_rank::has_outgoing() {
  return !is_lost_ && (ways_[0].out.next() != nullptr || ways_[1].out.next() != nullptr);
}

void far_rank::sent() {
  is_going_ = false;
  for (std::size_t k = 0; k < 2; ++k) ways_[k].said = going_.head.heard[k];
  // More may have been read since the frame was made.
  if (says_all_that_was_read()) tells_what_was_read_ = false;
  if (going_.head.kind == far_frame::only_heard) return;
  way& w = ways_[going_.head.kind];
  const shm::message_header* message = w.out.next();
  const std::size_t length = message->length();
  const std::size_t lines = window_lines_of(length, is_long(*message));
  w.sent = going_.head.number;
  w.lines[w.sent & (slots - 1)] = static_cast<std::uint16_t>(lines);
  w.unheard_lines += lines;
  if (is_long(*message)) long_messages_.free(*message);
  w.out.consume(length);
  w.out.tell();
}

void far_rank::throw_away() {
  is_going_ = false;
  for (way& w : ways_) {
    while (const shm::message_header* message = w.out.next()) {
      if (is_long(*message)) long_messages_.free(*message);
      w.out.consume(message->length());
      w.out.tell();
    }
  }
}

// --- What comes

/// Returns false when the other rank says that it has read messages which were not sent to it.
bool far_rank::hear(const far_frame& head) {
  for (std::size_t k = 0; k < 2; ++k) {
    way& w = ways_[k];
    while (w.heard != head.heard[k]) {
      if (w.heard == w.sent) return false;
      w.heard = shm::number_after(w.heard);
      w.unheard_lines -= w.lines[w.heard & (slots - 1)];
    }
  }
  return true;
}

const char* far_rank::refuses(const far_frame& head) const {
  if (head.kind > far_frame::only_heard) return "sends a frame of no known kind";
  if (head.kind == far_frame::only_heard)
    return head.bytes == 0 ? nullptr : "sends a payload without a message";
  if (head.bytes > payload_max_) return "sends a message that is too long";
  if ((head.flags & transport::flag_long) != 0) return "sends a flag that is not a program's";
  if (head.number != shm::number_after(ways_[head.kind].came))
    return "sends a message out of its order";
  return nullptr;
}

/// Removes the long messages that were read. Called for each message that comes, so that the
/// numbers compared are never far from each other.
void far_rank::forget_read(way& of) {
  std::uint32_t read = 0;
  while (read < of.long_unread &&
         static_cast<std::int32_t>(of.read->read() - of.long_ones[read]) >= 0)
    ++read;
  if (read == 0) return;
  std::copy(of.long_ones + read, of.long_ones + of.long_unread, of.long_ones);
  of.long_unread -= read;
}

far_rank::incoming far_rank::begin(const far_frame& head) {
  if (const char* why = refuses(head); why != nullptr) return {.why = why};
  if (!hear(head)) return {.why = "has read what was not sent"};
  if (head.kind == far_frame::only_heard) return {};
  way& w = ways_[head.kind];
  const bool has_long_payload = header_bytes + head.bytes > short_bytes;
  const std::size_t bytes = has_long_payload ? header_bytes + sizeof(far_payload)
                                             : shm::bytes_in_ring(header_bytes + head.bytes);
  w.in.heard(w.read->read());
  shm::message_header* const message = w.in.reserve(bytes);
  if (message == nullptr) return {.why = "sends more than there is room for"};
  forget_read(w);
  if (has_long_payload) {
    if (w.long_unread == long_unread_max)
      return {.why = "sends more long messages than there is room for"};
    w.long_ones[w.long_unread++] = head.number;
  }
  message->ticket = head.ticket;
  message->handler = head.handler;
  message->flags =
      static_cast<std::uint16_t>(head.flags | (has_long_payload ? transport::flag_long : 0));
  message->heard[0] = head.heard[0];
  message->heard[1] = head.heard[1];
  coming_ = message;
  coming_kind_ = static_cast<message_class>(head.kind);
  if (!has_long_payload) return {shm::payload_of(message, bytes), true, nullptr};
  std::byte* at = nullptr;
  if (place_ != nullptr && coming_kind_ == message_class::reply)
    at = place_(source_, head.handler, head.flags, head.ticket, head.bytes);
  const bool is_placed = at != nullptr;
  if (!is_placed) at = static_cast<std::byte*>(memory_->allocate(head.bytes, shm::line));
  coming_long_ = {at, head.bytes, is_placed};
  return {coming_long_.at, true, nullptr};
}

void far_rank::arrived() {
  way& w = ways_[at(coming_kind_)];
  if (coming_long_.at != nullptr)
    std::memcpy(static_cast<void*>(coming_ + 1), &coming_long_, sizeof coming_long_);
  if (stamps_) coming_->sent = shm::delays::stamp(now_ns());
  w.in.commit(coming_);
  w.came = shm::number_after(w.came);
  coming_ = nullptr;
  coming_long_ = {};
}

void far_rank::abandon() {
  if (coming_long_.at != nullptr) free_payload(coming_long_);
  coming_ = nullptr;
  coming_long_ = {};
}

void far_rank::free_payload(const far_payload& payload) {
  if (!payload.is_placed) memory_->deallocate(payload.at, payload.bytes, shm::line);
}

void far_rank::lose() {
  is_lost_ = true;
  abandon();
  throw_away();
}

}  // namespace sojourn::detail
