#!/usr/bin/env bash
# What the packages contain beside the command: manual pages, completions, the
# licences of its modules. packaging/goreleaser.yaml runs this before it builds.
#
#   packaging/files.sh DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=${1:?the folder to write into is missing}
rm -rf "$dir"
mkdir -p "$dir/man" "$dir/completions" "$dir/tmp"
trap 'rm -rf "$dir/tmp"' EXIT

go build -tags man -o "$dir/tmp/redlatch" ./cmd/redlatch
redlatch=$dir/tmp/redlatch
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$redlatch" man "$dir/man" # the same pages from the same commit
gzip -9n "$dir"/man/*.1
"$redlatch" completion bash >"$dir/completions/redlatch.bash"
"$redlatch" completion zsh >"$dir/completions/_redlatch"
"$redlatch" completion fish >"$dir/completions/redlatch.fish"
gzip -9nc CHANGELOG.md >"$dir/CHANGELOG.md.gz"
go run ./packaging/sbom licences ./cmd/redlatch "$dir/THIRD-PARTY-LICENCES.txt"
