#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# delay.sh COMMAND RANKS PROGRAM...: runs job tests while messages are delayed at random
# (SOJOURN_DELAY): with SOJOURN_DELAY's seed if that is set, else with the tests' (SOJOURN_TEST_SEED), or
# a fresh one. Says the seed, so that what failed can be run again.
set -u
command=$1
ranks=$2
shift 2
status=0
for program; do
  seed=${SOJOURN_DELAY:-${SOJOURN_TEST_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}}
  share=on
  [ $((seed % 2)) -eq 0 ] || share=off
  echo "SOJOURN_DELAY=$seed $command run -n $ranks --share $share $program"
  SOJOURN_DELAY=$seed "$command" run -n "$ranks" --share "$share" "$program" || status=1
done
exit $status
