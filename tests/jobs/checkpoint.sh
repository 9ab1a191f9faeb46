# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# Checkpoints: a job goes on from one and comes to the same answer; killed at any moment, too. Torn and
# foreign ones are refused with a sentence.
# Usage: checkpoint.sh SOJOURN PROGRAM SANITIZED CLAIMS: the name of one of the functions below.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
sanitized=$3
export SOJOURN_CHECKED=0
state=$work/state

# files N: the folder holds one checkpoint of N ranks, its lock and nothing else, for this user alone.
files() {
  [ -f "$state" ] || fail 'the checkpoint is missing'
  [ "$(find "$work" -name 'state*' | wc -l)" -eq $(($1 + 2)) ] ||
    fail "other files than those of one checkpoint: $(find "$work" -name 'state*')"
  [ -z "$(find "$work" -name 'state*' -perm /077)" ] || fail 'others may read the files'
}
answer() { sed -n 's/^answer //p' "$out"; }

# gone SCENARIO: no rank is left, nor its lock, which a process gives back after its command line has gone.
gone() {
  not alive "$state $1" &&
    ! grep -q ":$(stat -c %i "$state.lock" 2>/dev/null || echo none) " /proc/locks 2>/dev/null
}

# Every state of a fiber; the job goes on after the checkpoint, and again from it, twice.
states_on() {
  for ranks in $1; do
    for share in on off; do
      rm -f "$state"*
      try run -n $ranks --share $share "$program" "$state" states
      expect_status 0
      expect_no_err
      expected=$(answer)
      [ -n "$expected" ] || fail 'no answer'
      files $ranks
      # As a job leaves it that is killed before it has removed the checkpoint before the last.
      touch "$state.0.0" "$state.0.$((ranks - 1))"
      for again in on off; do
        try run --share $again --restore "$state" "$program" "$state" states
        expect_status 0
        expect_no_err
        [ "$(answer)" = "$expected" ] || fail "restored, $(answer) and not $expected"
        files $ranks
      done
    done
  done
}

states_1() { states_on 1; }
states_2() { states_on 2; }
states_4() { states_on 4; }

# Threads that load balance keeps, or is about to hand over, are saved as well.
balanced_threads() {
  try run -n 4 "$program" "$state" states
  expect_status 0
  expected=$(answer)
  for policy in steal diffuse; do
    rm -f "$state"*
    try run -n 4 --balance $policy "$program" "$state" states
    expect_status 0
    [ "$(answer)" = "$expected" ] || fail "under $policy, $(answer) and not $expected"
    for again in none $policy; do
      try run --balance $again --restore "$state" "$program" "$state" states
      expect_status 0
      [ "$(answer)" = "$expected" ] || fail "restored under $again, $(answer) and not $expected"
    done
  done
}

# Threads that start others for ever do not keep it from coming to an end, and go on.
threads_that_start_others() {
  for policy in none steal; do
    rm -f "$state"*
    try run -n 2 --balance $policy "$program" "$state" never_ending
    expect_status 0
    expect_out '^answer 2$'
    try run --balance $policy --restore "$state" "$program" "$state" never_ending
    expect_status 0
    expect_out '^answer 2$'
  done
}

# Calls that wait in a bundle are made before it is written.
bundled_calls() {
  export SOJOURN_AGGREGATE=on
  rm -f "$state"*
  try run -n 1 "$program" "$state" bundled
  expect_status 0
  expect_out '^answer 7$'
  try run --restore "$state" "$program" "$state" bundled
  expect_status 0
  expect_out '^answer 7$'
}

