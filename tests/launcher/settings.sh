# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Settings that mean nothing, or that did nothing, are told once a job.
. "$(dirname "$0")/lib.sh"
real=$3
root=$(dirname "$0")/../..

# with SETTING ARGUMENTS...: a job of real ranks with a variable more.
with() {
  setting=$1
  shift
  status=0
  env "$setting" "$@" >"$out" 2>"$err" </dev/null || status=$?
}
expect_one_line() {
  [ "$(wc -l <"$err")" -eq 1 ] || fail 'standard error is not one line'
}

# Names that nobody reads.
with SOJOURN_BALNCE=steal "$sojourn" run -n 4 "$real"
expect_status 0
expect_one_line
expect_err '^sojourn run: SOJOURN_BALNCE is not a setting of Sojourn; did you mean SOJOURN_BALANCE?$'
with SOJOURN_BALNCE=steal "$sojourn" run -n 2 --dry-run "$real"
expect_one_line
with SOJOURN_BALNCE=steal "$real"
expect_status 0
expect_one_line
expect_err '^sojourn: SOJOURN_BALNCE is not a setting'
with SOJOURN_MOOD=good "$sojourn" run -n 2 hostname
expect_one_line
expect_err '^sojourn run: SOJOURN_MOOD is not a setting of Sojourn$'
# A job inside of a job has what the outer one sets.
with SOJOURN_BALANCE=none "$sojourn" run -n 1 "$sojourn" run -n 2 "$real"
expect_status 0
expect_no_err

# Entries of SOJOURN_VIA that no access was to: one line, whatever the number of ranks.
for job in "run -n 4" "run -n 2" "run -n 4 --share off"; do
  # shellcheck disable=SC2086
  with 'SOJOURN_VIA=counter::ad=rpc' "$sojourn" $job "$real" remote
  expect_status 0
  expect_one_line
  expect_err '^sojourn run: SOJOURN_VIA: no access to another rank.s objects was to `counter::ad`, as a method or as a line; did you mean `counter::add`?$'
  # shellcheck disable=SC2086
  with 'SOJOURN_VIA= add = rpc ,counter::add=migrate' "$sojourn" $job "$real" remote
  expect_status 0
  expect_no_err
done
with 'SOJOURN_VIA=add=rpc,tree::insert=migrate,real_rnk.cpp:1=rpc' "$sojourn" run -n 2 "$real" remote
expect_status 0
expect_err 'no access to another rank.s objects was to `tree::insert`, as a method or as a line$'
expect_err 'no access to another rank.s objects was to `real_rnk.cpp:1`, as a method or as a line; did you mean `real_rank.cpp:[0-9]*`?'
[ "$(wc -l <"$err")" -eq 2 ] || fail 'there are not two lines'
# A single rank has no access to another one's objects, whatever is set.
with 'SOJOURN_VIA=counter::ad=rpc' "$sojourn" run -n 1 "$real" remote
expect_status 0
expect_no_err
# A job that failed has other troubles.
with 'SOJOURN_VIA=counter::ad=rpc' "$sojourn" run -n 2 "$real" status
expect_status 3
if grep -q SOJOURN_VIA: "$err"; then fail 'a failed job is told of its settings'; fi
# Entries that are none are refused.
for entry in counter::add counter::add= =rpc counter::add=fork 'counter::add=rpc,,' 'counter::add rpc'; do
  with "SOJOURN_VIA=$entry" "$sojourn" run -n 2 "$real" remote
  expect_status 2
  expect_err 'is neither name=WORD, where name is a method'
done

# A value that means nothing is refused, by the command or by the ranks; alone, too.
while read -r name value sentence; do
  context="SOJOURN_$name=$value: "
  for job in "$sojourn run -n 2" ''; do
    # shellcheck disable=SC2086
    with "SOJOURN_$name=$value" $job "$real" remote
    expect_status 2
    expect_no_out
    expect_err "^sojourn\\( run\\)\\?: SOJOURN_$name$sentence"
  done
