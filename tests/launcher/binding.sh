# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Which cores ranks get, and what they inherit.
. "$(dirname "$0")/lib.sh"

own_list=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
cores=$(nproc)
show='sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status'

# As many ranks as cores: each one has a core of its own.
try run -n "$cores" sh -c "$show"
expect_status 0
if ! "$sojourn" run -n "$cores" --dry-run true | grep -q 'binding: *none'; then
  [ "$(sort -u "$out" | wc -l)" -eq "$cores" ] || fail 'two ranks share a core'
  if grep -q '[-,]' "$out"; then fail 'a rank has more than one core'; fi
  try run -n "$cores" "$fake" join finish job
  expect_out "^rank=0 ranks=$cores share=1 cores=$cores bound=1$"
fi

# More ranks than cores, or as asked: not bound.
more=$((cores + 1))
try run -n $more sh -c "$show"
expect_status 0
expect_no_err
[ "$(sort -u "$out")" = "$own_list" ] || fail 'ranks without cores enough are bound'
try run -n $more "$fake" join finish job
expect_out "^rank=0 ranks=$more share=1 cores=[0-9]* bound=0$"
try run -n $more --bind sh -c "$show"
expect_status 0
expect_err 'ranks are not bound'
[ "$(sort -u "$out")" = "$own_list" ] || fail 'ranks without cores enough are bound by --bind'
try run -n 1 --no-bind sh -c "$show"
expect_status 0
expect_no_err
[ "$(cat "$out")" = "$own_list" ] || fail '--no-bind binds'

# Fewer cores allowed from outside.
first=${own_list%%[-,]*}
if command -v taskset >/dev/null; then
  taskset -c "$first" "$sojourn" run sh -c "$show" >"$out" 2>"$err"
  [ "$(cat "$out")" = "$first" ] || fail 'the default number of ranks is not that of allowed cores'
fi

# The environment: the job's variables, those of an enclosing job replaced, the rest kept.
SOJOURN_RANK=9 SOJOURN_JOB_FDS=77,78 KEPT='a value' "$sojourn" run -n 2 --share off \
  sh -c 'echo "$SOJOURN_RANK $SOJOURN_SHARE $KEPT"; env | grep -c "^SOJOURN_RANK="' >"$out" 2>"$err"
expect_out '^0 off a value$'
expect_out '^1 off a value$'
[ "$(grep -c -x 1 "$out")" -eq 2 ] || fail 'SOJOURN_RANK is there twice'
SOJOURN_SHARE=off "$sojourn" run -n 1 "$fake" join finish job >"$out" 2>"$err"
expect_out 'share=0'
SOJOURN_SHARE=off "$sojourn" run -n 1 --share on "$fake" join finish job >"$out" 2>"$err"
expect_out 'share=1'

# Ranks inherit three standard descriptors and the job's three, nothing else of the launcher's.
try run -n 2 sh -c 'ls /proc/self/fd | wc -l; echo $SOJOURN_JOB_FDS >&2'
expect_status 0
inherited=$("$sojourn" run -n 1 --share on sh -c 'exec ls /proc/self/fd' | wc -l)
plain=$(ls /proc/self/fd | wc -l)
[ "$inherited" -eq $((plain + 3)) ] || fail "a rank has $inherited descriptors, not $plain and 3"
# And the signals that a program starts with.
state='grep "^Sig[BIC]" /proc/self/status'
sh -c "$state" >"$work/plain"
"$sojourn" run -n 1 sh -c "$state" >"$out" 2>"$err"
cmp "$work/plain" "$out" || fail 'signal mask or dispositions differ'

# Found along PATH, as a shell would.
mkdir "$work/bin"
printf '#!/bin/sh\necho "found as $0"\n' >"$work/bin/only-here"
chmod +x "$work/bin/only-here"
PATH="/nonexistent:$work/bin:$PATH" "$sojourn" run -n 1 only-here >"$out" 2>"$err"
expect_out "found as $work/bin/only-here"

# Many ranks: all start, all end, none is lost.
try run -n 200 sh -c 'echo $SOJOURN_RANK'
expect_status 0
[ "$(sort -n "$out" | tr '\n' ' ')" = "$(seq 0 199 | tr '\n' ' ')" ] || fail 'ranks are missing'
