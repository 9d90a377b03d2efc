#!/usr/bin/env bash
# Builds the image of the command.
#
#   packaging/image.sh PROGRAM TAG
#
# PROGRAM is the command for Linux, as a release has it. ENGINE is docker, podman
# or buildah; by default the first that is installed. CERTIFICATES is the file of
# the authorities that the command trusts in the image, FOLDER where the files of
# the image are put together.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=${1:?the program is missing} tag=${2:?the tag is missing}
certificates=${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}
engine=${ENGINE:-}
for e in docker podman buildah; do
	[ -n "$engine" ] || ! command -v "$e" >/dev/null || engine=$e
done
if [ -z "$engine" ]; then
	echo "image.sh: none of docker, podman and buildah is installed" >&2
	exit 1
fi
# Anything else would not run in an image without libraries.
if [ "$(head -c 4 "$program" | od -An -tx1 | tr -d ' ')" != 7f454c46 ]; then
	echo "image.sh: $program is not a program for Linux" >&2
	exit 1
fi
if ! grep -q 'BEGIN CERTIFICATE' "$certificates"; then
	echo "image.sh: $certificates has no certificates" >&2
	exit 1
fi

folder=${FOLDER:-build/packaging/image}
rm -rf "$folder"
mkdir -p "$folder/state"
install -m 0644 "$certificates" "$folder/ca-certificates.crt"
install -m 0644 packaging/image/Dockerfile LICENSE build/packaging/THIRD-PARTY-LICENCES.txt "$folder/"
install -m 0755 "$program" "$folder/redlatch"
echo 'redlatch:x:65532:65532:redlatch:/var/lib/redlatch:/usr/sbin/nologin' >"$folder/passwd"
echo 'redlatch:x:65532:' >"$folder/group"
"$engine" build -t "$tag" "$folder"
