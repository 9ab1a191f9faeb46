// SPDX-License-Identifier: Apache-2.0
// What a fuzzer feeds: one message of bytes that nobody wrote, read as values of one of many types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuzz {

using message = std::vector<std::uint8_t>;

/// The first byte chooses the types that are expected; the others are the message as it arrived.
/// True when it was accepted. Ends the program when the values that were read cannot be written and
/// read again.
bool read_message(const std::uint8_t* bytes, std::size_t size);

/// Messages as a program sends them, some for each choice of types.
std::vector<message> good_messages();

}  // namespace fuzz
