// SPDX-License-Identifier: Apache-2.0
// Reads files of the kernel: one line, one field, the limits of control groups. A file that is not
// there, as in a container without /proc, reads as nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// The whole text as a decimal number, or nothing.
std::optional<long> parse_number(std::string_view text);

/// The path of the executable that this process runs, or "".
std::string own_file();

/// The name of this host, or "?".
std::string host_name();

/// The first line, or "".
std::string read_line(const std::string& path);

/// What follows "name:" in a file of such lines, as /proc/meminfo is, or "".
std::string read_field(const std::string& path, std::string_view name);

/// The folders of a process's control group and of the groups around it, innermost first. If
/// `controller` is "", those of the unified hierarchy; otherwise those of the older hierarchy with
/// this controller. `groups`: the file in which the kernel lists the process's groups.
std::vector<std::string> control_group_folders(std::string_view controller,
                                               const std::string& groups = "/proc/self/cgroup");

/// The least number in `unified_file` or `older_file` of these folders; nothing when there is no
/// limit.
std::optional<long> control_group_limit(const std::string& unified_file,
                                        std::string_view controller, const std::string& older_file);

}  // namespace sojourn::detail
