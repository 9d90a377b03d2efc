#!/bin/sh
# Runs go mod tidy in every module of go.work. By itself go mod tidy ignores
# go.work and looks for a published release of our own modules. Here it reads a
# copy of go.mod in which they are replaced by their folders.
set -eu
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export GOWORK=off

folders=$(sed -n 's#^\t\(\.[a-z/]*\)$#\1#p' go.work)
for folder in $folders; do
  cp "$folder/go.mod" "$copy"
  cat "$folder/go.sum" >"$copy/go.sum" 2>/dev/null || true # the library has none
  for other in $folders; do
    module=$(sed -n 's/^module //p' "$other/go.mod")
    go mod edit -replace "$module=$PWD/$other" "$copy/go.mod"
  done
  (cd "$folder" && go mod tidy -modfile "$copy/go.mod" "$@")
  for other in $folders; do
    module=$(sed -n 's/^module //p' "$other/go.mod")
    go mod edit -dropreplace "$module" "$copy/go.mod"
  done
  mv "$copy/go.mod" "$folder"
  if [ -s "$copy/go.sum" ]; then mv "$copy/go.sum" "$folder"; else rm -f "$folder/go.sum"; fi
done
