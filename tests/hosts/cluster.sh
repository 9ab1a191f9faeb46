#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# A job on hosts that share nothing but files and a network: each has its own processes, memory, name and
# clock (hosts). Programs are right there, and a host that dies, is cut off or loses its cable is told of.
# Launchers of sites start them, too, where they are installed.
# Usage: cluster.sh SOJOURN PROGRAM-THAT-WAITS CLAIMS [PROGRAM...]
# CLAIMS: programs, ends, slow SLOW-LINK PROGRAM-THAT-HANGS (job_hangs), checkpoints PROGRAM (job_checkpoint), or site LAUNCHER: openmpi, hydra, pmix, pmi2 or allocation.
. "$(dirname "$0")/lib.sh"
waits=$2
ours=$waits
claims=$3
shift 3
# As ssh does, this brings nothing of this environment to the other host.
starter="env -i PATH=$PATH HOSTS_STATE=$HOSTS_STATE $hosts ssh"

start() {
  : >"$out"
  "$sojourn" run --hosts host1:2,host2:2 --agent "$starter" "$@" >"$out" 2>"$err" </dev/null &
  head=$!
}
# The named of a loss takes up to 2 s; this machine may be busy with other tests.
expect_named() {
  expect_status 1
  expect_err "^sojourn run: host host2 is lost, and with it ranks 2 to 3: the connection to its agent has ended"
  expect_faster_than_ms 6000
  echo "$context$elapsed_ms ms"
}

programs() {
  for program in "$@"; do
    context="$program: "
    start "$program"
    await_end $head
    expect_status 0
  done
  context='names, and whose they are: '
  start --label sh -c 'uname -n'
  await_end $head
  [ "$(sort "$out" | tr '\n' ' ')" = '[0] host1 [1] host1 [2] host2 [3] host2 ' ] || fail 'they are others'
}

ends() {
  for how in cut pull; do
    context="$how: "
    start "$waits"
    until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
    expect_job_is_seen
    "$hosts" $how 2 || fail "it cannot be done"
    await_end $head
    expect_named
    expect_nothing_left
    "$hosts" heal 2
    "$hosts" plug 2
  done

  context='a rank that dies: '
  start "$waits" 3
  await_end $head
  expect_status 139
  expect_err '^sojourn run: rank 3 (pid [0-9]*, .*) was killed by SIGSEGV'
  expect_err '^  on host host2; to run it again: '
  expect_nothing_left

  context='a stopped host is not dead: '
  start "$waits"
  until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
  "$hosts" stop 2
  sleep 3
  kill -0 $head || fail 'the job has ended'
  "$hosts" cont 2
  kill -INT $head
  await_end $head
  expect_status 130
  expect_nothing_left

  context='the head is killed: '
  start "$waits"
  until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
  kill -9 $head
  await_end $head
  expect_nothing_left
}

# slow SLOW-LINK JOB_HANGS PROGRAM...: messages to and from host2 take milliseconds, and not always as many.
slow() {
  export HOSTS_SLOW_LINK="$1"
  hangs=$2
  shift 2
  "$hosts" delay 2 2 2 || fail 'host2 cannot be slowed down'
  for program in "$@"; do
    context="$program, slowly: "
    start "$program"
    await_end $head
    expect_status 0
    [ ! -s "$err" ] || fail 'something is said on standard error'
  done
  "$hosts" delay 2 40 20
  context='a job that goes on slowly does not hang: '
  start --watchdog 1 "$waits"
  sleep 3
  kill -INT $head
  await_end $head
  expect_status 130
  [ "$(wc -l <"$err")" -le 1 ] || fail 'more is said than that it was ended'
  expect_nothing_left
  context='a job that hangs is seen to hang: '
  start --watchdog 0 "$hangs" circle
  await_end $head
  expect_status 1
  expect_err 'no fiber of any rank can go on, and no message is on its way'
  expect_faster_than_ms 8000
  "$hosts" delay 2 0
  expect_nothing_left
}

