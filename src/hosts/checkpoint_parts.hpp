// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a job on several hosts: its files are in a folder that all hosts share, or each
// host has those of its own ranks, and the host of rank 0 also has the file that says which they
// are. The head asks each host what it has, and lets the job go on where all is there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files.hpp"
#include "hosts/record.hpp"
#include "memory/address_map.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn::detail {

/// What one host has of a checkpoint.
struct checkpoint_parts {
  std::optional<checkpoint_set> set;
  std::string hosts;    ///< That wrote it, as the set says.
  std::string refusal;  ///< Why there is no set: a sentence.
  std::vector<named_part> files;
};

/// Those of this host. `path`, when it is relative, begins in `folder`. Throws sojourn::error when
/// another job has the checkpoint.
checkpoint_parts parts_here(const std::string& folder, const std::string& path);

void put(record_writer& to, const checkpoint_parts& parts);
checkpoint_parts read_parts(record_reader& from);

struct parts_of_host {
  std::string name;
  ranks_of_host ranks;
  checkpoint_parts has;
};

/// The first host with a file `path`: what that says, counts. Requires: there is a host. Throws
/// sojourn::error where none has one.
const checkpoint_parts& set_to_restore(const std::string& path,
                                       const std::vector<parts_of_host>& hosts);

/// Throws sojourn::error unless each host has the files of the ranks that are to run there: which
/// file is missing where, on which host it is, and what to do. Requires: the set is of as many
/// ranks as the hosts have.
void check_parts(const std::string& path, const checkpoint_set& set,
                 const std::vector<parts_of_host>& hosts);

/// Throws sojourn::error unless as many hosts as `wrote` it (as --hosts takes them; "": one) are to
/// go on, each with as many ranks.
void check_hosts(const std::string& path, const std::string& wrote,
                 const std::vector<host_ranks>& now);

/// Throws sojourn::error unless the ranks have the libraries that they had when they wrote it:
/// those of --net ucx and of --encrypt.
void check_links(const std::string& path, const checkpoint_set& set, bool over_ucx, bool encrypted);

}  // namespace sojourn::detail
