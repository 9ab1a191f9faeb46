# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# How programs die, and what is said then: the reason, the rank and an exit status that tells.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
sanitized=$3

# A core holds what is used: not the terabytes that are only mapped.
for share in on off; do
  for ranks in 1 2; do
    try run -n $ranks --share $share "$program" cores
    expect_status 0
  done
done
# And a real one, where those who start the test allow cores and the system writes them to files
# here. Blocks of 512 bytes: at most a GiB, should it hold more after all.
if [ "$sanitized" = 0 ] && grep -q '^core[^/|]*$' /proc/sys/kernel/core_pattern &&
  (ulimit -c 2000000) 2>/dev/null; then
  status=0
  (ulimit -c 2000000 && cd "$work" && "$sojourn" run -n 2 "$program" abort) >"$out" 2>"$err" || status=$?
  expect_status 134
  expect_err 'rank 1 .* was killed by SIGABRT (aborted), core dumped'
  core=$(ls "$work"/core*)
  [ "$(du -k "$core" | cut -f 1)" -lt 65536 ] || fail "the core has $(du -k "$core" | cut -f 1) KiB"
  if command -v gdb >/dev/null; then
    gdb -batch -ex backtrace "$program" "$core" >"$work/gdb" 2>&1
    # By clang's debug information gdb writes the name with its parentheses: aborts() ().
    grep -q '^#[0-9]* .* deaths::aborts\(()\)\{0,1\} ()' "$work/gdb" || fail "gdb says: $(tail -n 20 "$work/gdb")"
  fi
  rm -f "$core"
fi
ulimit -c 0

# dies RANKS HOW STATUS TEXT...: one rank has its heap shared, several have not.
dies() {
  share=on
  [ "$1" -eq 1 ] || share=off
  try run -n "$1" --share $share "$program" "$2"
  expect_status "$3"
  expect_faster_than_ms 3000
  shift 3
  for text; do
    expect_err "$text"
  done
}

for ranks in 1 2; do
  last="rank $((ranks - 1)) "
  try run -n $ranks "$program" well
  expect_status 0
  expect_no_err

  fiber='stack overflow: the stack of a fiber, [0-9]* KiB, is full; use less of it (recursion, large local arrays), or run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)'
  if [ "$sanitized" = 0 ]; then
    dies $ranks recursion 139 "$fiber" "$last.*SIGSEGV" 'deaths::recursion<64>(int)'
    dies $ranks frames_16k 139 "$fiber" "$last.*SIGSEGV" 'deaths::recursion<16384>(int)'
    dies $ranks one_large_frame 139 "$fiber" 'deaths::one_large_frame(unsigned long)'
    dies $ranks recursion_elsewhere 139 "$fiber" "$last.*SIGSEGV"
    dies $ranks recursion_main 139 'stack overflow: the stack of a main fiber, [0-9]* KiB, is full; use less of it (recursion, large local arrays), or run with a larger one: --stack-main SIZE (SOJOURN_MAIN_STACK_KIB)$' 'rank 0 '
    dies $ranks terminate 134 "$last.*SIGABRT" 'std::terminate was called$'
    dies $ranks noexcept 134 "$last.*SIGABRT" \
      'an exception of type std::logic_error is not caught: out of a noexcept function$'
    dies $ranks abort 134 "$last.*SIGABRT"
    dies $ranks rpc_ff 134 "$last.*SIGABRT" \
      'an exception left a one-way call (rpc_ff) outside of any finish: std::runtime_error: nobody waits$'
    dies $ranks rpc_ff_int 134 'an exception left a one-way call (rpc_ff) outside of any finish: int$'
  fi
  dies $ranks throw 134 'an exception of type std::runtime_error is not caught: thrown on purpose$' \
    'rank 0 .*SIGABRT'
  dies $ranks throw_int 134 'an exception of type int is not caught$' 'rank 0 .*SIGABRT'
  dies $ranks exit 9 "$last.*exited with status 9"
  dies $ranks status 7 'rank 0 .*exited with status 7'
done
if [ "$sanitized" = 0 ]; then
  dies 2 stack_of_caller 139 'an access to a stack address that is not on this rank: a frame that migrated refers to one that stayed behind$'
  dies 2 heap_of_another 139 \
    'a plain access to the heap of rank 1, which is not shared: use a method, get or put$'
fi

# A larger stack takes what a small one does not.
if [ "$sanitized" = 0 ]; then
  status=0
  SOJOURN_STACK_KIB=8192 "$sojourn" run -n 2 "$program" one_large_frame >"$out" 2>"$err" || status=$?
  expect_status 1
  expect_err 'exited with status 1'
fi

# Bad settings are refused with one sentence, though several ranks read them.
refused() {
  for ranks in 1 3; do
    status=0
    env "$1=$2" "$sojourn" run -n $ranks "$program" well >"$out" 2>"$err" || status=$?
    [ "$status" -ne 0 ] || fail "$1=$2 is accepted"
    [ "$(grep -c -F "$1" "$err")" -eq 1 ] || fail "$1=$2 is not named once"
    expect_err "$3"
    expect_no_out
  done
}
for bad in nonsense node::child=fork a=rpc,=migrate 'a=rpc b=rpc=fork'; do
  refused SOJOURN_VIA "$bad" 'is neither name=WORD, where name is a method'
done
refused SOJOURN_BALANCE fair 'SOJOURN_BALANCE=fair is neither none, steal nor diffuse'
refused SOJOURN_SCAN maybe 'SOJOURN_SCAN=maybe is neither on nor off'
refused SOJOURN_STACK_KIB 100 'SOJOURN_STACK_KIB=100 is not a power of two'
refused SOJOURN_STACK_KIB tall 'SOJOURN_STACK_KIB=tall is not a whole number from 64 to 1048576'
expect_gone "$program"
