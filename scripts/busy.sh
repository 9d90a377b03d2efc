#!/usr/bin/env bash
# Runs a command beside N busy loops, each of which keeps one processor busy, and
# ends them with it:
#
#   scripts/busy.sh 4 make test
#
# Exits as the command does. At the end it prints how long the command ran and
# the highest load average seen, on standard error.
set -euo pipefail

usage() {
	echo "usage: scripts/busy.sh N COMMAND [ARG...]   N: busy loops, from 0 to 64" >&2
	exit 64
}
[[ $# -ge 2 && $1 =~ ^[0-9]{1,2}$ ]] || usage
n=$((10#$1))
((n <= 64)) || usage
shift

loops=()
peak=$(mktemp)
end() {
	((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true
	rm -f "$peak"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for ((i = 0; i < n; i++)); do
	(while :; do :; done) &
	loops+=($!)
done
# The load is sampled: only its highest value is printed.
(
	most=0
	while :; do
		read -r load _ </proc/loadavg || load=0
		most=$(awk -v a="$load" -v b="$most" 'BEGIN { print (a > b) ? a : b }')
		echo "$most" >"$peak"
		sleep 2
	done
) 2>/dev/null &
loops+=($!)

begin=$SECONDS
code=0
"$@" || code=$?
echo "busy.sh: $n busy loops, exit $code after $((SECONDS - begin)) s, load up to $(cat "$peak" 2>/dev/null || echo unknown)" >&2
exit "$code"
