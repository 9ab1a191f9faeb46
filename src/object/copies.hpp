// SPDX-License-Identifier: Apache-2.0
// Coherent copies of objects: joins the protocol (coherence/) to messages, fibers and memory.
// Objects do not move yet: the owner of an object is its home.
#pragma once

namespace sojourn::detail {

/// Registers handlers and hooks. Throws sojourn::error when SOJOURN_CACHE_BYTES is wrong.
void attach_copies();
/// `rank` has ended, and all that it sent has been read.
void fail_copies_of(int rank);

}  // namespace sojourn::detail
