#!/usr/bin/env bash
# How long the first lock takes on a machine that has never seen redlatch: every
# command of the way there, with its seconds. The caches of Go are empty folders.
# The module is built from a clean clone, which is what go install does with a
# published version after it has downloaded it.
#
#   packaging/quickstart.sh [ARCHIVE]
#
# ARCHIVE is that of a release for this machine; by default the one in build/dist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

archive=${1:-$(ls build/dist/redlatch_*_linux_"$(go env GOARCH)".tar.gz)}
archive=$(realpath "$archive")
from=$PWD

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
export HOME=$tmp/home GOENV=off GOPATH=$tmp/go GOCACHE=$tmp/cache GOMODCACHE=$tmp/mod GOBIN=$tmp/bin
export REDLATCH_NODES=local
mkdir -p "$HOME"
cd "$tmp"

all='' # seconds and processor seconds of the steps so far
TIMEFORMAT='%R %U %S'
# step WHAT COMMAND...: run it, and print a line of the table.
step() {
	local what=$1 took
	shift
	if ! { time "$@" >"$tmp/out" 2>&1; } 2>"$tmp/time"; then
		echo "quickstart.sh: $what failed:" >&2
		cat "$tmp/out" >&2
		exit 1
	fi
	took=$(cat "$tmp/time")
	all+="$took"$'\n'
	line "\`$what\`" "$took"
}
# line NAME TIMES prints the sum of several times.
line() { awk -v name="$1" '{wall += $1; cpu += $2 + $3} END {printf "| %s | %.2f s | %.2f s |\n", name, wall, cpu}' <<<"$2"; }
total() {
	line "**$1**" "${all%?}"
	all=''
}
# locked checks that the last command ran under the lock.
locked() { grep -qx ok "$tmp/out" || { echo "quickstart.sh: no lock: $(cat "$tmp/out")" >&2; exit 1; }; }

echo "$(go version), $(getconf _NPROCESSORS_ONLN) processors, load $(cut -d' ' -f1 /proc/loadavg) at the start"
echo
echo '| with Go, caches empty | time | of a processor |'
echo '|---|---|---|'
step 'git clone' git clone -q "$from" clone
cd clone
step 'go install ./cmd/redlatch' go install ./cmd/redlatch
step 'redlatch run hello -- echo ok' "$GOBIN/redlatch" run hello -- echo ok
locked
total 'to the first lock'
cd "$tmp"
echo
echo '| with the archive of a release | time | of a processor |'
echo '|---|---|---|'
cp "$archive" "$(dirname "$archive")/checksums.txt" .
step 'sha256sum --ignore-missing -c checksums.txt' sha256sum --ignore-missing -c checksums.txt
step 'tar -xzf redlatch_….tar.gz' tar -xzf "$(basename "$archive")"
step 'redlatch run hello -- echo ok' "$(basename "$archive" .tar.gz)/redlatch" run hello -- echo ok
locked
total 'to the first lock, after the download'
