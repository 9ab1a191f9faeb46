#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# Programs that a launcher of the site starts directly are jobs like those of `sojourn run`: each of its
# processes stands for one rank. The launcher of this test (pmi_launcher) has two hosts that are this machine.
# Usage: direct.sh SOJOURN LAUNCHER PROGRAM OTHER-PROGRAM
. "$(dirname "$0")/../launcher/lib.sh"
launcher=$2
program=$3
other=$4
unset SOJOURN_TRUST SOJOURN_SITE
export SOJOURN_TRUST=key XDG_CONFIG_HOME="$work/home"

# on HOSTS ARGUMENTS...: the program, once for each word of a list.
on() {
  hosts=$1
  shift
  started=$(now_ms)
  status=0
  "$launcher" "$hosts" "$program" "$@" >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
}
start() {
  hosts=$1
  shift
  : >"$out"
  "$launcher" "$hosts" "$program" "$@" >"$out" 2>"$err" </dev/null &
  job=$!
}
expect_ranks() { [ "$(sed -n 's/^\(rank.*\), as .*/\1/p' "$out" | sort | tr '\n' ';')" = "$1" ] || fail "the ranks are others"; }
expect_nothing_left() { expect_gone "$program"; }
are_there() { [ "$(grep -c '^rank' "$out")" -eq 4 ]; }
# The processes of the launcher, in their order; their children are ranks.
stand_ins() { tr ' ' '\n' <"/proc/$job/task/$job/children"; }

context='one host: '
on a,a,a
expect_status 0
expect_no_err
expect_ranks 'rank 0 of 3, first here 0, all 3;rank 1 of 3, first here 0, all 3;rank 2 of 3, first here 0, all 3;'
[ "$(grep '^made' "$out" | sort | tr '\n' ' ')" = 'made in 0 made in 1 made in 2 ' ] ||
  fail 'what comes before main() has not run once a rank'
[ ! -e "$work/home" ] || fail 'it has made a key that one host does not need'
expect_nothing_left

context='two hosts: '
two='rank 0 of 4, first here 0, all 4;rank 1 of 4, first here 0, all 4;'
two=$two'rank 2 of 4, first here 2, all 4;rank 3 of 4, first here 2, all 4;'
on a,a,b,b
expect_status 0
expect_no_err
expect_ranks "$two"
[ -f "$work/home/sojourn/key" ] || fail 'there is no key'
context='two hosts in turn: '
on a,b,a,b
expect_status 0
expect_ranks "$two"

context='alone: '
on a
expect_status 0
expect_ranks 'rank 0 of 1, first here 0, all 1;'

context='rank 0 reads the input: '
echo hello | "$launcher" a,a,b,b "$program" input >"$out" 2>"$err" || fail 'it failed'
expect_out '^read: hello$'

for hosts in a,a a,a,b,b; do
  context="$hosts: an exit status: "
  on "$hosts" exit 7
  expect_status 7
  expect_err '^sojourn run: rank [13] (pid [0-9]*, .*) exited with status 7$'
  expect_err '^sojourn run: the job was ended; its exit status is 7$'
  [ "$(grep -c 'the job was ended' "$err")" -eq 1 ] || fail 'it is said more than once'
  expect_nothing_left

  context="$hosts: a rank that dies: "
  on "$hosts" die
  expect_status 134
  expect_err '^sojourn run: rank [13] (pid [0-9]*, .*) was killed by SIGABRT'
  expect_nothing_left
done

for signal in INT:130 TERM:143; do
  context="SIG${signal%:*}: "
  start a,a,b,b wait
  until_true 10000 are_there || fail 'the ranks did not start'
  kill -"${signal%:*}" $job
  await_end $job
  expect_status "${signal#*:}"
  expect_nothing_left
done

context='a report is asked for: '
start a,a,b,b wait
until_true 10000 are_there || fail 'the ranks did not start'
kill -USR1 $job
told() { grep -q 'a report was asked for' "$err" && grep -q '^rank 3 (pid' "$err"; }
until_true 10000 told || fail 'there is none'
kill -TERM $job
await_end $job
expect_status 143

context='the launcher is killed: '
start a,a,b,b wait
until_true 10000 are_there || fail 'the ranks did not start'
kill -9 $job
await_end $job
expect_nothing_left

