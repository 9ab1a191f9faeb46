# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091
# out_of_memory.sh SOJOURN PROGRAM: in a control group of 160 MiB, the rank that uses it up is named,
# and that it was for lack of memory. Status 77 where a control group cannot be made (only root may).
. "$(dirname "$0")/../../launcher/lib.sh"
ulimit -c 0
program=$2
limit=$((160 << 20))

# The group of this shell's memory, of version 1 or 2; the new one lies in it.
if [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:[a-z_,]*\<memory\>[a-z_,]*:\(.*\)$/\1/p' /proc/self/cgroup)
  [ -d "$group" ] || group=/sys/fs/cgroup/memory
  knob=memory.limit_in_bytes
  with_swap=memory.memsw.limit_in_bytes
else
  group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  knob=memory.max
  with_swap=memory.swap.max
fi
group=$group/sojourn_test_$$
mkdir "$group" 2>/dev/null || { echo "no control group can be made here"; exit 77; }
trap 'rm -rf "$work"; rmdir "$group"' EXIT
echo $limit >"$group/$knob" 2>/dev/null || { echo "memory is not limited by groups here"; exit 77; }
if [ $with_swap = memory.swap.max ]; then limit=0; fi
echo $limit >"$group/$with_swap" 2>/dev/null || true

for ranks in 1 2 4; do
  for share in on off; do
    status=0
    # The group's last process is gone when the launcher is.
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$1/cgroup.procs" || exit 77; shift; exec "$@"' sh "$group" \
      timeout 60 "$sojourn" run -n $ranks --share $share "$program" >"$out" 2>"$err" </dev/null ||
      status=$?
    [ "$status" -ne 77 ] || exit 77
    expect_status 137
    expect_err "rank $((ranks - 1)) (pid .* was killed by SIGKILL"
    expect_err '^  the kernel killed it because memory ran out: start fewer ranks, give the job more memory'
    expect_gone "^$program"
  done
done
