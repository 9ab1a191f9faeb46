// SPDX-License-Identifier: Apache-2.0
// What a rank is fed with: messages of every kind, as other ranks of its program could send them if
// their memory were overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

/// A message: its handler, its flags, its ticket, and then its payload, in the bytes' own order.
using message = std::vector<std::uint8_t>;
inline constexpr std::size_t head_bytes = 12;

/// What is open on this rank, for messages to name. Requires: a fiber of a job of one rank.
void open_what_messages_name();

/// A message of some kind that is as it should be, or nearly so. Pieces of stacks never are: their
/// frames would be run.
message some_message(std::mt19937_64& random);
/// Changes it in one to four places.
void mutate(message& m, std::mt19937_64& random);

/// Has this rank deliver it, and whatever it makes ready run. Ends the process when the message is
/// refused.
void deliver(const message& m);

/// True when it is too short for its kind: reading on behind it would mostly do no visible harm,
/// for there lies what was in the ring before.
bool is_too_short(const message& m);

/// "kind 12, flags 0x0002, …": to tell what was delivered.
std::string told(const message& m);

/// What ranks share, but for the heap, lies in mappings that a child would share, too, with the
/// children after it. They become this process's own, so that each child begins with what was there
/// at its start. False when the system refuses that.
bool keep_shared_memory_private();

/// What a rank says of a message that it refuses before it ends.
bool is_refusal(const std::string& text);

/// As fork(), but the child goes on as the rank. (After fork() the runtime refuses what it does.)
int fork_as_rank();

}  // namespace fuzz