for which in 1 3; do
  context="process $which, which stands for a host, is killed: "
  start a,a,b,b wait
  until_true 10000 are_there || fail 'the ranks did not start'
  kill -9 "$(stand_ins | sed -n "${which}p")"
  await_end $job
  [ "$status" -ne 0 ] || fail 'nothing was said of it'
  expect_nothing_left
done

# several PROGRAMS...: as the launcher has them.
several() {
  started=$(now_ms)
  status=0
  timeout 20 "$launcher" a,a,b,b "$@" >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
}
for programs in "$program one : $program two" "$program : $other" "$other : $program"; do
  context="$programs: "
  # shellcheck disable=SC2086  # a list of words
  several $programs
  expect_status 2
  expect_err '^sojourn: the launcher has started several programs'
  [ "$(wc -l <"$err")" -eq 1 ] || fail 'it is said more than once'
  expect_faster_than_ms 5000
  expect_nothing_left
done

context='a script between the launcher and the program: '
cat >"$work/script" <<'END'
"$@"
status=$?
exit $status
END
: >"$out"
"$launcher" a,a,b,b sh "$work/script" "$program" wait >"$out" 2>"$err" </dev/null &
job=$!
until_true 10000 are_there || fail 'the ranks did not start'
kill -9 $job
await_end $job
expect_nothing_left

context='the name of the program is what the launcher was given: '
ln -s "$(realpath "$program")" "$work/worker"
several "$work/worker"
expect_status 0
[ "$(grep -c "^rank .* as $work/worker\$" "$out")" -eq 4 ] || fail 'it has another name'

context='hosts that share no home: '
PMI_LAUNCHER_HOMES=$work/homes on a,a,b,b
expect_status 2
expect_faster_than_ms 5000
expect_err "^sojourn: the key .*homes/b/sojourn/key, is not on this host, and the host of rank 0 has it: "
expect_nothing_left
context='hosts with different keys: '
mkdir -p "$work/homes/b/sojourn"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/homes/b/sojourn/key"
chmod 600 "$work/homes/b/sojourn/key"
PMI_LAUNCHER_HOMES=$work/homes on a,a,b,b
expect_status 2
expect_err '^sojourn: the secret of the job is another on host b than on host a: give all hosts the key in .*/a/sojourn/key$'
expect_faster_than_ms 5000
expect_nothing_left
context='the network is trusted: '
SOJOURN_TRUST=network PMI_LAUNCHER_HOMES=$work/others on a,a,b,b
expect_status 0
expect_ranks "$two"
[ ! -e "$work/others" ] || fail 'it has made a key'

context='a key that others can read: '
chmod 644 "$work/homes/a/sojourn/key"
PMI_LAUNCHER_HOMES=$work/homes on a,a,b,b
expect_status 2
expect_faster_than_ms 5000
expect_one_sentence
expect_err "^sojourn: the key .* must be a file of this user that no other can read"
expect_nothing_left
context='a network that there is not: '
SOJOURN_NETWORK=203.0.113.0/24 on a,a,b,b
expect_status 2
expect_faster_than_ms 5000
expect_one_sentence
expect_err 'has no address in the network 203.0.113.0/24'

context='a launcher that is not to be noticed: '
SOJOURN_SITE=off on a,a,b,b
expect_status 0
[ "$(grep -c '^rank 0 of 1,' "$out")" -eq 4 ] || fail 'they are no jobs of their own'

context='processes that cannot find each other: '
status=0
SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0 SLURM_PROCID=0 "$program" >"$out" 2>"$err" || status=$?
expect_status 2
expect_one_sentence
expect_err '^sojourn: this is one of 4 processes that srun has started'
status=0
SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0 SLURM_PROCID=1 "$program" >"$out" 2>"$err" || status=$?
expect_status 2
expect_one_sentence
expect_err '^sojourn: process 1 of 4 cannot find the others'

context='settings: '
SOJOURN_SITE=no on a
expect_status 2
expect_err "^sojourn: SOJOURN_SITE is 'on' or 'off', not 'no'$"
SOJOURN_SHARE=sometimes on a,a
expect_status 2
expect_err '^sojourn: SOJOURN_SHARE=sometimes is neither on nor off$'
