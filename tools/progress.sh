#!/bin/sh
# Run a command, with a dot every two seconds and the seconds at its end: progress.sh WHAT COMMAND...
# The command stays in the foreground, so that Ctrl-C ends it.
printf '%s ' "$1"
shift
began=$(date +%s)
(while sleep 2; do printf '.'; done) &
dots=$!
trap 'kill "$dots" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$@"
status=$?
kill "$dots" 2>/dev/null
wait "$dots" 2>/dev/null
printf ' %s s\n' "$(($(date +%s) - began))"
exit "$status"