# Each host has a folder of its own, with the files of its own ranks; that of rank 0 says which they are.
checkpoints() {
  program=$1
  ours=$program
  state=/var/tmp/checkpoint-over-hosts.$$
  trap 'rm -rf "$work" "$state"' EXIT
  beside() { "$hosts" exec "$1" sh -c 'cd /var/tmp && ls | sed -n "s/^${1##*/}//p" | tr "\n" " "' sh "$state"; }
  expect_parts() {
    [ "$(beside 1)" = " .$1.0 .$1.1 .lock " ] || fail "host1 has $(beside 1)"
    [ "$(beside 2)" = ".$1.2 .$1.3 .lock " ] || fail "host2 has $(beside 2)"
  }
  goes_on() {
    "$sojourn" run --agent "$starter" --restore "$state" "$@" "$program" "$state" states >"$out" 2>"$err" </dev/null &
    await_end $!
  }
  refused() {
    expect_status 2
    expect_err "cannot restore: $1"
    expect_nothing_left
  }
  wrote='the checkpoint was written with --hosts host1:2,host2:2'

  context='written: '
  start "$program" "$state" states
  await_end $head
  expect_status 0
  answer=$(grep '^answer' "$out") || fail 'no answer'
  expect_parts 1
  context='restored: '
  goes_on --hosts host1:2,host2:2
  expect_status 0
  [ "$(grep '^answer' "$out")" = "$answer" ] || fail 'the answer is another'
  expect_parts 1
  context='restored where the head can read which hosts wrote it: '
  "$hosts" exec 1 cat "$state" >"$state"
  goes_on
  expect_status 0
  [ "$(grep '^answer' "$out")" = "$answer" ] || fail 'the answer is another'
  expect_parts 1
  rm "$state"

  context='hosts in another order: '
  goes_on --hosts host2:2,host1:2
  refused "$state.1.0 is not on host host2, where rank 0 is to run, but on host host1: $wrote"
  context='ranks divided in another way: '
  goes_on --hosts host1:1,host2:3
  refused "$state was written with --hosts host1:2,host2:2, and this job has --hosts host1:1,host2:3: give as many"
  context='another number of ranks: '
  goes_on --hosts host1:1,host2:2
  refused "$state was written by 4 ranks, and this job has 3: run it with -n 4"
  context='no such checkpoint: '
  goes_on --hosts host2:2
  refused "$state cannot be opened (No such file or directory): --restore takes the name"
  context='a file is missing: '
  "$hosts" exec 2 rm "$state.1.3"
  goes_on --hosts host1:2,host2:2
  refused "$state.1.3 is not on host host2, where rank 3 is to run, nor on another: $wrote"
  context='killed again and again: '
  start "$program" "$state-of-computation" computation
  await_end $head
  expect_status 0
  answer=$(grep '^answer' "$out") || fail 'no answer'
  state=$state-killed
  start "$program" "$state" computation
  for kill in 1 2 3; do
    sleep 0.3
    kill -9 $head 2>/dev/null || true
    await_end $head
    until_true 10000 nothing_left || fail 'a process is left'
    has_set=$("$hosts" exec 1 sh -c '[ ! -f "$1" ] || echo yes' sh "$state")
    set --
    if [ -n "$has_set" ]; then set -- --restore "$state"; fi
    : >"$out"
    "$sojourn" run --hosts host1:2,host2:2 --agent "$starter" "$@" "$program" "$state" computation >"$out" 2>"$err" </dev/null &
    head=$!
  done
  await_end $head
  expect_status 0
  [ "$(grep '^answer' "$out")" = "$answer" ] || fail 'the answer is another'
  generation=$(beside 1 | sed -n 's/^.*\.\([0-9]*\)\.0 .*/\1/p')
  [ "$generation" -gt 1 ] || fail "no second checkpoint: $(beside 1)"
  expect_parts "$generation"
}

