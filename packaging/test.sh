#!/usr/bin/env bash
# Builds the packages of a release and tests them as a user would: installs, runs
# and removes them in a clean system, and builds and runs the image.
#
#   packaging/test.sh               build, then test; some minutes
#   packaging/test.sh --built       test what is in build/dist
#   packaging/test.sh --twice       build twice: are the files the same?
#   packaging/test.sh --sabotage    test what is in build/dist, once for each thing
#                                   that can be broken: the check that is for it must fail
#
# It needs root on a Debian system, for a folder with a system of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GORELEASER=${GORELEASER:-$(command -v goreleaser || echo go run github.com/goreleaser/goreleaser/v2@v2.16.0)}
SABOTAGE=${SABOTAGE:-} # what to break, one of the words below
SABOTAGES="checksum licence bom version manual completion unit program leftover changed rpm remains image certificates"

dist=build/dist
base=build/bookworm.tar # a clean system, kept for the next time
failed=0

need() {
	local missing=()
	for c in debootstrap dpkg rpm buildah redis-server openssl man systemd-analyze unshare unzip python3; do
		command -v "$c" >/dev/null || missing+=("$c")
	done
	if [ ${#missing[@]} -gt 0 ] || [ "$(id -u)" != 0 ]; then
		echo "test.sh: needs root and: ${missing[*]}" >&2
		echo "test.sh: apt-get install --no-install-recommends debootstrap rpm buildah redis-server openssl man-db systemd unzip python3" >&2
		exit 2
	fi
}

# check NAME COMMAND... runs one check and goes on.
check() {
	local name=$1
	shift
	if "$@" >"$tmp/check" 2>&1; then
		echo "ok    $name"
	else
		echo "FAIL  $name"
		sed 's/^/      /' "$tmp/check" | head -n 20
		failed=$((failed + 1))
	fi
}

# broken WORD: are we to break this?
broken() { [ "$SABOTAGE" = "$1" ]; }

# inside ROOT COMMAND... runs a command in a system, with its own /proc.
inside() {
	local root=$1
	shift
	unshare --mount --fork --pid --kill-child sh -c 'mount -t proc proc "$0/proc" && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/test chroot "$0" "$@"' "$root" "$@"
}

# clean_system DIR makes a system that has nothing of ours.
clean_system() {
	if [ ! -e $base ]; then
		debootstrap --variant=minbase bookworm "$tmp/base" >"$tmp/debootstrap" || { tail "$tmp/debootstrap"; exit 2; }
		tar -C "$tmp/base" -cf "$base.part" .
		mv "$base.part" $base
		rm -rf "$tmp/base"
	fi
	mkdir -p "$1"
	tar -C "$1" -xf $base
	mkdir -p "$1/home/test"
}

# inventory ROOT lists every file of a system: kind, rights and content. The
# package managers' own records are left out.
inventory() {
	(
		cd "$1"
		find . \( -path ./proc -o -path ./home/test -o -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/log -o -path ./var/cache \) -prune -o -printf '%p %y %m %U %l\n' | sort
		find ./usr ./etc -type f -print0 | sort -z | xargs -0 sha256sum
	)
}

same() { diff "$1" "$2"; }
says() { # says PATTERN COMMAND...: its output has the pattern
	local out
	out=$("${@:2}" 2>&1) || { echo "$out"; return 1; }
	grep -Eq -- "$1" <<<"$out" || { echo "no $1 in: $out"; return 1; }
}

. packaging/checks.sh

all_checks() {
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	check_files
	check_deb
	check_rpm
	check_image
	if [ $failed -gt 0 ]; then
		echo "$failed checks failed"
		exit 1
	fi
	echo "all checks passed"
}

# build makes the files of a release from a clean clone of the commit, as a release
# is: what is not committed is not in it.
build() {
	local clone
	clone=$(mktemp -d)
	git clone -q . "$clone"
	(cd "$clone" && $GORELEASER check packaging/goreleaser.yaml && $GORELEASER release -f packaging/goreleaser.yaml --snapshot --clean --skip=publish) || { rm -rf "$clone"; return 1; }
	rm -rf $dist build/packaging
	mkdir -p build
	mv "$clone/build/dist" "$clone/build/packaging" build/
	git -C "$clone" rev-parse HEAD >$dist/built-from
	rm -rf "$clone"
}

# sabotage breaks one thing after another, and wants the check for it to fail.
sabotage() {
	local missed=0 word out
	for word in $SABOTAGES; do
		if out=$(SABOTAGE=$word "$0" --built); then
			echo "MISSED  $word"
			missed=1
		elif ! grep -q "^FAIL .*\[$word\]" <<<"$out"; then
			echo "MISSED  $word: another check failed"
			grep -A5 '^FAIL' <<<"$out" || tail -n 5 <<<"$out"
			missed=1
		else
			echo "found   $word: $(grep '^FAIL' <<<"$out" | tr -s ' ' | paste -sd ';')"
		fi
	done
	return $missed
}

twice() {
	build
	cp $dist/checksums.txt build/checksums-first.txt
	build
	diff build/checksums-first.txt $dist/checksums.txt && echo "the same files twice"
}

case ${1:-} in
--built) need && all_checks ;;
--twice) twice ;;
--sabotage) need && sabotage ;;
"") need && build && all_checks ;;
*) echo "test.sh: unknown argument $1" >&2 && exit 64 ;;
esac