# What is no whole checkpoint of this job is refused.
what_is_refused() {
  try run -n 4 "$program" "$state" states
  expect_status 0
  part=$(find "$work" -name 'state.*.1')
  whole='all files of a checkpoint must be unchanged'
  named='--restore takes the name that the program gave to checkpoint()'
  refused() {
    expected=$1
    shift
    try run "$@" "$program" "$state" states
    expect_status 2
    expect_no_out
    grep -qF -e "cannot restore: $expected" "$err" || fail "expected: cannot restore: $expected"
  }
  cp "$part" "$work/kept"
  truncate -s -1 "$part"
  refused "$part is incomplete: its end is missing: $whole" --restore "$state"
  truncate -s 5 "$part"
  refused "$part is incomplete: it has only 5 bytes: $whole" --restore "$state"
  cp "$work/kept" "$part"
  printf 'x' | dd of="$part" bs=1 seek=5000 conv=notrunc 2>/dev/null
  refused "$part is damaged: its checksum does not match its content: $whole" --restore "$state"
  rm "$part"
  missing="$part cannot be opened (No such file or directory): $whole"
  # The head of a job on several hosts asks all of them.
  if [ "${sojourn##*/}" = two_hosts ]; then
    missing="$part is not on host a, where rank 1 is to run, nor on another: the checkpoint was written with --hosts a:2,b:2"
  fi
  refused "$missing" --restore "$state"
  cp "$work/kept" "$part"
  before=${SOJOURN_TEST_HOSTS-}
  if [ "${sojourn##*/}" = two_hosts ]; then
    refused "$state was written without --encrypt: leave --encrypt out, as then" --encrypt --restore "$state"
    alike='give as many hosts, which may be others, each with as many ranks'
    for hosts in a:1,b:3 a:1,b:1,c:2; do
      export SOJOURN_TEST_HOSTS=$hosts
      refused "$state was written with --hosts a:2,b:2, and this job has --hosts $hosts: $alike" --restore "$state"
    done
    export SOJOURN_TEST_HOSTS=a:1,b:2
    refused "$state was written by 4 ranks, and this job has 3: run it with -n 4" --restore "$state"
    # On other hosts, which have the folder.
    export SOJOURN_TEST_HOSTS=c,d
    try run --restore "$state" "$program" "$state" states
    expect_status 0
    part=$(find "$work" -name 'state.*.1')
    cp "$part" "$work/kept"
    export SOJOURN_TEST_HOSTS=a,b
    # Back to what the rest expects.
    try run --restore "$state" "$program" "$state" states
    expect_status 0
  fi
  rm "$part"
  cp "${part%.1}.2" "$part"
  refused "$part belongs to rank 2: $whole" --restore "$state"
  # Of an earlier generation, and of another job.
  rm -rf "$work/other"
  mkdir "$work/other"
  try run -n 4 "$program" "$work/other/state" states
  expect_status 0
  cp "$work/other/${part##*/}" "$part"
  refused "$part belongs to another checkpoint: $whole" --restore "$state"
  rm -r "$work/other"
  cp "$work/kept" "$part"
  refused "$state was written by 4 ranks, and this job has 2: run it with -n 4" -n 2 --restore "$state"
  refused "$part is one rank's part of a checkpoint: $named" --restore "$part"
  refused "$work/absent cannot be opened (No such file or directory): $named" --restore "$work/absent"
  refused "$program was not written by Sojourn: $named" --restore "$program"
  refused "$work is not a regular file: $named" --restore "$work"
  for setting in SOJOURN_STACK_KIB=512 SOJOURN_MAIN_STACK_KIB=16384; do
    export "${setting?}"
    refused "$state was written with another size of the region or of stacks" --restore "$state"
    unset "${setting%=*}"
  done
  try run --restore "$state" "$(dirname "$program")/job_sleep"
  if [ -x "$(dirname "$program")/job_sleep" ]; then
    expect_status 2
    expect_no_out
    expect_err "cannot restore: $state was written by another program, or with other libraries or on another kind of processor: start the same executable that wrote it, not a rebuilt one"
  fi
  try run --restore
  expect_status 2
  expect_one_sentence
}

# A name that is something else is left alone.
foreign_files() {
  cp /etc/passwd "$work/something"
  try run -n 2 "$program" "$work/something" states
  [ "$status" -ne 0 ] || fail 'another file was replaced'
  expect_err 'something exists already and is not a checkpoint that could be replaced: choose another name, or remove it'
  cmp -s /etc/passwd "$work/something" || fail 'another file was changed'
  rm -f "$work"/something* "$state"*
}

# Two jobs never share a path: the second is told who has it, and neither restores what the first still
# writes. The lock ends with the job, whatever ends that.
two_jobs() {
  "$sojourn" run -n 2 "$program" "$state" stays >"$work/first" 2>&1 </dev/null &
  first=$!
  until_true 9000 grep -q written "$work/first" || fail 'the first job wrote no checkpoint'
  for ranks in 1 2 4; do
    try run -n $ranks "$program" "$state" stays
    [ "$status" -ne 0 ] || fail 'a second job writes to the path of the first'
    expect_err "no checkpoint was written: $state is in use by another running job (pid [0-9]*, $program, on host .*): end that job, or choose another name"
  done
  try run --restore "$state" "$program" "$state" stays
  expect_status 2
  expect_one_sentence
  expect_err "cannot restore: $state is in use by another running job (pid [0-9]*, $program, on host .*): end that job, or choose another name"
  kill -0 $first || fail 'the first job suffers from others'
  kill -KILL $first
  wait $first
  until_true 2000 gone stays || fail 'ranks outlive their launcher'
  try run --restore "$state" "$program" "$state" stays
  expect_status 0
  expect_out '^answer 7$'
  rm -f "$state"*
}