need() { command -v "$1" >/dev/null || { echo "skipped: there is no $1 (apt-get install $2)"; exit 77; }; }
has_slurm() {
  "$tests/slurm_on_hosts" can || exit
  trap '"$tests/slurm_on_hosts" down; rm -rf "$work"' EXIT
  "$tests/slurm_on_hosts" up 2 || exit 1
  SLURM_CONF=$("$tests/slurm_on_hosts" where)/slurm.conf
  export SLURM_CONF
}
# site LAUNCHER PROGRAM (placed): two hosts with two of the launcher's processes each.
site() {
  program=$2
  agent=$tests/ssh_to_host
  tasks='-N 2 -n 4 --ntasks-per-node=2'
  case $1 in
    openmpi)
      need mpirun.openmpi openmpi-bin
      by="mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent $agent -H host1:2,host2:2 -np 4"
      ;;
    hydra)
      need mpiexec.hydra mpich
      by="mpiexec.hydra -launcher ssh -launcher-exec $agent -hosts host1:2,host2:2 -np 4"
      ;;
    pmix | pmi2)
      has_slurm
      by="srun --mpi=$1 $tasks"
      ;;
    allocation)
      has_slurm
      by="salloc --quiet $tasks $sojourn run"
      ;;
  esac
  with() {
    started=$(now_ms)
    status=0
    # shellcheck disable=SC2086  # a list of words
    timeout 60 $by "$program" "$@" >"$out" 2>"$err" || status=$?
    elapsed_ms=$(($(now_ms) - started))
  }
  are_there() { [ "$(grep -c '^rank' "$out")" -eq 4 ]; }
  ours=$program

  context="$1: "
  with </dev/null
  expect_status 0
  if grep -q '^sojourn' "$err"; then fail 'something is said on standard error'; fi
  two='rank 0 of 4, first here 0, all 4;rank 1 of 4, first here 0, all 4;'
  two=$two'rank 2 of 4, first here 2, all 4;rank 3 of 4, first here 2, all 4;'
  [ "$(sed -n 's/^\(rank.*\), as .*/\1/p' "$out" | sort | tr '\n' ';')" = "$two" ] || fail 'the ranks are others'
  [ "$(grep '^made' "$out" | sort | tr '\n' ' ')" = 'made in 0 made in 1 made in 2 made in 3 ' ] ||
    fail 'what comes before main() has not run once a rank'
  expect_nothing_left

  context="$1: input: "
  echo hello >"$work/input"
  with input <"$work/input"
  expect_status 0
  expect_out '^read: hello$'

  context="$1: an exit status: "
  with exit 7 </dev/null
  expect_status 7
  expect_err '^sojourn run: rank 3 (pid [0-9]*, .*) exited with status 7$'
  expect_nothing_left

  context="$1: a rank that dies: "
  with die </dev/null
  expect_status 134
  expect_err '^sojourn run: rank 3 (pid [0-9]*, .*) was killed by SIGABRT'
  expect_err '^  on host host2; to run it again: '
  expect_nothing_left

  for signal in INT TERM KILL; do
    # Slurm finds out by and by, and not here, that srun has been killed.
    case $1$signal in
      pmixKILL | pmi2KILL | allocationKILL) continue ;;
    esac
    context="$1: SIG$signal to the launcher: "
    : >"$out"
    # shellcheck disable=SC2086  # a list of words
    $by "$program" wait >"$out" 2>"$err" </dev/null &
    job=$!
    until_true 20000 are_there || fail 'the ranks did not start'
    expect_job_is_seen
    kill -$signal $job
    case $1$signal in
      # Of srun, it takes two.
      pmixINT | pmi2INT) sleep 0.3 && kill -INT $job ;;
    esac
    has_ended() { ! kill -0 $job 2>/dev/null; }
    until_true 20000 has_ended || { kill -9 $job; fail 'the launcher does not end'; }
    await_end $job
    expect_nothing_left
  done
}

"$claims" "$@"
