# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Jobs of several programs: what is started, what is refused, and who is named.
. "$(dirname "$0")/lib.sh"
ulimit -c 0
real=$3
other=$4

refused() {
  pattern=$1
  shift
  try run "$@"
  expect_status 2
  expect_one_sentence
  expect_err "$pattern"
}
refused "no program was given after a ':'" -n 1 hostname :
refused "no program was given after a ':'" -n 1 hostname : -n 2
refused "no program was given after a ':'" -n 1 hostname : : -n 1 hostname
refused 'no program was given' : -n 1 hostname
refused 'no program was given' -n 1 : -n 1 hostname
refused "its number of ranks (-n), and hostname has none: 'sojourn run -n 1" hostname : -n 1 true
refused "its number of ranks (-n), and true has none: 'sojourn run -n 1" -n 1 hostname : true
refused "from 1 to 1024, not '0'" -n 1 hostname : -n 0 true
refused "from 1 to 1024, not 'two'" -n 1 hostname : -n two true
refused "from 1 to 1024, not ''" -n 1 hostname : -n '' true
refused "from 1 to 1024, not '2x'" -n 1 hostname : -n2x true
refused 'at most 1024 ranks, and the programs of this one have 1025' -n 1000 hostname : -n 25 true
refused "only -n and a program may follow a ':', and --label" -n 1 hostname : --label -n 1 true
refused '-n takes a value' -n 1 hostname : -n
refused "cannot start './absent': No such file" -n 1 hostname : -n 1 ./absent
refused "there is no option --fast" --fast -n 1 hostname : -n 1 true
# What only exec finds out is said of the right program.
printf '#!/nonexistent/interpreter\n' >"$work/no-interpreter"
chmod +x "$work/no-interpreter"
refused "no-interpreter': No such file" -n 2 sleep 7031 : -n 2 "$work/no-interpreter"
expect_gone 'sleep 7031'
printf 'no checkpoint\n' >"$work/state"
try run -n 2 --restore "$work/state" "$real" : -n 1 "$other"
expect_status 2
expect_one_sentence

# Ranks are numbered through; each program has its own arguments.
try run --label -n 1 echo a b : -n 2 echo 'c d' : --ranks=1 -- echo -n e
expect_status 0
sort "$out" >"$work/sorted"
printf '[0] a b\n[1] c d\n[2] c d\n[3] e\n' | cmp -s - "$work/sorted" || fail 'other output'
try run -n 1 sh -c 'echo $SOJOURN_RANK' : -n 3 sh -c 'echo $SOJOURN_RANK'
[ "$(sort "$out" | tr '\n' ' ')" = '0 1 2 3 ' ] || fail 'ranks are not numbered through'

try run --dry-run -n 1 --share off sh -c 'exit 3' : -n 3 hostname --short
expect_status 0
expect_no_err
expect_out '^ranks:       4$'
expect_out '^program:     .*/sh, rank 0$'
expect_out "^command:     sh -c 'exit 3'\$"
expect_out '^program:     .*/hostname, ranks 1 to 3$'
expect_out '^command:     hostname --short$'
expect_out 'heap:        reached by messages'

# Programs of the runtime, of two kinds and of three, in any order.
for share in on off; do
  try run --share $share -n 2 --stats --stats-json "$work/stats" "$real" : -n 1 "$other"
  expect_status 0
  expect_err '^ranks 0 to 1: .*real_rank$'
  expect_err '^rank 2: .*other_rank$'
  tr -d ' \n' <"$work/stats" >"$work/flat"
  grep -q '"programs":\[{"first_rank":0,"ranks":2,"program":"[^"]*real_rank","command":\["[^"]*"\]},{"first_rank":2,"ranks":1,' \
    "$work/flat" || fail 'the programs are not told'
  try run --share $share -n 1 "$other" : -n 2 "$real" : -n 1 "$other" well
  expect_status 0
  expect_no_err
done

# What only Sojourn's ranks find out: programs without the colon are one program.
try run -n 2 sh -c 'if [ $SOJOURN_RANK = 0 ]; then exec "$0"; else exec "$1"; fi' "$real" "$other"
expect_status 2
expect_err 'ranks 0 and 1 run different programs or libraries'
expect_err 'sojourn run -n 1 ./a : -n 1 ./b'
# Nor may ranks lay out their memory in different ways.
for setting in SOJOURN_STACK_KIB=512 SOJOURN_MAIN_STACK_KIB=16384 SOJOURN_REGION_GIB=5000; do
  try run -n 2 sh -c 'if [ $SOJOURN_RANK = 0 ]; then exec "$0"; else exec env '$setting' "$0"; fi' "$real"
  expect_status 2
  expect_err "rank 0 has ${setting%=*}=[0-9]* and rank 1 has ${setting#*=}: start all ranks of a job with the same"
done
# A wrapper may stand before each.
try run -n 1 sh -c 'exec "$0"' "$real" : -n 1 env "$other"
expect_status 0
expect_no_err
# A name that is exported twice: one sentence.
try run -n 1 "$real" : -n 1 "$other" twice
expect_status 2
expect_err '"other.same" is exported twice, as void(int) and as void(long)'

# A rank's death names its program, and its functions.
if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
  try run -n 2 "$real" : -n 1 "$other" segv
  expect_status 139
  expect_faster_than_ms 1500
  expect_err "rank 2 (pid [0-9]*, $other) was killed by SIGSEGV"
  expect_err '#0  0x[0-9a-f]*  others::by_segmentation_fault() at [^ ]*other_rank.cpp:[0-9]*$'
  expect_err "to run it again: .*sojourn run -n 2 $real : -n 1 $other segv\$"
  expect_gone "$other segv"
  try run -n 1 "$other" : -n 2 "$real" segv
  expect_status 139
  expect_err "rank 2 (pid [0-9]*, $real) was killed by SIGSEGV"
  expect_err '  ends::by_segmentation_fault() at [^ ]*real_rank.cpp:[0-9]*$'
fi
try run -n 1 "$other" : -n 1 "$real" status
expect_status 3
expect_err "rank 1 (pid [0-9]*, $real) exited with status 3"

# A hang names each rank's program and functions.
try run --report "$work/report" -n 1 "$real" : -n 1 "$other" hang
expect_status 1
expect_err "rank 0 (pid [0-9]*, $real) waits, with 1 fiber"
expect_err "rank 1 (pid [0-9]*, $other) waits, with 1 fiber"
expect_err 'others::waits_for_ever'
grep -q "\"program\": \"$other\"" "$work/report" || fail 'the report does not tell the programs'

try run --help
expect_out 'sojourn run -n 1 ./master : -n 3 ./worker'
