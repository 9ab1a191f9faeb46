#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into a prefix, moves the tree, and looks at what is there: the public headers and no
# others, every program, and no file that tells where it was built or first installed.
# Usage: prefix.sh CMAKE BUILD-FOLDER SOURCES PREFIX
set -eu
cmake=$1
build=$2
sources=$3
prefix=$4

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

rm -rf "$prefix" "$prefix.first"
"$cmake" --install "$build" --prefix "$prefix.first" >/dev/null
mv "$prefix.first" "$prefix"

(cd "$sources/include" && find . -type f | sort) >"$prefix/expected"
(cd "$prefix/include" && find . -type f | sort) | diff -u "$prefix/expected" - ||
  fail 'the installed headers are not those of include/'
rm "$prefix/expected"

for file in bin/sojourn libexec/sojourn/sojourn share/man/man1/sojourn.1 \
  share/doc/sojourn/LICENSE share/doc/sojourn/docs/getting_started.md \
  share/doc/sojourn/docs/examples/account.cpp share/sojourn/parmacs.m4 share/sojourn/cc.conf; do
  [ -e "$prefix/$file" ] || fail "$file is not installed"
done

# Binaries name their sources for the debugger; what is text must work anywhere.
if grep -rIlF -e "$build" -e "$sources" -e "$prefix" "$prefix"; then
  fail 'these files hold a path of this build'
fi
for command in $("$prefix/bin/sojourn" --help | sed -n 's/^  sojourn \([a-z]*\) .*/\1/p' | sort -u); do
  grep -q "^\.B sojourn $command" "$prefix/share/man/man1/sojourn.1" ||
    fail "the man page lacks 'sojourn $command'"
done
