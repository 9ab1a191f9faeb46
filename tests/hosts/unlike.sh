#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# Hosts whose libraries differ are one job all the same, in which stacks stay on their kind of host; hosts that
# run different programs are none. The hosts are both this machine; one preloads a library.
# Usage: unlike.sh SOJOURN UNLIKE OTHER-PROGRAM
. "$(dirname "$0")/../launcher/lib.sh"
unlike=$2
other=$3
library=libutil.so.1
differs="sh -c 'if [ \$0 = b ]; then export LD_PRELOAD=$library; fi; exec \"\$@\"'"
here="sh -c 'exec \"\$@\"'"
warning='^sojourn: ranks 0 and 2 are on hosts that differ: one has other libraries\. Stacks do not go between'

context='hosts with different libraries: '
try run --hosts a:2,b:2 --agent "$differs" "$unlike" 2
expect_status 0
expect_err "$warning"
[ "$(wc -l <"$err")" -eq 1 ] || fail 'it is said more than once'

try doctor --hosts a,b --agent "$differs"
expect_status 0
expect_out '^warning  hosts  *ranks 0 and 1 are on hosts that differ: one has other libraries\. Stacks do not go between'

context='ranks of one host with different libraries: '
try run -n 2 sh -c 'if [ $SOJOURN_RANK = 1 ]; then export LD_PRELOAD='$library'; fi; exec "$0" 2' "$unlike"
expect_status 2
expect_err '^sojourn: ranks 0 and 1 run different programs or libraries'

context='hosts with different programs: '
try run --hosts a,b --agent "$here" sh -c 'if [ $SOJOURN_RANK = 0 ]; then exec "$0" 1; else exec "$1"; fi' "$unlike" "$other"
expect_status 2
expect_err '^sojourn: ranks 0 and 1 run different programs'
