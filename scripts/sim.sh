#!/bin/sh
# Runs simulated histories, as many at once as there are processors, each range
# of seeds in a process of its own: goroutines of two histories in one process
# would slow each other down.
#
#   scripts/sim.sh [FROM:COUNT]     1:1000000 if none are given
set -eu

seeds=${1:-1:1000000}
case $seeds in
  *[!0-9:]* | *:*:* | :* | *:) echo "SEEDS is $seeds: it must be FROM:COUNT, as in 1:1000000" >&2; exit 64 ;;
  *:*) ;;
  *) echo "SEEDS is $seeds: it must be FROM:COUNT, as in 1:1000000" >&2; exit 64 ;;
esac
from=${seeds%:*} count=${seeds#*:}
rows=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
[ "$count" -ge "$rows" ] || rows=1

dir=$(mktemp -d)
pids=""
trap 'kill $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
${GO:-go} test -c -o "$dir/sim.test" ./internal/test/sim

each=$((count / rows)) row=0
while [ "$row" -lt "$rows" ]; do
  n=$each
  [ "$row" -lt $((rows - 1)) ] || n=$((count - each * row))
  # Little is alive at any time, so frequent collection is not needed.
  (cd "$dir" && REDLATCH_SEEDS="$((from + each * row)):$n" GOMAXPROCS=1 GOGC=800 exec ./sim.test \
    -test.run '^TestNoHistoryBreaksAPromise$' -test.v -test.timeout 24h >"$dir/$row.log" 2>"$dir/$row.err") &
  pids="$pids $!"
  row=$((row + 1))
done

# Prints now and then how far the slowest is.
while :; do
  sleep 5
  alive=0
  for p in $pids; do kill -0 "$p" 2>/dev/null && alive=1; done
  [ "$alive" = 1 ] || break
  if [ -t 2 ]; then
    printf '\r%s' "$(tail -q -n 1 "$dir"/*.err 2>/dev/null | tr '\n' ';' | cut -c1-110)" >&2
  fi
done
[ ! -t 2 ] || echo >&2

failed=0
for p in $pids; do wait "$p" || failed=1; done
cat "$dir"/*.log | grep -v '^=== ' || true
[ "$failed" = 0 ] || { echo "a promise was broken: see above" >&2; exit 1; }
echo "seeds $from to $((from + count - 1)): no promise was broken"
