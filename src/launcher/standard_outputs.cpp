// SPDX-License-Identifier: Apache-2.0
#include "launcher/standard_outputs.hpp"

#include "base/printable.hpp"

namespace sojourn::detail {

namespace {

constexpr int launcher_writer = 1 << 30;  // Its number as a writer; streams have lower ones.

}  // namespace

standard_outputs::standard_outputs(int output, int errors) : output_(output) {
  if (!same_file(output, errors)) errors_.emplace(errors);
}

void standard_outputs::say(const std::string& text) {
  errors().put(launcher_writer, "", printable(text), true);
}

void standard_outputs::add_waits(std::vector<pollfd>& waits) const {
  auto add = [&waits](const output_sink& sink) {
    waits.push_back({sink.has_pending() ? sink.fd() : -1, POLLOUT, 0});
  };
  add(output_);
  if (errors_) add(*errors_);
}

void standard_outputs::write_some() {
  output_.write_some();
  if (errors_) errors_->write_some();
}

bool standard_outputs::has_pending() const {
  return output_.has_pending() || (errors_ && errors_->has_pending());
}

void standard_outputs::abandon_pending() {
  if (output_.has_pending()) output_.abandon();
  if (errors_ && errors_->has_pending()) errors_->abandon();
}

}  // namespace sojourn::detail
