# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# `sojourn doctor` finds what is there and what is not, under every limit, as every user; and jobs
# under the same limits work, or say in one sentence why not.
. "$(dirname "$0")/lib.sh"
ulimit -c 0
real=$3
refuse_calls=$4
cmake=$5
unset SOJOURN_REGION_GIB SOJOURN_STACK_KIB SOJOURN_MAIN_STACK_KIB SOJOURN_VIA

# Copies that any user may execute, whose names are in no other process.
chmod 755 "$work"
cp "$sojourn" "$work/sojourn"
cp "$real" "$work/real"
sojourn=$work/sojourn

# limited LIMITS COMMAND...: the command under `ulimit LIMITS`, in a fresh shell.
limited() {
  limits=$1
  shift
  started=$(now_ms)
  status=0
  # shellcheck disable=SC2086
  sh -c 'ulimit $0 || exit 99; exec "$@"' "$limits" "$@" >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
  [ "$status" -ne 99 ] || fail "ulimit $limits is refused"
}
# The same for a user without rights; ulimit comes after the change of user, who is counted anew.
limited_stranger() {
  limits=$1
  shift
  started=$(now_ms)
  status=0
  setpriv --reuid=65534 --regid=65534 --clear-groups \
    bash -c 'ulimit $0 || exit 99; exec "$@"' "$limits" "$@" >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
}

expect_line() { grep -q "^$1 *$2  *$3" "$out" || fail "there is no line: $1 $2 $3"; }
# A warning or failure is followed by its remedy, and nothing else is.
expect_remedies() {
  awk '/^(warning|failure) / { if (wants) exit 1; wants = 1; next }
       /^ +remedy: ./ { if (!wants) exit 1; wants = 0; next }
       { if (wants) exit 1 }' "$out" || fail 'a remedy is missing or out of place'
}
expect_counts() {
  grep -q "^$(grep -c '^failure ' "$out") failures\{0,1\}, $(grep -c '^warning ' "$out") warning" \
    "$out" || fail 'the last line counts wrongly'
}
doctor_is_whole() {
  expect_no_err
  expect_remedies
  expect_counts
  expect_faster_than_ms 30000
  [ "$(grep -c '^[a-z]* *job of two ranks  ' "$out")" -eq 1 ] || fail 'the job is missing'
  until_true 2000 not alive "$work/sojourn" || fail 'the doctor has left processes behind'
}

# Here, all that a job needs is there: the other tests need it too.
try doctor
doctor_is_whole
expect_status 0
expect_line ok 'address range' '0x200000000000 to'
expect_line ok 'worker thread' 'runs'
expect_line ok 'futex' ''
expect_line ok 'death signal' ''
expect_line ok 'job of two ranks' 'started, called, migrated'

# JSON says the same, and is JSON.
cp "$out" "$work/text"
try doctor --json
expect_status 0
expect_no_err
cat >"$work/check.cmake" <<'END'
file(READ "${FILE}" json)
string(JSON count LENGTH "${json}" checks)
math(EXPR last "${count} - 1")
set(seen_failure 0)
set(seen_warning 0)
set(seen_ok 0)
foreach(i RANGE ${last})
  foreach(key check status found remedy)
    string(JSON ${key} GET "${json}" checks ${i} ${key})
  endforeach()
  math(EXPR seen_${status} "${seen_${status}} + 1")
  if((status STREQUAL "ok") EQUAL (remedy STREQUAL "") AND check AND found)
  else()
    message(FATAL_ERROR "check ${i} (${check}) is ${status} with remedy '${remedy}'")
  endif()
  message("${status} ${check}")
endforeach()
string(JSON failures GET "${json}" failures)
string(JSON warnings GET "${json}" warnings)
string(JSON version GET "${json}" version)
if(NOT failures EQUAL seen_failure OR NOT warnings EQUAL seen_warning)
  message(FATAL_ERROR "${seen_failure} failures are counted as ${failures}")
endif()
END
"$cmake" -DFILE="$out" -P "$work/check.cmake" 2>"$work/names" || fail "$(cat "$work/names")"
sed -n 's/^\(ok\|warning\|failure\)  *\(.\{23\}\) .*/\1 \2/p' "$work/text" | sed 's/ *$//' >"$work/names.text"
cmp -s "$work/names" "$work/names.text" || fail 'JSON and text name different checks'

# Bad options.
for words in '--walk' 'walk' '--json --fast' '-x'; do
  # shellcheck disable=SC2086
  try doctor $words
  expect_status 2
  expect_one_sentence
  expect_err "no option '.*'; 'sojourn doctor --help' lists them"
done
try doctor --help
expect_status 0
expect_out '--json'

# A setting that is wrong is a failure with its sentence.
status=0
SOJOURN_REGION_GIB=many "$sojourn" doctor >"$out" 2>"$err" || status=$?
doctor_is_whole
expect_status 1
expect_line failure 'address range' 'SOJOURN_REGION_GIB=many is not'

