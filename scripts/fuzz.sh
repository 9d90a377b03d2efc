#!/bin/sh
# Runs every fuzz target of every module for FUZZTIME (30s), and prints a line
# for each. With --list it prints their names instead: FOLDER TARGET. FUZZ
# selects among them, by a regular expression on such a line.
#
# Targets are found in the source, so that none can be forgotten. An input that
# fails is saved in the package's testdata/fuzz, and is a test from then on.
set -eu
cd "$(dirname "$0")/.."

targets() {
  find . -name go.mod ! -path '*/testdata/*' | sort | while read -r mod; do
    (cd "$(dirname "$mod")" &&
      go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' ./...)
  done | grep . | while read -r file; do
    sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r name; do
      folder=${file%/*}
      echo ".${folder#"$PWD"} $name"
    done
  done | sort | grep -e "${FUZZ:-.}"
}

if [ "${1:-}" = --list ]; then
  targets
  exit
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
list=$(targets)
while read -r folder name; do
  if (cd "$folder" && go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-30s}" .) >"$log" 2>&1; then
    runs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    echo "ok    $folder $name: ${runs:-0} runs"
  else
    echo "FAIL  $folder $name"
    sed 's/^/      /' "$log"
    failed=1
  fi
done <<LIST
$list
LIST
exit $failed
