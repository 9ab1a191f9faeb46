// SPDX-License-Identifier: Apache-2.0
#include "driver/installation.hpp"

#include <system_error>

namespace bench {
namespace fs = std::filesystem;

installation::installation() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) throw failure("cannot tell where the benchmark driver lies: is /proc mounted?");
  folder_ = self.parent_path();
  is_build_tree_ = fs::exists(folder_.parent_path() / "CMakeCache.txt");
}

fs::path installation::figures() const {
  return is_build_tree_ ? folder_.parent_path() / "figures" : fs::path("figures");
}

bool installation::has(const std::string& name) const { return fs::exists(folder_ / name); }

std::string installation::program(const std::string& name) const {
  if (!has(name)) {
    throw failure((folder_ / name).string() + (is_build_tree_
                                                   ? " is not there: build it first (./dev build)"
                                                   : " is not installed: install Sojourn again"));
  }
  return (folder_ / name).string();
}

arguments installation::job(int ranks, const std::string& name) const {
  // What is measured may compute for long without a message, which is no hang.
  arguments words{program("sojourn"), "run", "-n", std::to_string(ranks), "--watchdog", "60"};
  if (ranks <= 2) words.push_back("--bind");
  words.push_back(program(name));
  return words;
}

arguments installation::mpi_job(int ranks, const std::string& peer) const {
  // The peers pin themselves where it matters, so mpirun binds nothing. Root is what containers
  // run as; oversubscribing makes OpenMPI yield while it waits.
  arguments words{"mpirun", "--allow-run-as-root", "--bind-to", "none"};
  if (ranks > 2) words.push_back("--oversubscribe");
  for (const std::string& word : {std::string("-n"), std::to_string(ranks), program(peer)})
    words.push_back(word);
  return words;
}

std::string installation::mpi_missing(const std::string& peer) const {
  if (!is_build_tree_ && !has(peer)) {
    return peer + " is not installed (the package sojourn-peers holds it)";
  }
  if (!in_path("mpirun")) {
    return std::string("OpenMPI is not installed (") +
           (is_build_tree_ ? "./dev bench installs it)" : "the package openmpi-bin)");
  }
  if (!has(peer)) return peer + " was not built: configure again now that OpenMPI is installed";
  return "";
}

arguments installation::mpich_job(int ranks, const std::string& peer) const {
  return {"mpirun.mpich", "-bind-to", "none", "-n", std::to_string(ranks), program(peer)};
}

std::string installation::mpich_missing(const std::string& peer) const {
  if (!has(peer)) return peer_missing(peer, "MPICH");
  if (!in_path("mpirun.mpich")) return "MPICH is not installed (the package mpich)";
  return "";
}

std::string installation::peer_missing(const std::string& peer, const std::string& library) const {
  if (has(peer)) return "";
  if (!is_build_tree_) return peer + " is not installed (the package sojourn-peers holds it)";
  return library + " was not found when this was built (./dev bench installs it)";
}

std::string comma_list(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(static_cast<int>(number));
  }
  return text;
}

}  // namespace bench
