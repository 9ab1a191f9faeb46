# SPDX-License-Identifier: Apache-2.0
#
# Checks one document, or lists what it asks for; see check_documents.sh. Variables:
#   examples  the folder of the example programs
#   mode      "check", or "outputs" or "reports": print a line "FILE:LINE<tab>MARKER" for each marked output
#
# A code block stands directly behind a comment that says what it is:
#   <!-- example: FILE -->   these lines stand in examples/FILE, as they are
#   <!-- refused: FILE -->   the same, in examples/refused/FILE
#   <!-- program: NAME -->   a whole program, taken from the document and compiled by the tests
#   <!-- output: … -->       what a program prints; run_outputs.sh compares
#   <!-- report: … -->       what `sojourn run` says of a job that hangs; run_outputs.sh compares
#   <!-- warning: NAME -->   what a program prints, with addresses and paths that differ
# Every block of C++ or CMake has one of the first three.

function fail(text) {
  print FILENAME ":" FNR ": " text > "/dev/stderr"
  failures++
}

function contents(file,   line, text) {
  if (file in cache) return cache[file]
  text = "\n"
  while ((getline line < file) > 0) text = text line "\n"
  close(file)
  if (text == "\n") fail("there is no example " file)
  return cache[file] = text
}

function check_block(   file) {
  if (kind == "example" || kind == "refused") {
    file = examples "/" (kind == "refused" ? "refused/" : "") subject
    if (index(contents(file), "\n" block) == 0) fail("this block does not stand in " file " as it is")
  } else if (kind == "" && (language == "cpp" || language == "cmake")) {
    fail("this " language " block has no <!-- example: FILE --> before it, so nothing compiles it")
  }
}

function slug(heading) {
  heading = tolower(heading)
  gsub(/[^a-z0-9 _-]/, "", heading)
  gsub(/ /, "-", heading)
  return heading
}

function folder_of(file) { return file ~ /\// ? substr(file, 1, match(file, /\/[^\/]*$/) - 1) : "." }

# Each [text](target) of a line: a file that is there, and a heading in it when it names one.
function check_links(line,   target, file, anchor, text, found) {
  while (match(line, /\]\([^)]*\)/)) {
    target = substr(line, RSTART + 2, RLENGTH - 3)
    line = substr(line, RSTART + RLENGTH)
    if (target ~ /^[a-z]+:/) continue
    anchor = ""
    if (index(target, "#") > 0) {
      anchor = substr(target, index(target, "#") + 1)
      target = substr(target, 1, index(target, "#") - 1)
    }
    file = target == "" ? FILENAME : folder_of(FILENAME) "/" target
    if (system("test -e '" file "'") != 0) { fail("the link to " target " leads nowhere"); continue }
    if (anchor == "") continue
    found = 0
    while ((getline text < file) > 0) if (text ~ /^#+ / && slug(substr(text, index(text, " ") + 1)) == anchor) found = 1
    close(file)
    if (!found) fail("there is no heading #" anchor " in " file)
  }
}

/^```/ {
  if (!inside) {
    inside = 1
    language = substr($0, 4)
    block = ""
  } else {
    inside = 0
    if (mode == "check") check_block()
    kind = ""
  }
  next
}
inside { block = block $0 "\n"; next }

/^<!-- (example|refused|program|output|report|warning): .* -->$/ {
  if (kind != "") fail("a code block was expected behind the last comment")
  kind = substr($2, 1, length($2) - 1)
  subject = $0
  sub(/^<!-- [a-z]+: /, "", subject)
  sub(/ -->$/, "", subject)
  if (mode kind == "outputsoutput" || mode kind == "reportsreport") print FILENAME ":" FNR "\t" subject
  next
}
/^<!--/ { fail("a comment that these checks do not know: " $0) }

{
  if (kind != "" && $0 != "") fail("a code block was expected behind the comment before this line")
  if (mode == "check") check_links($0)
}

END {
  if (inside) fail("a code block is not closed")
  exit failures > 0
}
