// SPDX-License-Identifier: Apache-2.0
#include "hosts/checkpoint_parts.hpp"

#include <algorithm>

#include "launcher/launch_here.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

bool has(const parts_of_host& host, const named_part& part) {
  const std::vector<named_part>& files = host.has.files;
  return std::find(files.begin(), files.end(), part) != files.end();
}

/// The host whose set counts.
const parts_of_host* host_of_set(const std::vector<parts_of_host>& hosts) {
  const auto found = std::find_if(hosts.begin(), hosts.end(),
                                  [](const parts_of_host& h) { return h.has.set.has_value(); });
  return found == hosts.end() ? nullptr : &*found;
}

}  // namespace

checkpoint_parts parts_here(const std::string& folder, const std::string& path) {
  const std::string file = path.front() == '/' ? path : folder + '/' + path;
  refuse_if_in_use(file);
  checkpoint_parts parts{.set = {}, .hosts = {}, .refusal = {}, .files = parts_beside(file)};
  try {
    parts.set = read_set(file);
    parts.hosts = read_hosts(file);
  } catch (const error& e) {
    parts.refusal = e.what();
  }
  return parts;
}

void put(record_writer& to, const checkpoint_parts& parts) {
  to.number(parts.set.has_value());
  if (parts.set) to.object(*parts.set);
  to.text(parts.hosts).text(parts.refusal).number(parts.files.size());
  for (const named_part& part : parts.files) to.number(part.generation).number(part.rank);
}

checkpoint_parts read_parts(record_reader& from) {
  checkpoint_parts parts;
  if (from.number() != 0) from.object(parts.set.emplace());
  parts.hosts = from.text();
  parts.refusal = from.text();
  for (std::uint64_t left = from.number(); left > 0 && from.is_sound(); --left) {
    const std::uint64_t generation = from.number();
    parts.files.push_back({generation, from.number()});
  }
  return parts;
}

const checkpoint_parts& set_to_restore(const std::string& path,
                                       const std::vector<parts_of_host>& hosts) {
  if (const parts_of_host* host = host_of_set(hosts); host != nullptr) return host->has;
  // A file that is there and damaged tells more than one that is nowhere.
  const auto tells = std::find_if(hosts.begin(), hosts.end(), [](const parts_of_host& h) {
    return h.has.refusal.find("No such file") == std::string::npos;
  });
  const parts_of_host& named = tells == hosts.end() ? hosts.front() : *tells;
  throw error("host " + named.name + ": " +
              (named.has.refusal.empty() ? path + " is not there" : named.has.refusal));
}

void check_parts(const std::string& path, const checkpoint_set& set,
                 const std::vector<parts_of_host>& hosts) {
  for (const parts_of_host& host : hosts) {
    for (int rank = host.ranks.first; rank < host.ranks.first + host.ranks.count; ++rank) {
      const named_part part{set.generation, static_cast<std::uint64_t>(rank)};
      if (has(host, part)) continue;
      const auto other = std::find_if(hosts.begin(), hosts.end(),
                                      [&](const parts_of_host& h) { return has(h, part); });
      const std::string& wrote = host_of_set(hosts)->has.hosts;
      refuse_to_restore(
          rank_file(path, part.generation, part.rank) + " is not on host " + host.name +
              ", where rank " + std::to_string(rank) + " is to run" +
              (other == hosts.end() ? ", nor on another" : ", but on host " + other->name),
          wrote.empty() ? "give each host the ranks whose files it has"
                        : ("the checkpoint was written with --hosts " + wrote).c_str());
    }
  }
}

void check_hosts(const std::string& path, const std::string& wrote,
                 const std::vector<host_ranks>& now) {
  const std::vector<host_ranks> before =
      wrote.empty() ? std::vector<host_ranks>{{"", now.front().ranks, true}} : parse_hosts(wrote);
  if (!std::equal(before.begin(), before.end(), now.begin(), now.end(),
                  [](const auto& a, const auto& b) { return a.ranks == b.ranks; }))
    refuse_other_hosts(path, wrote, hosts_text(now));
}

void check_links(const std::string& path, const checkpoint_set& set, bool over_ucx,
                 bool encrypted) {
  auto check = [&](bool before, bool now, const char* option) {
    if (before == now) return;
    refuse_to_restore(path + " was written with" + (before ? " " : "out ") + option,
                      (before ? std::string("give ") + option + ", as then"
                              : std::string("leave ") + option + " out, as then")
                          .c_str());
  };
  check(set.over_ucx != 0, over_ucx, "--net ucx");
  check(set.encrypted != 0, encrypted, "--encrypt");
}

}  // namespace sojourn::detail
