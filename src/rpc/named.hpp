// SPDX-License-Identifier: Apache-2.0
// Calls by name. A program's exports are a table. The first call of a name to a rank carries the
// name and the signature, that rank answers with the entry in its table, and later calls carry the
// entry. The caller keeps entries by name and rank, because another rank may run another program.
// The receiver checks that the entry is in its table, and compares the key, which is a hash of name
// and signature, so that no call reaches the wrong function. (MRPC, section 3)
// that no call reaches a function that was not meant. (MRPC, section 3)
#pragma once

namespace sojourn::detail {

/// Makes the table of what the program exports, and registers the handlers of calls by name. Before
/// any message arrives; once the region is mapped. Throws sojourn::error.
void attach_names();

}  // namespace sojourn::detail