# What cannot be saved, and what cannot be written, refuses the checkpoint; the job goes on.
what_cannot_be_saved() {
  for ranks in 1 2; do
    try run -n $ranks "$program" "$state" refusals
    expect_status 0
    expect_no_err
    expect_out '^done$'
    for sentence in 'holds a synchronisation object at 0x[0-9a-f]*, which is not saved with it' \
      'waits for a synchronisation object at 0x[0-9a-f]*, which is not saved with it' \
      'the thread of id 0x[0-9a-f]* waits in a catch block, and the exception is not saved$' \
      'the thread of id 0x[0-9a-f]* has a .stay.: it uses something that only its process has$' \
      'the thread of id 0x[0-9a-f]* reads a replicated object: wait for it first$' \
      'the thread .starter. is initialising a static variable$' \
      'a dist_object lies in the frames or the heap of a thread, or in the global heap, and dist_objects are not saved: let main' \
      'a value of more than 512 KiB, or of a type that cannot travel, is not saved before its receiver has read it' \
      'main holds a sojourn::mutex of the global heap, and would not hold it in a restored job: unlock it first$' \
      'a fiber is a part of main that a fork or an activation began, and has not ended$' \
      'a sojourn::shared::mutex is held or waited for, and these are not saved: unlock it first$' \
      'checkpoint() must be called by main on every rank, not by a thread or a call, and outside of any'; do
      expect_out "no checkpoint was written: .*$sentence"
    done
    if [ $ranks -gt 1 ]; then
      expect_out 'a thread has begun a collective operation that has not ended: let it end first$'
      expect_out 'a fiber waits until a dist_object is made, and dist_objects are not saved'
    fi
    expect_out 'state.[0-9]*.[0-9]* cannot be written: File too large$'
    expect_out 'no checkpoint was written: /proc/no-such-folder/state.1.0 cannot be created: No such file or directory$'
    if grep -E '^(rank [0-9]|a thread)' "$out"; then fail 'wrong refusals'; fi
    files $ranks
    rm -f "$state"*
  done
}

# Checked mode's records of objects come along, when it is on in both jobs.
checked_mode() {
  SOJOURN_CHECKED=1 try run -n 2 "$program" "$state" states
  expect_status 0
  expected=$(answer)
  try run --restore "$state" "$program" "$state" states
  expect_status 2
  expect_err "cannot restore: $state was written in checked mode: set SOJOURN_CHECKED=1"
  SOJOURN_CHECKED=1 try run --restore "$state" "$program" "$state" states
  expect_status 0
  [ "$(answer)" = "$expected" ] || fail "restored in checked mode, $(answer) and not $expected"
  rm -f "$state"*
  try run -n 2 "$program" "$state" states
  expect_status 0
  SOJOURN_CHECKED=1 try run --restore "$state" "$program" "$state" states
  expect_status 2
  expect_err "cannot restore: $state has no records of objects, which checked mode needs: set SOJOURN_CHECKED=0"
}

# Threads go on at main's first barrier: a main that waits for one before is told so.
waits_too_early() {
  try run -n 2 "$program" "$state" waits_too_early
  expect_status 0
  try run --restore "$state" "$program" "$state" waits_too_early
  expect_status 1
  expect_err 'is paused until main reaches a barrier(), because this job was restored'
  rm -f "$state"*
}

# A frame with a pointer into memory that is not saved is named, once.
private_memory() {
  if [ "$sanitized" = 0 ]; then
    try run -n 1 "$program" "$state" warnings
    expect_status 0
    expect_no_out
    [ "$(wc -l <"$err")" -eq 1 ] || fail 'not one warning'
    expect_err "^sojourn: rank 0: warning: a frame of \`(anonymous namespace)::keeps_private_memory(.*)\` is saved with a word (0x[0-9a-f]*) that looks like a pointer into this rank's private heap, which is not saved; in a restored job it points nowhere. Keep the data on thread_heap() or in the global heap"
    rm -f "$state"*
  fi
}

# Killed at any moment, a rank or all at once, and restored from what is there, it ends with the answer
# of a job that nobody disturbed.
killed_at_any_moment() {
  try run -n 4 "$program" "$state" computation
  expect_status 0
  expected=$(answer)
  [ -n "$expected" ] || fail 'no answer'
  files 4
  seed=$((${SOJOURN_TEST_SEED:-$(od -An -N2 -tu2 /dev/urandom)} % 65536))
  echo "seed $seed"
  random() {
    seed=$(((seed * 25173 + 13849) % 65536))
    chance=$((seed / 16 % $1))
  }
  # start ARGS...: the computation, from its checkpoint if there is one, in the background.
  start() {
    if [ -f "$state" ]; then set -- --restore "$state"; fi
    "$sojourn" run -n 4 "$@" "$program" "$state" computation >"$out" 2>"$err" </dev/null &
    launcher=$!
  }
  for round in 1 2; do
    rm -f "$state"*
    for kill in 1 2 3 4 5; do
      start
      random 350
      sleep "$(printf '0.%03d' $((50 + chance)))"
      random 5
      victim=$(awk -v parent=$launcher -v which=$chance '$4 == parent && which-- == 1 { print $1 }' \
        /proc/[0-9]*/stat 2>/dev/null)
      kill -9 "${victim:-$launcher}" 2>/dev/null
      status=0
      wait $launcher 2>/dev/null || status=$?
      [ $status -ne 2 ] || fail "round $round, kill $kill: it does not start again"
      [ $status -ne 0 ] || break
      # What is left of a job whose launcher was killed ends by itself, and has the checkpoint until then.
      until_true 9000 gone computation || fail "round $round, kill $kill: ranks are left"
    done
    status=0
    if [ "$kill" -eq 5 ]; then
      start
      wait $launcher || status=$?
    fi
    expect_status 0
    [ "$(answer)" = "$expected" ] || fail "round $round: $(answer) and not $expected"
    files 4
  done
}

"$4"
