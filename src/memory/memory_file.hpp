// SPDX-License-Identifier: Apache-2.0
// Memory that several processes can map: a file without a name, gone with the last of them.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Makes such a file and returns its descriptor, which is close-on-exec. `name` shows in
/// /proc/PID/maps. The system provides a page when it is first touched. Throws sojourn::error with
/// the reason and the remedy.
int make_memory_file(const char* name, std::uint64_t bytes);

/// Gives such a file that many bytes, at least as many as it has. Throws sojourn::error with the
/// reason and the remedy.
void lengthen_memory_file(int fd, std::uint64_t bytes);

/// From now on nobody can shorten the file.
void keep_memory_file_long(int fd);

}  // namespace sojourn::detail
