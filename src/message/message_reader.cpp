// SPDX-License-Identifier: Apache-2.0
#include "message/message_reader.hpp"

#include "base/check.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

namespace {

/// What the report of a malformed message calls this kind of message.
const char* name_of(std::uint16_t handler) {
  return handler < first_user_handler ? description_of(static_cast<runtime_message>(handler)).name
                                      : "call";
}

}  // namespace

void refuse_arrival(const arrival& a, const char* why) {
  ++counts.messages_refused;
  die("a malformed message from rank %d: a %s of %zu bytes %s (it does not come from this program, "
      "or memory that ranks share was overwritten)",
      a.source, name_of(a.handler), a.bytes, why);
}

}  // namespace sojourn::detail
