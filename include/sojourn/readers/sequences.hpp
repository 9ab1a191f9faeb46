// SPDX-License-Identifier: Apache-2.0
// The sequences of a FASTA or FASTQ file, each on one rank.
//
//     for (const sequence& read : sequences("reads.fastq.gz"))
//       for (char base : read.bases) ++count[base];
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "sojourn/readers/text.hpp"
#include "sojourn/team.hpp"

namespace sojourn {

/// A sequence of a file: right until the loop goes on to the next one.
struct sequence {
  std::string_view name;     ///< What stands behind > or @, up to the first blank.
  std::string_view comment;  ///< What stands behind the blank.
  std::string_view bases;    ///< Without line ends.
  std::string_view quality;  ///< As long as `bases`; empty in FASTA.
};

/// This rank's sequences of a file, in their order. The first byte tells the kind: > begins FASTA,
/// whose sequences have any number of lines, and @ FASTQ, in which each has four. Which sequences a
/// member has, what is required, and errors: as lines (lines.hpp). Also sojourn::error, with the
/// byte offset, for a file that begins otherwise, and for a record of FASTQ that is none.
class sequences : public readers::records<sequences, sequence> {
 public:
  explicit sequences(const std::string& path, const team& members = team::world())
      : records(path, members), kind_(text_.peek(0)) {
    if (kind_ != '>' && kind_ != '@' && kind_ != -1)
      text_.fail("first record", "FASTA begins with >, and FASTQ with @: this is neither");
  }

 private:
  friend records::iterator;

  bool next() {
    const auto passed = [](const char*, std::size_t) {};
    if (kind_ != '@') {
      if (!text_.next_record([&] { return text_.peek(0) == '>'; }, passed)) return false;
      read_fasta();
      return true;
    }
    while (text_.next_record([&] { return begins_fastq(0); }, passed))
      if (read_fastq()) return true;
    return false;
  }

  void read_fasta() {
    const std::size_t header = text_.find('\n', 0);
    std::size_t end = header;
    // A > at the beginning of a line begins the next sequence.
    while (text_.peek(end) >= 0 && text_.peek(end + 1) != '>') end = text_.find('\n', end + 1);
    text_.take(end + (end < text_.size()));
    const std::string_view record = text_.first(end);
    read_header(line(0, header));

    std::string_view rest = record.substr(std::min(header + 1, record.size()));
    while (rest.ends_with('\n') || rest.ends_with('\r')) rest.remove_suffix(1);
    record_.bases = rest;
    if (rest.find('\n') == rest.npos) return;
    joined_.clear();
    while (!rest.empty()) {
      const std::size_t line_end = std::min(rest.find('\n'), rest.size());
      joined_ += readers::without_return(rest.substr(0, line_end));
      rest.remove_prefix(std::min(line_end + 1, rest.size()));
    }
    record_.bases = joined_;
  }

  /// A line of qualities may begin with @, too; but the second line behind it has bases.
  bool begins_fastq(std::size_t place) {
    if (text_.peek(place) != '@') return false;
    const std::size_t bases = text_.find('\n', place) + 1;
    return text_.peek(text_.find('\n', bases) + 1) == '+';
  }
  /// False when the record is a blank line.
  bool read_fastq() {
    std::array<std::size_t, 4> ends;
    ends[0] = text_.find('\n', 0);
    if (line(0, ends[0]).empty()) {
      take_fastq(ends[0]);
      return false;
    }
    check_fastq(0);
    for (std::size_t i = 1; i < 4; ++i) ends[i] = text_.find('\n', ends[i - 1] + 1);
    take_fastq(ends[3]);
    read_header(line(0, ends[0]));
    record_.bases = line(ends[0] + 1, ends[1]);
    record_.quality = line(std::min(ends[2] + 1, ends[3]), ends[3]);
    if (record_.bases.size() != record_.quality.size())
      text_.fail("record", "it has " + std::to_string(record_.bases.size()) + " bases, but " +
                               std::to_string(record_.quality.size()) + " qualities");
    return true;
  }
  /// Takes all up to the end of a line there. Whoever begins behind it looks for a record, and
  /// passes over what is none: so it is checked here that one follows, or the end.
  void take_fastq(std::size_t end) {
    std::size_t next = end + (end < text_.size());
    text_.take(next);
    if (!text_.leaves_stretch(next)) return;
    while (text_.peek(next) == '\n' || text_.peek(next) == '\r') ++next;
    if (text_.peek(next) >= 0) check_fastq(next);
  }
  void check_fastq(std::size_t place) {
    if (!begins_fastq(place))
      text_.fail("record",
                 "a record of FASTQ has four lines, of which the first begins with @ and "
                 "the third with +",
                 place);
  }

  std::string_view line(std::size_t begin, std::size_t end) const {
    return readers::without_return(text_.first(end).substr(begin));
  }
  void read_header(std::string_view header) {
    header.remove_prefix(1);
    const std::size_t blank = std::min(header.find_first_of(" \t"), header.size());
    record_.name = header.substr(0, blank);
    record_.comment = header.substr(std::min(blank + 1, header.size()));
  }

  int kind_;            ///< The first byte; -1 when there is none.
  std::string joined_;  ///< The bases of several lines.
};

}  // namespace sojourn
