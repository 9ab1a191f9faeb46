// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/thread_refusal.hpp"

#include <string>

#include "base/check.hpp"
#include "message/programs.hpp"

namespace sojourn::detail {

namespace {

std::string refusal_text(const stay_reason& why, int to) {
  if (why.kind == thread_refusal::unknown || why.kind == thread_refusal::finished) return why.text;
  std::string reason =
      why.kind == thread_refusal::other_program ? why_no_stack_goes(job.me, to) : why.text;
  return format("the thread does not move to rank %d: %s", to, reason.c_str());
}

// A thread_error as bytes: the reason, then the text.
std::size_t encode_error(const void* exception, char* bytes, std::size_t room) {
  const auto& e = *static_cast<const thread_error*>(exception);
  bytes[0] = static_cast<char>(e.why());
  return 1 + put_text(bytes + 1, room - 1, e.what());
}
[[noreturn]] void rethrow_error(const char* bytes, std::size_t size) {
  if (size == 0) throw malformed_message("a thread_error of no bytes is malformed");
  throw thread_error(static_cast<thread_refusal>(bytes[0]), std::string(bytes + 1, size - 1));
}
[[maybe_unused]] const bool error_travels =
    register_exception({&typeid(thread_error), 0, encode_error, rethrow_error});

}  // namespace

thread_error refusal(const stay_reason& why, int to) { return {why.kind, refusal_text(why, to)}; }

void refuse(const stay_reason& why, int to) { throw refusal(why, to); }

}  // namespace sojourn::detail
