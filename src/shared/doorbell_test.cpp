// SPDX-License-Identifier: Apache-2.0
// Whose code a function is, by the names that gcc and clang give in tables of symbols.
#include "shared/doorbell.hpp"

#include <gtest/gtest.h>

namespace sojourn::detail::pages {
namespace {

TEST(Doorbell, TheProgramsFunctionsAndThoseOfLibrariesAreOthers) {
  for (const char* name :
       {"main", "memcpy", "qsort", "_Z6storesPll", "_ZN12_GLOBAL__N_16storesENS_4rootEl",
        "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN3app4tree6insertEl"})
    EXPECT_EQ(whose(name), owner_of_code::others) << name;
}

TEST(Doorbell, FunctionsOfSojournAreTheRuntimes) {
  for (const char* name :
       {"sojourn_call_on", "_ZN7sojourn5yieldEv", "_ZNK7sojourn6thread8finishedEv",
        "_ZZN7sojourn6detail20attach_shared_memoryEvENKUlPKvE2_clES2_",
        "_ZNSt6vectorIN7sojourn6detail5pieceESaIS2_EE9push_backERKS2_",
        "_ZN7sojourn6reduceIiSt4plusIvEEET_S3_T0_i"})
    EXPECT_EQ(whose(name), owner_of_code::runtime) << name;
}

// If a bell is answered in the middle of such a function, the message that is being written is
// lost.
TEST(Doorbell, TemplatesOfSojournWithLocalTypesOfSojournAreTheRuntimes) {
  for (const char* name :
       {"_ZZNK7sojourn6detail5pages12interval_log5writeERNS1_14message_writerESt4spanIKjLm"
        "18446744073709551615EES7_ENKUlT_E_clIZNKS2_5writeES4_S7_S7_EUlRKNS1_15interval_recordEE_"
        "EEDaS8_",
        "_ZN7sojourn6detail11reduce_planIbZNS0_20gather_shared_memoryEvEUlbbE_EENS0_"
        "15collective_planEv",
        "_ZN7sojourn6detail11reduce_planIZNS0_12_GLOBAL__N_122wait_until_all_arrivedEvE4sumsZNS2_"
        "22wait_until_all_arrivedEvEUlS3_S3_E_EENS0_15collective_planEv"})
    EXPECT_EQ(whose(name), owner_of_code::runtime) << name;
}

TEST(Doorbell, TemplatesOfSojournWithTypesOfTheProgramArePartsOfTheProgram) {
  for (const char* name :
       {"_ZN7sojourn3runIZ4mainEUlvE_EEiiPPcT_", "_ZN7sojourn10checkpointI4rootEEvRKT_",
        "_ZN7sojourn6detail14thread_requestIPFvN12_GLOBAL__N_14rootElEJS3_lEE6handleERNS0_"
        "7requestE"})
    EXPECT_EQ(whose(name), owner_of_code::others) << name;
}

TEST(Doorbell, FunctionsThatRunTheProgramsFunctionsAreQuiet) {
  for (const char* name : {"_ZN7sojourn6detail12_GLOBAL__N_110main_fiberEPv",
                           "_ZN7sojourn6detail12_GLOBAL__N_116run_user_handlerEPv"})
    EXPECT_EQ(whose(name), owner_of_code::calls_program) << name;
}

}  // namespace
}  // namespace sojourn::detail::pages