# Limits. Each: the doctor has the line; a job works, or says why not and leaves nothing.
job_works() {
  expect_status 0
  expect_no_err
  [ "$(grep -c '^rank [01] of 2' "$out")" -eq 2 ] || fail 'ranks are missing'
}
job_says() {
  expect_status 2
  [ "$(grep -c '`sojourn doctor`' "$err")" -eq 1 ] || fail 'not one sentence names sojourn doctor'
  expect_err "$1"
  expect_faster_than_ms 5000
  expect_gone "$work/real"
}

limited '-s unlimited' "$sojourn" doctor
doctor_is_whole
expect_status 0
expect_line ok 'limit on stack' unlimited
limited '-s unlimited' "$sojourn" run -n 2 "$work/real"
job_works

limited '-n 64' "$sojourn" doctor
doctor_is_whole
expect_status 0
limited '-n 64' "$sojourn" run -n 2 "$work/real"
job_works
limited '-n 64' "$sojourn" run -n 40 "$work/real"
job_says "raise it with 'ulimit -n [0-9]*'"
limited '-n 20' "$sojourn" doctor
doctor_is_whole
expect_status 1
expect_line failure 'limit on open files' '20, enough for 0 ranks'

# A sanitizer needs address space and files of its own, and takes the signals.
if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
  for kib in 200000 1000000; do
    limited "-v $kib" "$sojourn" doctor
    doctor_is_whole
    expect_status 1
    expect_line failure 'address range' 'the address space of this process is limited to'
    expect_out 'remedy: run `ulimit -v unlimited`; even the smallest region does not fit'
    limited "-v $kib" "$sojourn" run -n 2 "$work/real"
    job_says 'ulimit -v unlimited'
  done

  # The region that the doctor says would fit does.
  limited '-v 8000000' "$sojourn" doctor
  expect_status 1
  gib=$(sed -n 's/.*set SOJOURN_REGION_GIB=\([0-9]*\), which fits$/\1/p' "$out")
  [ -n "$gib" ] || fail 'no region is proposed'
  export SOJOURN_REGION_GIB="$gib"
  limited '-v 8000000' "$sojourn" doctor
  doctor_is_whole
  expect_status 0
  limited '-v 8000000' "$sojourn" run -n 2 "$work/real"
  job_works
  unset SOJOURN_REGION_GIB

  limited '-d 100000' "$sojourn" doctor
  doctor_is_whole
  expect_status 1
  expect_line failure 'memory of a rank' ''
  expect_line failure 'limit on data' '97 MiB'
  for share in on off; do
    limited '-d 100000' "$sojourn" run -n 2 --share $share "$work/real"
    job_says 'ulimit -d'
  done

  limited '-f 1000' "$sojourn" doctor
  doctor_is_whole
  expect_status 1
  expect_line failure 'limit on file size' '[0-9]* KiB'
  limited '-f 1000' "$sojourn" run -n 2 "$work/real"
  job_says 'ulimit -f'
  limited '-f 100000' "$sojourn" run -n 2 --share off "$work/real"
  job_says 'ulimit -f'
fi

# As a user without rights, where this test may become one.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && command -v bash >/dev/null; then
  limited_stranger '-n 64' "$sojourn" doctor
  doctor_is_whole
  expect_status 0
  limited_stranger '-u 10' "$sojourn" run -n 2 "$work/real"
  job_works
  limited_stranger '-u 10' "$sojourn" run -n 16 "$work/real"
  job_says 'ulimit -u'
  limited_stranger '-u 1' "$sojourn" doctor
  doctor_is_whole
  expect_status 1
  expect_line failure 'limit on processes' '1 for this user'
  expect_line warning 'futex' 'not tried: fork'
  expect_line failure 'job of two ranks' ''
fi

# A container that refuses some calls, or kills for them.
filtered() {
  how=$1
  call=$2
  started=$(now_ms)
  status=0
  "$refuse_calls" "$how" "$call" -- "$sojourn" doctor >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
}
filtered fail membarrier
if [ "$status" -ne 77 ]; then
  doctor_is_whole
  expect_status 0
  expect_line warning membarrier 'membarrier: Operation not permitted'
  expect_line ok restrictions '.*a seccomp filter'
  expect_line ok 'job of two ranks' ''

  filtered fail process_vm_readv
  doctor_is_whole
  expect_status 0
  expect_line warning 'put and get' 'process_vm_readv: Operation not permitted'

  filtered fail memfd_create
  doctor_is_whole
  expect_status 1
  expect_line failure 'shared memory' 'shared memory cannot be made (memfd_create): Operation not'
  expect_line failure 'job of two ranks' 'shared memory cannot be made'

  filtered fail signalfd4
  doctor_is_whole
  expect_status 1
  expect_line failure signalfd 'signalfd: Operation not permitted'

  filtered fail ptrace
  doctor_is_whole
  expect_status 0
  expect_line warning debugger 'ptrace: Operation not permitted'

  filtered fail sched_setaffinity
  doctor_is_whole
  expect_line warning binding 'sched_setaffinity: Operation not permitted'

  if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
    filtered fail prctl
    doctor_is_whole
    expect_status 1
    expect_line failure 'death signal' 'a process whose parent has died lives on'

    filtered kill membarrier
    doctor_is_whole
    expect_status 1
    expect_line warning membarrier 'the process that tried it was killed: Bad system call'
  fi
fi
