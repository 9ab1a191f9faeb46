// SPDX-License-Identifier: Apache-2.0
// Libpmix is loaded only when a launcher with PMIx has started the process, so no program is linked
// to it. The parts of pmix.h that are used are declared here: versions 3 to 5 of the library have
// them in the same form. (If the header is installed, pmix_test.cpp compares them with it.)
#include <cstdlib>
#include <cstring>

#include "base/loaded_libraries.hpp"
#include "base/printable.hpp"
#include "site/pmix_types.hpp"
#include "site/started_together.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

using namespace pmix;

struct library {
  int (*init)(proc*, info*, std::size_t);
  int (*finalize)(const info*, std::size_t);
  int (*put)(scope, const char*, value*);
  int (*commit)();
  int (*fence)(const proc*, std::size_t, const info*, std::size_t);
  int (*get)(const proc*, const char*, const info*, std::size_t, value**);
  const char* (*text_of)(int);
};

library load() {
  constexpr const char* remedy =
      "; or start the job by `sojourn run --hosts` or, in an allocation of Slurm, by `sojourn run`";
  const optional_library pmix("libpmix.so.2", optional_library::seen_by::its_plugins);
  if (!pmix) {
    throw error(
        "a launcher with PMIx has started this process together with others, and libpmix.so.2, by "
        "which they find each other, cannot be loaded (" +
        pmix.why_not() + "): install libpmix2 on all hosts" + remedy);
  }
  library l{};
  const bool is_whole = pmix.find("PMIx_Init", l.init) && pmix.find("PMIx_Finalize", l.finalize) &&
                        pmix.find("PMIx_Put", l.put) && pmix.find("PMIx_Commit", l.commit) &&
                        pmix.find("PMIx_Fence", l.fence) && pmix.find("PMIx_Get", l.get) &&
                        pmix.find("PMIx_Error_string", l.text_of);
  if (!is_whole)
    throw error(std::string("libpmix.so.2 lacks a function: install version 3, 4 or 5 of libpmix") +
                remedy);
  return l;
}

class by_pmix final : public started_together {
 public:
  by_pmix() : pmix_(load()) {
    check(pmix_.init(&self_, nullptr, 0), "PMIx_Init");
    proc job = self_;
    job.number = every_rank;
    value* size = get(job, "pmix.job.size");
    if (size->type != type_uint32 || size->data.number == 0 || size->data.number > 1u << 20)
      throw error("PMIx says no sensible number of processes");
    count_ = static_cast<int>(size->data.number);
    std::free(size);
  }
  ~by_pmix() override { (void)pmix_.finalize(nullptr, 0); }
  by_pmix(const by_pmix&) = delete;
  by_pmix& operator=(const by_pmix&) = delete;

  int number() const override { return static_cast<int>(self_.number); }
  int count() const override { return count_; }

  std::vector<std::string> exchange(const std::string& word,
                                    const std::vector<int>& wanted) override {
    const std::string key = "sojourn." + std::to_string(++rounds_);
    std::string copy = word;
    value own{};
    own.type = type_string;
    own.data.text = copy.data();
    check(pmix_.put(scope_global, key.c_str(), &own), "PMIx_Put");
    check(pmix_.commit(), "PMIx_Commit");
    info collects{};
    std::strcpy(collects.key, "pmix.collect");
    collects.content.type = type_bool;
    collects.content.data.flag = true;
    check(pmix_.fence(nullptr, 0, &collects, 1), "PMIx_Fence");
    std::vector<std::string> words;
    for (int i : wanted) {
      proc of = self_;
      of.number = static_cast<std::uint32_t>(i);
      value* told = get(of, key.c_str());
      words.emplace_back(told->type == type_string && told->data.text != nullptr ? told->data.text
                                                                                 : "");
      if (told->type == type_string) std::free(told->data.text);
      std::free(told);
    }
    return words;
  }

 private:
  value* get(const proc& of, const char* key) {
    value* found = nullptr;
    check(pmix_.get(&of, key, nullptr, 0, &found), key);
    if (found == nullptr) throw error(std::string("PMIx has nothing for ") + key);
    return found;
  }

  void check(int status, const char* what) {
    if (status == 0) return;
    const char* why = pmix_.text_of(status);
    throw error(std::string("the launcher's PMIx refuses ") + what + ": " +
                printable(why == nullptr ? std::to_string(status) : why) +
                "; `sojourn run` starts jobs without it");
  }

  library pmix_;
  proc self_{};
  int count_ = 0;
  int rounds_ = 0;
};

}  // namespace

std::unique_ptr<started_together> started_by_pmix() {
  if (std::getenv("PMIX_RANK") == nullptr || std::getenv("PMIX_NAMESPACE") == nullptr)
    return nullptr;
  // A process that is alone needs no libpmix.
  for (const char* count : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(count);
    if (text != nullptr && std::string_view(text) == "1") return nullptr;
  }
  auto group = std::make_unique<by_pmix>();
  if (group->count() < 2) return nullptr;
  return group;
}

}  // namespace sojourn::detail
