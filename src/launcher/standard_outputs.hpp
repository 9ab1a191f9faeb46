// SPDX-License-Identifier: Apache-2.0
// The launcher's own standard output and standard error, to which ranks' lines go, and its
// sentences about the job. One sink where both are the same file, so that lines stay whole.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/output.hpp"

namespace sojourn::detail {

class standard_outputs {
 public:
  /// Does not own the descriptors.
  explicit standard_outputs(int output = STDOUT_FILENO, int errors = STDERR_FILENO);
  /// Streams keep references to the sinks.
  standard_outputs(const standard_outputs&) = delete;
  standard_outputs& operator=(const standard_outputs&) = delete;

  output_sink& output() { return output_; }
  output_sink& errors() { return errors_ ? *errors_ : output_; }

  /// Whole lines of the launcher itself, on standard error. What they quote is made printable.
  void say(const std::string& text);

  /// Waits for both to be writable, as far as something is to be written: an output without
  /// anything is left out, whose reader may go without being noticed.
  void add_waits(std::vector<pollfd>& waits) const;
  void write_some();
  bool has_pending() const;
  /// Abandons what could not be written yet.
  void abandon_pending();

 private:
  output_sink output_;
  std::optional<output_sink> errors_;
};

}  // namespace sojourn::detail
