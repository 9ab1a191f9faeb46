// SPDX-License-Identifier: Apache-2.0
// Replicated objects: joins the protocol (replicas/) to messages, fibers and memory. A rank reads
// objects of others (reader_of_rank), and has objects of its own (objects_of_writer).
#pragma once

#include <cstdint>

namespace sojourn::detail {

struct piece;
class file_writer;
class file_reader;

/// Registers handlers, and makes this rank's table. Throws sojourn::error when there is no room for
/// it.
void attach_replicas();
/// `rank` has ended, and all that it sent has been read.
void fail_replicas_of(int rank);

/// True when a call is suspended in `p` while it reads a version, which no checkpoint holds.
bool reads_a_version(const piece* p);
/// What this rank has of replicated objects: the newest versions of its own ones.
void save_replicas(file_writer& to);
void load_replicas(file_reader& from);

}  // namespace sojourn::detail