done <<'END'
AGGREGATE x =x is neither on nor off$
ALLOW x : `x` is not function:reason (several are separated by ;)$
BALANCE x =x is neither none, steal nor diffuse$
CACHE_BYTES x =x is no number of bytes, such as 67108864 or 64M$
CHECKED maybe =maybe is neither 1 nor 0$
CORES x =x is not a number of cores from 1 to 1024$
CORES 0 =0 is not a number of cores from 1 to 1024$
DELAY x =x is neither a seed nor a time: give a whole number, such as 1, for random delays, or how long.*
EXECUTION x =x is neither hybrid nor heap$
READ_MEMORY x =x is neither on nor off$
REGION_GIB 0 =0 is not a whole number from 1 to 10240$
SCAN x =x is neither on nor off$
SHARED lmv =lmv is none of the protocols lmw, lsw and seq$
SHARED_DIFFS 1 =1 is no number from 64 to 1073741824$
SHARED_FETCH x =x is no number from 1 to 64$
SHARED_PROTECTION x =x is neither userfaultfd nor mprotect: choose one of these, or leave the variable out$
SHARE x .* .*on.* n\?or .*off
STACK_KIB 1 =1 is not a whole number from 64 to 1048576$
STATS x =x is neither on nor off$
STEAL x =x is neither on nor off nor hosts$
VIA x : `x` is neither name=WORD, where name is a method such as node::child or a line such as tree.cpp:120, nor WORD alone, for every access; the words are rpc, migrate, cache, fetch and automatic$
END
context=''

# What the launcher sets is its own.
refused_rank() {
  status=0
  "$sojourn" run -n 2 sh -c "$1"' exec "$0"' "$real" >"$out" 2>"$err" </dev/null || status=$?
  expect_status 2
  expect_no_out
  expect_err "^sojourn: $2"
}
refused_rank 'SOJOURN_RANK=x' 'SOJOURN_RANK=x is not what the launcher sets: unset it$'
refused_rank 'SOJOURN_RANK=-1' 'SOJOURN_RANK=-1 is not what the launcher sets: unset it$'
refused_rank 'SOJOURN_RANK=7' 'SOJOURN_RANK=7 is not a rank of this job$'
refused_rank 'SOJOURN_JOB_FDS=x' 'SOJOURN_JOB_FDS=x is not what the launcher sets: unset it$'
refused_rank 'SOJOURN_JOB_FDS=70,71,72' "the job's shared memory cannot be mapped (Bad file descriptor): was this program started by .sojourn run"
once='each rank runs one program, once; start what is to run after it as a job of its own$'
refused_rank 'SOJOURN_RANK=1' "process [0-9]* has been rank 1 of this job: $once"
# Nor does a second program take a rank's place, whose messages the others do not expect.
for ranks in 1 2; do
  status=0
  "$sojourn" run -n $ranks sh -c '"$0" && "$0"' "$real" >"$out" 2>"$err" </dev/null || status=$?
  expect_status 2
  lines_in "$out" $ranks || fail 'the first programs are not what ran'
  expect_err "^sojourn: process [0-9]* has been rank [0-9] of this job: $once"
done

# What the sources read is known, and what is known is explained.
known=$(sed -n '/for_users\[\]/,/^};/p' "$root/src/base/settings.cpp" | grep -o 'SOJOURN_[A-Z_]*')
[ -n "$known" ] || fail 'the list of settings is not found'
for name in $(grep -rhE --include='*.cpp' --exclude='*_test.cpp' 'getenv\(|from_environment\(' "$root/src" "$root/include" |
  grep -o '"SOJOURN_[A-Z_]*"' | tr -d '"' | sort -u); do
  grep -q "\"$name\"" "$root/src/base/settings.cpp" || fail "src/base/settings.cpp does not know $name"
done
for name in $known; do
  grep -rq "$name" "$root/docs" || fail "docs do not explain $name"
done
