// SPDX-License-Identifier: Apache-2.0
// Writing values into messages (detail/marshalled.hpp), and results that stay on their rank.
#include "sojourn/detail/marshalled.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.hpp"
#include "rpc/kept_values.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

void too_long_for_a_message(std::size_t bytes) {
  throw error(
      format("values of %zu bytes are too long for a call, which takes at most %llu: move them "
             "with put and get",
             bytes, static_cast<unsigned long long>(marshalled_max)));
}

void write_header(std::byte* message, marshalled_header::form how, std::size_t bytes) {
  marshalled_header header{how, job.me, bytes};
  std::memcpy(message, &header, sizeof header);
}

bool marshals_apart = false;

void written_apart::write(std::byte* message) const {
  write_header(message, marshalled_header::form::whole, bytes_);
  if (bytes_ != 0) std::memcpy(message + header_room, kept_.get(), bytes_);
  counts.marshalled_bytes += bytes_;
  counts.marshal_copies += 2 * bytes_;
}

void abandon(std::byte* message, std::size_t room, const std::exception_ptr& failure) {
  std::string text = "an exception that is not a std::exception";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  const std::size_t size =
      put_text(reinterpret_cast<char*>(message + header_room), room - header_room, text);
  write_header(message, marshalled_header::form::abandoned, size);
}

void throw_abandoned(const held_result& result) {
  marshalled_header header;
  std::memcpy(&header, result.bytes, sizeof header);
  std::size_t size = std::min<std::size_t>(header.bytes, result.size - sizeof header);
  std::string text(reinterpret_cast<const char*>(result.bytes + sizeof header), size);
  throw error(format("rank %d cannot marshal a result: %s", header.home, text.c_str()));
}

void send_result_that_stays(ticket_id id, std::unique_ptr<kept_values> value) {
  std::byte* room = begin_result(id, kept_header_room);
  if (room == nullptr) return;
  write_header(room, marshalled_header::form::kept, 0);
  const kept_place place{keep_for_reader(std::move(value)), 0};
  std::memcpy(room + header_room, &place, sizeof place);
  commit_result(id, room, kept_header_room, true);
}

std::unique_ptr<kept_values> take_result_that_stays(ticket_id id) {
  const held_result result = ticket_hold(id);
  marshalled_header header{};
  kept_place place{};
  if (result.size == kept_header_room) {
    std::memcpy(&header, result.bytes, sizeof header);
    std::memcpy(&place, result.bytes + header_room, sizeof place);
  }
  if (header.home != job.me) drop_kept_result(result.bytes, result.size);
  ticket_release(result);
  if (header.home != job.me) {
    throw error(
        format("a result of a type that cannot travel is asked for on rank %d, and is on "
               "rank %d: take it there, or describe how the type is marshalled "
               "(docs/marshalling.md)",
               job.me, header.home));
  }
  return end_keeping_here(place.holder);
}

void message_of_kept_values::write(std::byte* message) {
  write_header(message, marshalled_header::form::kept, skeleton_bytes_);
  bool fits = skeleton_bytes_ <= whole_max;
  kept_place place{0, fits ? 0 : reinterpret_cast<std::uint64_t>(skeleton_)};
  if (fits) std::memcpy(message + kept_header_room, skeleton_, skeleton_bytes_);
  place.holder = keep_for_reader(std::move(values_));
  std::memcpy(message + header_room, &place, sizeof place);
}

}  // namespace sojourn::detail
