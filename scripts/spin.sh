#!/bin/sh
# Runs the model for Spin, internal/model/redlatch.pml: the design, which must
# hold in every state there is, and its siblings, each of which must be found
# broken and leaves its trail in build/spin.
set -eu
cd "$(dirname "$0")/.."

for tool in spin gcc; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "there is no $tool here: install it, on Debian by apt-get install -y --no-install-recommends spin gcc libc6-dev" >&2
    exit 1
  }
done

out=build/spin
rm -rf "$out"
mkdir -p "$out"
wrong=0
printf '%9s %7s %8s %7s  %s\n' states depth 'MB' seconds 'instance, for Spin'

# search NAME WANT FLAGS...: WANT is holds or broken.
search() {
  name=$1 want=$2
  shift 2
  dir=$out/$(echo "$name" | tr ' ,' '__')
  mkdir -p "$dir"
  cp internal/model/redlatch.pml "$dir"
  [ ! -t 2 ] || printf '\r\033[K%s' "$name" >&2
  (cd "$dir" && spin "$@" -a redlatch.pml && gcc -w -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000 >pan.out 2>&1) || true
  [ ! -t 2 ] || printf '\r\033[K' >&2
  verdict=holds
  [ ! -e "$dir/redlatch.pml.trail" ] || verdict=broken
  # A search that was cut short has shown nothing.
  if ! grep -q 'errors: [01]' "$dir/pan.out" || grep -q 'Search not completed' "$dir/pan.out" && [ "$want" = holds ]; then
    verdict='not searched to its end'
  fi
  awk -v name="$name" -v verdict="$verdict" '
    /states, stored/ {states = $1}
    /depth reached/ {depth = $0; sub(/.*depth reached /, "", depth); sub(/,.*/, "", depth)}
    /total actual memory/ {mem = $1}
    /elapsed time/ {took = $4}
    END {printf "%9d %7d %8.0f %7s  %s: %s\n", states, depth, mem, took, name, verdict}' "$dir/pan.out"
  [ "$verdict" = "$want" ] || { echo "WRONG: it should be: $want; see $dir/pan.out" >&2; wrong=1; }
}

search 'the design, with a restart' holds
search 'the design, with an extension' holds -DTTL=3 -DEXTENSIONS=1 -DRESTARTS=0 -DRIGHT_CLOCKS
search 'the design, with an extension and a restart' holds -DTTL=3 -DEXTENSIONS=1 -DRIGHT_CLOCKS
search 'a quorum of N/2' broken -DHALF_QUORUM
search 'validity from the reply' broken -DVALIDITY_FROM_REPLY
search 'no drift' broken -DNO_DRIFT
search 'no fence' broken -DNO_FENCE
search 'believed at once' broken -DBELIEVED_AT_ONCE
search 'quarantine of a TTL' broken -DQUARANTINE_TTL
search 'retention of a TTL' broken -DRETENTION_TTL
search 'extension by one node' broken -DEXTEND_BY_ONE -DTTL=3 -DEXTENSIONS=1 -DRIGHT_CLOCKS
exit "$wrong"
