#!/bin/sh
# Builds the playground into a folder, build/playground unless another is given.
# The folder opens from a file as well as from a server: a page that is opened
# from a file may not fetch, so the program is inside a script.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/playground}
go=${GO:-go}
mkdir -p "$out"
cp docs/playground/index.html docs/playground/style.css docs/playground/page.js "$out"
cp "$($go env GOROOT)/lib/wasm/wasm_exec.js" "$out"
GOOS=js GOARCH=wasm $go build -trimpath -ldflags='-s -w' -o "$out/world.wasm" ./docs/playground
gzip -9nf "$out/world.wasm"
{
	printf 'globalThis.worldProgram = "'
	base64 <"$out/world.wasm.gz" | tr -d '\n'
	printf '";\n'
} >"$out/world.js"
size=$(wc -c <"$out/world.wasm.gz" | tr -d ' ')
rm "$out/world.wasm.gz"
echo "open $out/index.html (the program is $size bytes, compressed)"
