# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# crash.sh SOJOURN PROGRAM SOURCE [RANKS...]: the program ends as its source says, at 1, 2 and 4 ranks or at
# those, with the heap shared and by messages. Lines of the source:
#   //! status 139          the job's exit status
#   //! says TEXT           a whole line of the report, as a basic regular expression
#   //! several: says TEXT  the same, of jobs of several ranks only
#   //! never says TEXT    no line of the report
# In TEXT, LAST is the last rank, N their number, and LINE the source's line that ends in "// here".
. "$(dirname "$0")/../../launcher/lib.sh"
ulimit -c 0
program=$2
source=$3
shift 3
[ $# -gt 0 ] || set -- 1 2 4
line=$(grep -n '// here$' "$source" | head -n 1 | cut -d: -f1)
wanted_status=$(sed -n 's|^//! status ||p' "$source")
lines=$(nm "$program" >/dev/null 2>&1 && "$sojourn" doctor | grep -q '^ok  *libdw' && echo 1 || echo 0)

sed -n 's|^//! never says ||p' "$source" >"$work/unwanted"

for ranks; do
  sed -n -e 's|^//! says ||p' "$source" >"$work/wanted"
  [ $ranks -eq 1 ] || sed -n 's|^//! several: says ||p' "$source" >>"$work/wanted"
  sed -i -e "s/LAST/$((ranks - 1))/g" -e "s/\<N\>/$ranks/g" -e "s|LINE|$line|g" "$work/wanted"
  # Without libdw there are no lines and no inlined functions.
  [ "$lines" = 1 ] || sed -i -e '/ at .*:[0-9]*\( (inlined)\)*$/d' "$work/wanted"
  for share in on off; do
    before=$(shared_names)
    try run -n $ranks --share $share "$program"
    expect_status "$wanted_status"
    expect_faster_than_ms 2000
    while IFS= read -r text; do
      grep -q -x -e "$text" "$err" || fail "the report lacks the line: $text (ranks: $ranks, share: $share)"
    done <"$work/wanted"
    while IFS= read -r text; do
      ! grep -q -x -e "$text" "$err" || fail "the report has a line like: $text (ranks: $ranks, share: $share)"
    done <"$work/unwanted"
    again="on host $(uname -n); to run it again: .*sojourn run -n $ranks $([ $share = on ] || echo '--share off ')$program"
    expect_err "$again"
    expect_gone "^$program"
    expect_no_names_but "$before"
  done
done
