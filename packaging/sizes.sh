#!/usr/bin/env bash
# What the command's size is made of: it is built with and without each part, and
# the differences are printed. CONTRIBUTING.md has the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CGO_ENABLED=0

# build [FLAGS...] prints the size of the command.
build() {
	local out=$tmp/out
	rm -f "$out"
	go build -o "$out" "$@" ./cmd/redlatch && stat -c %s "$out"
}

# stub FILE EXPRESSION has the build use an edited copy of a file.
stub() {
	local copy=$tmp/stub-${1//\//-}
	sed -E "$2" "$1" >"$copy"
	if cmp -s "$1" "$copy"; then
		echo "sizes.sh: nothing to replace in $1" >&2
		return 1
	fi
	overlays+=("\"$PWD/$1\":\"$copy\"")
}

mb() { awk -v n="$1" 'BEGIN{printf "%.2f MB", n/1e6}'; }
row() {
	printf '| %-58s |' "$1"
	printf ' %9s |' "${@:2}"
	echo
}

# The flags of packaging/goreleaser.yaml, and those that every program can have.
release=(-trimpath -tags nopgxregisterdefaulttypes,grpcnotrace -ldflags "-s -w")
stripped=(-trimpath -ldflags "-s -w")
row "build" "size"
row "---" "---"
row "go build" "$(mb "$(build)")"
row "go build -trimpath" "$(mb "$(build -trimpath)")"
row "with -ldflags -w: no debugger's tables" "$(mb "$(build -trimpath -ldflags -w)")"
before=$(build "${stripped[@]}")
row "with -ldflags '-s -w': no symbols either" "$(mb "$before")"
after=$(build "${release[@]}")
row "with the tags of the release too" "$(mb "$after")"
echo

# without NAME: how much smaller the command is without what the overlays leave
# out, before the tag and with it.
without() {
	local IFS=, less_before less_after
	echo "{\"Replace\":{${overlays[*]}}}" >"$tmp/overlay.json"
	less_before=$(build "${stripped[@]}" -overlay "$tmp/overlay.json")
	less_after=$(build "${release[@]}" -overlay "$tmp/overlay.json")
	row "$1" "$(mb $((before - less_before)))" "$(mb $((after - less_after)))"
	overlays=()
}

nodes=cmd/redlatch/nodes.go schema=cmd/redlatch/schema.go where=cmd/redlatch/settings.go
overlays=()
row "part" "before" "release"
row "---" "---" "---"
postgres='/redlatch\/store\/postgres"/d; /postgres\.Schema/d'
mysql='/redlatch\/store\/mysql"/d; /mysql\.Schema/d'
sqlite='/redlatch\/store\/sqlite"/d; s/sqlite\.DefaultPath\(\)/"", error(nil)/'
rueidis='/redis\/rueidis"/d'
etcd='/redlatch\/store\/etcd"/d' zookeeper='/redlatch\/store\/zookeeper"/d'
stub $nodes "$sqlite"
stub $where "$sqlite"
without "a file: SQLite (modernc.org/sqlite)"
stub $nodes "$postgres"
stub $schema "$postgres"
without "PostgreSQL (pgx)"
stub $nodes "$mysql"
stub $schema "$mysql"
without "MySQL and MariaDB (go-sql-driver)"
stub $nodes "$rueidis"
without "Sentinel and Cluster (rueidis)"
stub $nodes "$etcd"
without "etcd (its own client, gRPC)"
stub $nodes "$zookeeper"
without "ZooKeeper (go-zookeeper)"
page() {
	stub cmd/redlatch/main.go 's/newUI\(say\), //'
	local file
	for file in cmd/redlatch/ui.go cmd/redlatch/uiguard.go; do
		overlays+=("\"$PWD/$file\":\"\"")
	done
}
page
without "the page of redlatch ui (net/http)"
page
stub $nodes "$postgres; $mysql; $sqlite; $rueidis; $etcd; $zookeeper"
stub $schema "$postgres; $mysql"
stub $where "$sqlite"
without "these seven together: some of it they share"
printf 'package main\n\nimport "github.com/spf13/cobra"\n\nfunc main() { (&cobra.Command{Use: "x"}).Execute() }\n' >"$tmp/cobra.go"
printf 'package main\n\nimport ("crypto/tls"; "encoding/json"; "fmt"; "os")\n\nfunc main() { _, err := tls.Dial("tcp", os.Args[1], nil); json.NewEncoder(os.Stdout).Encode(fmt.Sprint(err)) }\n' >"$tmp/tls.go"
for p in tls cobra; do
	go build "${release[@]}" -o "$tmp/$p" "$tmp/$p.go"
	row "for comparison, a program with nothing but $p" "$(mb "$(stat -c %s "$tmp/$p")")"
done
