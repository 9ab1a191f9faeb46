// SPDX-License-Identifier: Apache-2.0
#include "site/started_together.hpp"

#include <cstdlib>

#include "base/kernel_files.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

struct sign {
  const char* size;    ///< the variable that says how many processes there are
  const char* number;  ///< the variable that says which of them this is
  const char* launcher;
  const char* remedy;
};

constexpr sign signs[] = {
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", "start it by `srun --mpi=pmix`"},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun",
     "start it by a version of mpirun that has PMIx"},
    {"PMI_SIZE", "PMI_RANK", "mpiexec", "start it by `mpiexec.hydra`"},
};

long number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return parse_number(text == nullptr ? "" : text).value_or(0);
}

}  // namespace

std::unique_ptr<started_together> launcher_of_this_process() {
  if (auto group = started_by_pmix()) return group;
  if (auto group = started_by_pmi()) return group;
  if (std::getenv("PMIX_RANK") != nullptr) return nullptr;  // alone
  for (const sign& s : signs) {
    const long count = number_of(s.size);
    if (count < 2 || std::getenv(s.number) == nullptr) continue;
    // Process 0 says the whole sentence, for all; each of the others says only a hint.
    if (number_of(s.number) != 0) {
      throw error("process " + std::to_string(number_of(s.number)) + " of " +
                  std::to_string(count) +
                  " cannot find the others, as that of number 0 says; "
                  "SOJOURN_SITE=off makes it a job of its own");
    }
    throw error("this is one of " + std::to_string(count) + " processes that " + s.launcher +
                " has started, and it gives them no way to find each other: " + s.remedy +
                ", or start the job by `sojourn run` (docs/cluster.md); for as many jobs of one "
                "rank each, set SOJOURN_SITE=off");
  }
  return nullptr;
}

}  // namespace sojourn::detail
