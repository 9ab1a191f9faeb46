# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2016,SC2034,SC2154
# What tests share that run on two hosts made of namespaces (hosts). Sourced first, it makes the hosts, starts
# the test again on host 0, which reaches the others as a login node does, and skips it where none can be made.
# A test names its program in `ours`, a pattern that is in the command lines of its processes.
set -u
tests=$(cd "$(dirname "$0")" && pwd) || exit 1
hosts=$tests/hosts
if [ "${HOSTS_ARE_UP-}" != 1 ]; then
  "$hosts" can || exit
  HOSTS_ARE_UP=1 exec "$hosts" run 2 sh "$0" "$@"
fi
. "$tests/../launcher/lib.sh"

# of_job I: a line for each process of the job on host I: its number there, its name, its command line. In the
# namespace of a host all its processes can be seen.
of_job() {
  "$hosts" exec "$1" sh -c 'for p in /proc/[0-9]*; do
    echo "${p#/proc/} $(cat $p/comm) $(tr "\0" " " <$p/cmdline)"
  done' 2>/dev/null | grep -a -e "$ours" -e 'sojourn agent' | grep -a -v 'for p in'
}
nothing_left() { [ -z "$(of_job 1)" ] && [ -z "$(of_job 2)" ]; }
expect_nothing_left() { until_true 10000 nothing_left || fail "a process is left: $(of_job 1) $(of_job 2)"; }
expect_job_is_seen() { if nothing_left; then fail 'its processes are not seen'; fi; }
