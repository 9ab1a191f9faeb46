# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154
# Shared memory under valgrind: refused where faults come with stale registers, right where valgrind keeps
# them. (Its tool does not matter.) Status 77: no valgrind.
. "$(dirname "$0")/../launcher/lib.sh"
command -v valgrind >/dev/null || exit 77
program=$2
# The program shares more than fits into the small region that a job has there.
export SOJOURN_REGION_GIB=64
registers=--vex-iropt-register-updates=allregs-at-mem-access

context='as it comes: '
try run -n 2 valgrind -q --tool=none "$program"
expect_status 134
expect_err "shared memory under valgrind needs $registers"

context='with registers: '
try run -n 2 valgrind -q --tool=none "$registers" "$program"
expect_status 0
