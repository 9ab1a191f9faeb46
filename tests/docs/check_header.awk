# SPDX-License-Identifier: Apache-2.0
#
# Checks the example at the head of one public header; see check_documents.sh. It stands in a comment:
#   // What it shows (docs/examples/FILE.cpp):
#   //
#   //     its lines, which stand in that file, perhaps further indented
# Variable: needed  1 where the header must have an example

function fail(text) {
  print FILENAME ":" FNR ": " text > "/dev/stderr"
  failures++
}

# Whether lines[1..count] stand in the file, one behind the other and all indented alike.
function stands_in(file,   text, n, all, k, i, indent, wanted) {
  while ((getline text < file) > 0) all[++n] = text
  close(file)
  for (k = 1; k + count - 1 <= n; k++) {
    indent = all[k]
    sub(/[^ ].*$/, "", indent)
    for (i = 1; i <= count; i++) {
      wanted = lines[i] == "" ? "" : indent lines[i]
      if (all[k + i - 1] != wanted) break
    }
    if (i > count) return 1
  }
  return 0
}

function check_example() {
  while (count > 0 && lines[count] == "") count--
  if (count == 0) fail("an example was expected behind the line that names " example)
  else if (!stands_in(example)) fail("the example does not stand in " example " as it is")
  example = ""
}

example == "" && /^\/\/ .*\(docs\/examples\/[^)]*\):$/ {
  example = $0
  sub(/^.*\(/, "", example)
  sub(/\):$/, "", example)
  count = 0
  found = 1
  next
}
example != "" && /^\/\/$/ { if (count > 0) lines[++count] = ""; next }
example != "" && /^\/\/     / { lines[++count] = substr($0, 8); next }
example != "" { check_example() }

END {
  if (needed && !found) fail("a header that beginners meet has no example at its head")
  exit failures > 0
}
