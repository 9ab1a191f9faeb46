// SPDX-License-Identifier: Apache-2.0
// Stop tokens: the rank of a source notes which ranks have asked about it, and tells each of them
// once. A ticket would not do, because a computation that moves on whenever it asks would never
// meet the result.
#pragma once

namespace sojourn::detail {

class file_writer;
class file_reader;

/// Registers the handlers of questions about stop sources. Before any message arrives.
void attach_stop();
/// Save and restore what this rank knows of stop sources.
void save_stops(file_writer& to);
void load_stops(file_reader& from);

}  // namespace sojourn::detail
