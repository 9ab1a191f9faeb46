#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM [ARGUMENTS…]: runs it without address randomisation where the system lets us.
export TSAN_OPTIONS="halt_on_error=1 exitcode=66"
if setarch "$(uname -m)" -R true 2>/dev/null; then
  exec setarch "$(uname -m)" -R "$@"
fi
exec "$@"
