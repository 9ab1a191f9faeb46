// SPDX-License-Identifier: Apache-2.0
// The lines of a text file, each on one rank.
//
//     for (std::string_view line : lines("server.log"))
//       if (line.starts_with("ERROR")) ++errors;
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sojourn/readers/text.hpp"
#include "sojourn/team.hpp"

namespace sojourn {

/// This rank's lines of a file, in their order, without the line end, which is \n or \r\n. The last
/// line needs none. Each line is given to one member. It is a std::string_view, right until the
/// loop goes on to the next one.
///
/// Nobody sends anything: each member opens the file itself, and only those need to that want their
/// lines. Of a plain file, member i of n has the lines that begin in bytes size·i/n … size·(i+1)/n,
/// so the members' lines one behind the other are the file. A file that gzip, bzip2, xz or zstd has
/// compressed, as its first bytes tell, is decompressed by that program as a whole for each member;
/// the members have the lines that begin in stretches of 1 MiB of the text in turn.
///
/// Requires: a local variable, or the loop's own temporary, which is destroyed in the frame that
/// made it and keeps that frame on its rank. All members see the same file, and nobody changes it
/// meanwhile: one that becomes shorter ends the rank with SIGBUS. Never suspends: the rank waits
/// for the disk, and for the child that decompresses.
/// Errors: sojourn::error, which names the file, when it cannot be opened, is a directory, a pipe
/// or the like, or when the program that decompresses it is not there or fails; this may come in
/// the middle of the loop.
class lines : public readers::records<lines, std::string_view> {
 public:
  explicit lines(const std::string& path, const team& members = team::world())
      : records(path, members) {}

 private:
  friend records::iterator;

  bool next() {
    const auto any_line = [] { return true; };
    if (!text_.next_record(any_line, [](const char*, std::size_t) {})) return false;
    const std::size_t end = text_.find('\n', 0);
    record_ = text_.first(end);
    if (end < text_.size()) record_ = readers::without_return(record_);
    text_.take(end + (end < text_.size()));
    return true;
  }
};

}  // namespace sojourn
