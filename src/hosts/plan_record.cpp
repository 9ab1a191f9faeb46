// SPDX-License-Identifier: Apache-2.0
#include "hosts/plan_record.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

namespace sojourn::detail {

std::uint64_t hosts_version() { return job_segment_magic * 31 + 2; }

void put(record_writer& to, const host_plan& plan) {
  const launch_options& job = plan.job;
  to.number(static_cast<std::uint64_t>(job.rank_count))
      .number(static_cast<std::uint64_t>(job.bind))
      .number(job.label)
      .number(job.share_heap)
      .number(std::bit_cast<std::uint64_t>(job.watchdog_seconds))
      .number(std::bit_cast<std::uint64_t>(job.grace_seconds))
      .number(static_cast<std::uint64_t>(plan.here.first))
      .number(static_cast<std::uint64_t>(plan.here.count))
      .number(plan.canary)
      .text(job.hosts)
      .text(job.agent)
      .text(job.file)
      .text(plan.folder)
      .text(job.restore)
      .number(plan.restored_ahead_ns)
      .object(plan.restored);
  auto words = [&](const std::vector<std::string>& command) {
    to.number(command.size());
    for (const std::string& word : command) to.text(word);
  };
  words(job.command);
  to.number(job.parts.size());
  for (const launch_part& part : job.parts) {
    to.number(static_cast<std::uint64_t>(part.rank_count));
    words(part.command);
  }
  to.number(plan.settings.size());
  for (const auto& [name, value] : plan.settings) to.text(name).text(value);
}

host_plan read_host_plan(record_reader& from) {
  host_plan plan;
  launch_options& job = plan.job;
  job.rank_count = from.small_number();
  job.bind = static_cast<binding>(from.number());
  job.label = from.number() != 0;
  job.share_heap = from.number() != 0;
  job.watchdog_seconds = std::bit_cast<double>(from.number());
  job.grace_seconds = std::bit_cast<double>(from.number());
  plan.here.first = from.small_number();
  plan.here.count = from.small_number();
  plan.canary = from.number();
  job.hosts = from.text();
  job.agent = from.text();
  job.file = from.text();
  plan.folder = from.text();
  job.restore = from.text();
  plan.restored_ahead_ns = from.number();
  from.object(plan.restored);
  auto words = [&] {
    std::vector<std::string> command;
    for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left)
      command.push_back(from.text());
    return command;
  };
  job.command = words();
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left) {
    launch_part part;
    part.rank_count = from.small_number();
    part.command = words();
    job.parts.push_back(std::move(part));
  }
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left) {
    std::string name = from.text();
    plan.settings.emplace_back(std::move(name), from.text());
  }
  return plan;
}

void put(record_writer& to, const watch_area::rest& rest) {
  to.number(rest.epochs).number(rest.sent).number(rest.received);
}

watch_area::rest read_rest(record_reader& from) {
  watch_area::rest rest;
  rest.epochs = from.number();
  rest.sent = from.number();
  rest.received = from.number();
  return rest;
}

void put(record_writer& to, const rank_view& rank) {
  to.text(rank.program)
      .text(rank.file)
      .number(static_cast<std::uint64_t>(rank.condition))
      .number(static_cast<std::uint64_t>(rank.pid))
      .number(rank.in_system_call)
      .number(std::bit_cast<std::uint64_t>(rank.quiet_seconds))
      .object(rank.report);
}

rank_view read_rank_view(record_reader& from) {
  rank_view rank;
  rank.program = from.text();
  rank.file = from.text();
  rank.condition = static_cast<rank_condition>(from.number());
  rank.pid = static_cast<std::int64_t>(from.number());
  rank.in_system_call = from.number() != 0;
  rank.quiet_seconds = std::bit_cast<double>(from.number());
  from.object(rank.report);
  return rank;
}

void put(record_writer& to, const told_of_job& told) {
  to.number(told.settings.size());
  for (const setting_use& use : told.settings) to.object(use);
  to.number(told.forks.size());
  for (const auto& [site, place] : told.forks) {
    to.object(site).text(place);
  }
  to.number(told.calls.size());
  for (const auto& [call, place] : told.calls) {
    to.object(call).text(place);
  }
}

told_of_job read_told(record_reader& from) {
  told_of_job told;
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left)
    from.object(told.settings.emplace_back());
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left) {
    told_of_job::fork_place& fork = told.forks.emplace_back();
    from.object(fork.told);
    fork.place = from.text();
  }
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left) {
    told_of_job::call_place& call = told.calls.emplace_back();
    from.object(call.told);
    call.place = from.text();
  }
  return told;
}

void put(record_writer& to, const rank_introduction& rank) {
  to.text({rank.program, strnlen(rank.program, sizeof rank.program)})
      .number(rank.part)
      .number(rank.image)
      .number(rank.stack_needs[0])
      .number(rank.stack_needs[1])
      .number(rank.stack_needs[2])
      .number(rank.wire_fingerprint)
      .number(rank.region_bytes)
      .number(rank.stack_bytes)
      .number(rank.main_stack_bytes)
      .number(rank.page_bytes);
}

rank_introduction read_introduction(record_reader& from) {
  rank_introduction rank{};
  std::snprintf(rank.program, sizeof rank.program, "%s", from.text().c_str());
  rank.part = static_cast<std::uint32_t>(from.number());
  rank.image = from.number();
  for (std::uint64_t& need : rank.stack_needs) need = from.number();
  rank.wire_fingerprint = from.number();
  rank.region_bytes = from.number();
  rank.stack_bytes = from.number();
  rank.main_stack_bytes = from.number();
  rank.page_bytes = from.number();
  return rank;
}

}  // namespace sojourn::detail
