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

sum=0
# step WHAT COMMAND...: run it, and print a line of the table.
step() {
	local what=$1 begin end
	shift
	begin=$(date +%s%N)
	if ! "$@" >"$tmp/out" 2>&1; then
		echo "quickstart.sh: $what failed:" >&2
		cat "$tmp/out" >&2
		exit 1
	fi
	end=$(date +%s%N)
	sum=$((sum + end - begin))
	printf '| `%s` | %s |\n' "$what" "$(seconds $((end - begin)))"
}
seconds() { awk -v n="$1" 'BEGIN{printf n < 1e9 ? "%.2f s" : "%.1f s", n/1e9}'; }
total() {
	printf '| **%s** | **%s** |\n' "$1" "$(seconds $sum)"
	sum=0
}
# locked checks that the last command ran under the lock.
locked() { grep -qx ok "$tmp/out" || { echo "quickstart.sh: no lock: $(cat "$tmp/out")" >&2; exit 1; }; }

echo "$(go version), $(getconf _NPROCESSORS_ONLN) processors, load $(cut -d' ' -f1 /proc/loadavg) at the start"
echo
echo '| with Go, caches empty | |'
echo '|---|---|'
step 'git clone' git clone -q "$from" clone
cd clone
step 'go mod download' go mod download
step 'go install ./cmd/redlatch' go install ./cmd/redlatch
step 'redlatch run hello -- echo ok' "$GOBIN/redlatch" run hello -- echo ok
locked
total 'to the first lock'
cd "$tmp"
echo
echo '| with the archive of a release | |'
echo '|---|---|'
cp "$archive" "$(dirname "$archive")/checksums.txt" .
step 'sha256sum --ignore-missing -c checksums.txt' sha256sum --ignore-missing -c checksums.txt
step 'tar -xzf redlatch_….tar.gz' tar -xzf "$(basename "$archive")"
step 'redlatch run hello -- echo ok' "$(basename "$archive" .tar.gz)/redlatch" run hello -- echo ok
locked
total 'to the first lock, after the download'
