// SPDX-License-Identifier: Apache-2.0
// Reading the values of messages (incoming, detail/marshalled.hpp), the buffers that they are read
// into, and refusing what is malformed.
#include <cstdio>
#include <cstring>
#include <string>

#include "base/check.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "rpc/kept_values.hpp"
#include "sojourn/detail/wire.hpp"

namespace sojourn::detail {

// ---- Buffers ----------------------------------------------------------------------------------

receive_buffer::~receive_buffer() {
  clear();
  ::operator delete(memory_, std::align_val_t(16));
}

std::byte* receive_buffer::room(std::size_t bytes) {
  std::size_t rounded = (bytes + 15) / 16 * 16;
  std::size_t at = used_;
  used_ += rounded;
  if (used_ <= capacity_) return memory_ + at;
  more_.emplace_back(rounded);
  return more_.back().get();
}

void receive_buffer::clear() {
  more_.clear();
  if (used_ > capacity_ && used_ <= stays_max) {
    ::operator delete(std::exchange(memory_, nullptr), std::align_val_t(16));
    capacity_ = 0;
    memory_ = static_cast<std::byte*>(::operator new(used_, std::align_val_t(16), std::nothrow));
    if (memory_ != nullptr) capacity_ = used_;
  }
  used_ = 0;
}

std::unique_ptr<receive_buffer> receive_buffers::take() {
  if (free_.empty()) return std::make_unique<receive_buffer>();
  std::unique_ptr<receive_buffer> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void receive_buffers::give_back(std::unique_ptr<receive_buffer> buffer) {
  // How many free buffers stay: enough for handlers that take turns. If more calls run at once, the
  // others have buffers of their own.
  constexpr std::size_t stay_max = 4;
  if (free_.size() == stay_max) return;
  buffer->clear();
  free_.push_back(std::move(buffer));
}

// ---- Messages ---------------------------------------------------------------------------------

namespace {

// How many lines a rank prints about messages that it refuses; all of them are counted.
constexpr int refusals_told_max = 8;

void tell_refusal(const std::string& what) {
  static int told = 0;
  if (told == refusals_told_max) return;
  ++told;
  std::fprintf(
      stderr, "sojourn: %s%s\n", what.c_str(),
      told == refusals_told_max ? " (further ones are only counted, as messages_refused)" : "");
}

}  // namespace

incoming::incoming(const std::byte* message, std::size_t bytes, int source,
                   receive_buffers* buffers)
    : how_(marshalled_header::form::whole), source_(source), buffers_(buffers) {
  try {
    marshalled_header header;
    if (bytes < sizeof header) malformed("it ends within its header");
    std::memcpy(&header, message, sizeof header);
    std::size_t left = bytes - sizeof header;
    how_ = header.how;
    home_ = header.home;
    bytes_ = header.bytes;
    values_ = message + sizeof header;
    switch (how_) {
      case marshalled_header::form::whole:
        if (header.bytes > left) malformed("it is shorter than its header says");
        return;
      case marshalled_header::form::abandoned:
        return;
      case marshalled_header::form::kept:
        break;
      default:
        how_ = marshalled_header::form::whole;
        malformed("its header has an unknown form");
    }
    kept_place place;
    if (left < sizeof place) malformed("it ends within its header");
    std::memcpy(&place, values_, sizeof place);
    if (home_ < 0 || home_ >= job.count) malformed("it names a rank that does not exist");
    holder_ = place.holder;
    skeleton_at_ = place.address;
    if (bytes_ > marshalled_max) malformed("its values are longer than a message may be");
    // The values are copied out of the message now, because the message must be consumed before
    // anything waits.
    if (!buffer_)
      buffer_ = buffers_ != nullptr ? buffers_->take() : std::make_unique<receive_buffer>();
    std::byte* copy = nullptr;
    if (skeleton_at_ == 0) {
      if (bytes_ > left - sizeof place) malformed("it is shorter than its header says");
      copy = buffer_->room(bytes_);
      if (bytes_ != 0) std::memcpy(copy, values_ + sizeof place, bytes_);
      counts.marshal_copies += bytes_;
    }
    values_ = copy;
  } catch (...) {
    failure_ = std::current_exception();
    if (holder_ != 0) end();
    note_failure();
  }
}

incoming::~incoming() {
  // True when the call was refused before its values were read.
  if (how_ == marshalled_header::form::kept && holder_ != 0) end();
  if (buffer_ != nullptr && buffers_ != nullptr) buffers_->give_back(std::move(buffer_));
}

void incoming::expect(std::uint64_t address, std::size_t bytes) {
  std::byte last;
  std::size_t looked_at = 0;
  try {
    read_kept_block(home_, holder_, address, &last, 1, looked_at);
    read_kept_block(home_, holder_, address + bytes - 1, &last, 1, looked_at);
  } catch (const rank_lost&) {
    throw;
  } catch (const error&) {
    malformed("it refers to a block that its sender does not keep");
  }
}

void incoming::read(std::uint64_t address, void* to, std::size_t bytes) {
  read_kept_block(home_, holder_, address, to, bytes, since_turn_);
}

std::byte* incoming::room(std::size_t bytes) {
  if (buffer_ == nullptr) buffer_ = buffers_->take();
  return buffer_->room(bytes);
}

void incoming::fetch_skeleton() {
  if (skeleton_at_ == 0) return;
  if (bytes_ != 0) expect(skeleton_at_, bytes_);
  std::byte* room = buffer_->room(bytes_);
  read_kept_block(home_, holder_, skeleton_at_, room, bytes_, since_turn_);
  counts.marshal_copies += bytes_;
  values_ = room;
}

void incoming::end() {
  end_keeping(home_, holder_);
  how_ = marshalled_header::form::whole;
}

/// Says on both ranks what was wrong with a malformed message. An exception of a user's function is
/// passed on as it is.
void incoming::note_failure() {
  std::string what;
  try {
    std::rethrow_exception(failure_);
  } catch (const malformed_message& e) {
    what = e.what();
  } catch (...) {
    return;
  }
  ++counts.messages_refused;
  if (source_ < 0) return;
  what = format("rank %d refuses a call from rank %d: %s", job.me, source_, what.c_str());
  tell_refusal(what);
  failure_ = std::make_exception_ptr(malformed_message(what));
}

void refuse_request(request& message, std::size_t needed) {
  ++counts.messages_refused;
  std::string what = format(
      "rank %d refuses a call from rank %d: a message of %u bytes ends before its %zu bytes of "
      "arguments",
      job.me, message.source, message.bytes, needed);
  tell_refusal(what);
  ticket_id answer = message.ticket;
  message.consume();
  auto failure = std::make_exception_ptr(malformed_message(what));
  if (answer != 0) return send_exception(answer, failure);
  one_way_failed(failure);
}

void refuse_object(std::uint64_t address) {
  ++counts.messages_refused;
  std::string what =
      format("rank %d refuses a method call: the object at 0x%llx is not in its heap", job.me,
             static_cast<unsigned long long>(address));
  tell_refusal(what);
  throw malformed_message(what);
}

}  // namespace sojourn::detail
