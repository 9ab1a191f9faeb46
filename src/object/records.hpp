// SPDX-License-Identifier: Apache-2.0
// The records of objects that checked mode keeps (sojourn/detail/checked.hpp has what templates
// call).
#pragma once

namespace sojourn::detail {

class file_writer;
class file_reader;

/// Registers the handlers of this floor.
void attach_records();

/// Saves the records of this rank, and restores them in a job that goes on from there.
void save_records(file_writer& to);
void load_records(file_reader& from);

}  // namespace sojourn::detail
