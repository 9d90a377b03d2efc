#!/usr/bin/env bash
# Runs go test by way of gotestsum: a line for each package, each failure when its
# test ends, and at the end what was skipped, what failed, and the counts.
#
#   scripts/test.sh [flags of go test] PACKAGES [-- [flags] PACKAGES]
#
# The packages after -- are run meanwhile, with flags of their own and at a lower
# priority: those whose tests compute, and have no clock to be late for.
#
# Exits with 1 if anything failed or no test passed. No test is run again, but for
# one that came too late to tell: package stall repeats it, and it is named here.
set -u

# Settings of the programs. By default the race detector has each of them sleep for
# a second before it exits. Memory is collected less often: there is enough of it.
export GORACE=${GORACE:-atexit_sleep_ms=10} GOGC=${GOGC:-300} GOMEMLIMIT=${GOMEMLIMIT:-3GiB}

# sum PRIORITY ARGUMENTS: gotestsum itself is compiled without GOFLAGS.
sum() {
  GOFLAGS='' nice -n "$1" go run -exec "env 'GOFLAGS=${GOFLAGS-}'" gotest.tools/gotestsum@v1.13.0 "${@:2}"
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
show=(--format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,failed,output)
hide=none first=() beside='' status=0
case " $* " in *" -short "*) hide=skipped ;; esac

while [ $# -gt 0 ] && [ "$1" != -- ]; do
  first+=("$1")
  shift
done
if [ $# -gt 1 ]; then
  sum 5 "${show[@]}" --jsonfile "$dir/beside" "$@" &
  beside=$!
fi
sum 0 "${show[@]}" --jsonfile "$dir/first" -- "${first[@]}" || status=1
[ -z "$beside" ] || wait "$beside" || status=1

late=$(sed -n 's/.*"Test":"\([^"]*\)","Output":" *\(.*too late to tell; running it again.*\)\\n".*/\1: \2/p' "$dir"/*)
[ -z "$late" ] || printf '\ncame too late to tell, and ran again:\n%s\n' "$late"
sum 0 --raw-command --format none --hide-summary "$hide" -- cat "$dir"/*
grep -q '"Action":"pass".*"Test":' "$dir"/* || { echo "no test passed" && status=1; }
exit "$status"
