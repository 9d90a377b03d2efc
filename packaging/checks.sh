# shellcheck shell=bash
# The checks of packaging/test.sh. Words in brackets name the sabotage that a
# check must find.

# one GLOB prints the one file that it matches.
one() {
	local found=("$@")
	[ ${#found[@]} = 1 ] && [ -e "${found[0]}" ] && echo "${found[0]}" || { echo "not one file: $*" >&2; return 1; }
}

check_files() {
	local work=$tmp/files f
	mkdir -p "$work"
	cp $dist/*.tar.gz $dist/*.zip $dist/*.deb $dist/*.rpm $dist/*.cdx.json $dist/checksums.txt "$work"
	! broken checksum || echo >>"$(one "$work"/*_windows_arm64.zip)"
	check "six archives, two packages of each kind, six bills" count_files "$work"
	check "checksums [checksum]" sh -c "cd '$work' && sha256sum --strict -c checksums.txt && test \$(wc -l <checksums.txt) = 16"
	mkdir -p "$tmp/archive"
	tar -C "$tmp/archive" --strip-components 1 -xzf "$work"/*_linux_amd64.tar.gz
	! broken licence || rm "$tmp/archive/THIRD-PARTY-LICENCES.txt"
	for f in LICENSE README.md THIRD-PARTY-LICENCES.txt man/redlatch.1.gz completions/redlatch.bash systemd/redlatch-example.service; do
		check "the archive has $f [licence]" test -s "$tmp/archive/$f"
	done
	check "the archive for Windows has redlatch.exe" says 'redlatch\.exe' unzip -l "$work"/*_windows_arm64.zip
	! broken bom || sed -i 's/"content": "./&0/' "$work"/*_linux_amd64.cdx.json
	check "the bill is that of the program [bom]" bill_fits "$work"/*_linux_amd64.cdx.json "$tmp/archive/redlatch"
	check "the archive's program runs" says '^redlatch v' "$tmp/archive/redlatch" version
	local commit
	commit=$(cat $dist/built-from)
	! broken version || commit=0000000000000000000000000000000000000000
	check "version names commit and date [version]" says "\"commit\":\"$commit\",\"date\":\"20[0-9T:-]+Z\"" "$tmp/archive/redlatch" version --json
	check "the program needs no libraries" says 'not a dynamic executable|statically linked' sh -c "ldd '$tmp/archive/redlatch' 2>&1 || true"
}

count_files() {
	[ "$(find "$1" -name '*_linux_*.tar.gz' -o -name '*_darwin_*.tar.gz' -o -name '*_windows_*.zip' | wc -l)" = 6 ] &&
		[ "$(find "$1" -name '*.deb' | wc -l)$(find "$1" -name '*.rpm' | wc -l)$(find "$1" -name '*.cdx.json' | wc -l)" = 226 ] || { ls "$1"; return 1; }
}

# bill_fits BILL PROGRAM: it names the program's hash, and all its modules.
bill_fits() {
	python3 - "$1" "$(sha256sum <"$2" | cut -d' ' -f1)" "$(go version -m "$2" | awk '$1=="dep"{print $2"@"$3}' | sort)" <<-'P'
		import json, sys
		bill, sum = json.load(open(sys.argv[1])), sys.argv[2]
		# Modules of this repository are built from its files: they are of the release.
		modules = sys.argv[3].replace("(devel)", bill["metadata"]["component"]["version"]).split()
		has = sorted(c["name"] + "@" + c["version"] for c in bill["components"] if c["name"] != "std")
		assert bill["bomFormat"] == "CycloneDX" and len(modules) > 5 and has == sorted(modules), (has, modules)
		assert bill["metadata"]["component"]["hashes"][0]["content"] == sum, "the bill is of another program"
	P
}

check_deb() {
	local root=$tmp/deb deb
	clean_system "$root"
	inside "$root" dpkg --configure -a # what dpkg itself creates at its first run
	inventory "$root" >"$tmp/before"
	deb=$(one $dist/*_amd64.deb)
	cp "$deb" "$root/home/test/redlatch.deb"
	check "dpkg -i" inside "$root" dpkg -i /home/test/redlatch.deb
	! broken program || : >"$root/usr/bin/redlatch"
	check_installed deb "$root" vendor-completions
	! broken changed || echo '# changed' >>"$root/etc/bash.bashrc"
	! broken leftover || touch "$root/usr/share/bash-completion/left"
	check "dpkg -P" inside "$root" dpkg -P redlatch
	inventory "$root" >"$tmp/after"
	check "nothing is left after dpkg -P [leftover] [changed]" same "$tmp/before" "$tmp/after"
}

check_rpm() {
	local root=$tmp/rpm rpm
	rpm() { command rpm --force-debian --root "$root" --dbpath /var/lib/rpm "$@"; }
	clean_system "$root"
	mkdir -p "$root/var/lib/rpm" "$root/usr/share/licenses" # systems with rpm have both
	command rpmdb --root "$root" --dbpath /var/lib/rpm --initdb
	inventory "$root" >"$tmp/before"
	rpm=$(one $dist/*.x86_64.rpm)
	command rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" | awk '$1 ~ /^-/ {print $2}' | sort >"$tmp/rpm-files"
	dpkg-deb -c $dist/*_amd64.deb | awk '$1 ~ /^-/ {print substr($6, 2)}' | sed 's,zsh/vendor-completions,zsh/site-functions,; s,doc/redlatch/copyright,licenses/redlatch/LICENSE,' | sort >"$tmp/deb-files"
	! broken rpm || sed -i '/redlatch-run/d' "$tmp/rpm-files"
	check "rpm and deb have the same files [rpm]" same "$tmp/deb-files" "$tmp/rpm-files"
	check "rpm -i" rpm -i --nosignature "$PWD/$rpm"
	check_installed rpm "$root" site-functions
	check "rpm -V: nothing has changed since" rpm -V redlatch
	! broken remains || touch "$root/usr/share/licenses/redlatch/left"
	check "rpm -e" rpm -e redlatch
	inventory "$root" >"$tmp/after"
	check "nothing is left after rpm -e [remains]" same "$tmp/before" "$tmp/after"
	unset -f rpm
}

# check_installed KIND ROOT ZSH-FOLDER checks a system that has the package.
check_installed() {
	local kind=$1 root=$2 share=$2/usr/share examples=$2/usr/share/doc/redlatch/examples
	check "$kind: redlatch run hello -- echo ok [program]" says '^ok$' inside "$root" redlatch run --nodes local hello -- echo ok
	check "$kind: a held lock is refused" says '^75$' inside "$root" \
		sh -c 'redlatch lock --nodes local --ttl 30s a >/dev/null && redlatch run -q -n --nodes local a -- true; echo $?'
	! broken manual || rm "$share/man/man1/redlatch-run.1.gz"
	check "$kind: every verb has its manual page [manual]" diff /dev/null \
		<(inside "$root" redlatch help | awk '/^[A-Z]/ {verbs = /^Available/; next} verbs && NF {print $1}' |
			while read -r verb; do [ "$verb" = help ] || [ -f "$share/man/man1/redlatch-$verb.1.gz" ] || echo "$verb"; done)
	check "$kind: the manual page can be shown" says 'NAME' man -l "$share/man/man1/redlatch.1.gz"
	! broken completion || echo 'if' >>"$share/bash-completion/completions/redlatch"
	check "$kind: completion in bash [completion]" says 'redlatch' inside "$root" bash -c 'source /usr/share/bash-completion/completions/redlatch && complete -p redlatch'
	check "$kind: completion in zsh" says '^#compdef redlatch' cat "$share/zsh/$3/_redlatch"
	check "$kind: completion in fish" says 'complete -c redlatch' cat "$share/fish/vendor_completions.d/redlatch.fish"
	# As a user puts them into service.
	mkdir -p "$tmp/units-$kind"
	cp "$examples"/redlatch-example.* "$tmp/units-$kind"
	! broken unit || sed -i 's,^ExecStart=.*,ExecStart=/usr/bin/redlatsch,' "$tmp/units-$kind/redlatch-example.service"
	check "$kind: the example of a unit [unit]" units_fit "$root" "$tmp/units-$kind"
	rm -rf "$root/home/test/man" "$root/home/test/.local"
}

# units_fit ROOT FOLDER: systemd understands the units, and their programs are there.
units_fit() {
	local program out
	out=$(systemd-analyze verify --man=no "$2/redlatch-example.service" "$2/redlatch-example.timer" 2>&1 | grep -v 'is not executable' || true)
	[ -z "$out" ] || { echo "$out"; return 1; }
	program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$2/redlatch-example.service")
	inside "$1" test -x "$program" || { echo "$program is not there"; return 1; }
}

check_image() {
	local program
	program=$(one $dist/redlatch_linux_amd64_v*/redlatch)
	mkdir -p "$tmp/storage"
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' "$tmp/storage" "$tmp/storage" >"$tmp/storage.conf"
	export CONTAINERS_STORAGE_CONF=$tmp/storage.conf BUILDAH_ISOLATION=chroot ENGINE=buildah FOLDER=$tmp/image
	check "the image is built" packaging/image.sh "$program" redlatch
	! broken image || sed -i 's/^USER.*/USER 0/' "$tmp/image/Dockerfile"
	! broken image || buildah build -q -t redlatch "$tmp/image" >/dev/null
	check "the image's user is not root [image]" says '^65532:65532$' buildah inspect --type image --format '{{.OCIv1.Config.User}}' localhost/redlatch
	check "the image runs the command" says '^redlatch v' run_image redlatch version
	check "a lock in the image, by its user" says '^redlatch v' run_image redlatch run --nodes local hello -- /usr/bin/redlatch version
	check "the program can be copied out of the image by itself" run_image redlatch install /var/lib/redlatch/copy
	check_tls
	local c
	c=$(buildah from scratch)
	buildah add -q "$c" $base / >/dev/null
	buildah commit -q "$c" example-base >/dev/null
	check "the example, which copies the program out of the image, is built" \
		buildah build --build-arg BASE=localhost/example-base --build-arg REDLATCH=localhost/redlatch -t example -f packaging/image/Dockerfile.example packaging/image
	check "the example's job runs under a lock" says '^the job runs here$' run_image example run --nodes local job -- echo the job runs here
	buildah push -q localhost/redlatch "oci-archive:$tmp/image.tar" >/dev/null
	echo "      the image has $(stat -c %s "$program") bytes of program; as an archive, compressed, $(stat -c %s "$tmp/image.tar") bytes"
}

# run_image IMAGE ARGS... runs the command of an image.
run_image() {
	local c status=0
	c=$(buildah from "localhost/$1")
	buildah run --net host "$c" -- /usr/bin/redlatch "${@:2}" || status=$?
	buildah rm "$c" >/dev/null
	return $status
}

refused() { ! run_image "$@"; }

# check_tls: with the certificate of its authority in the image a server is
# trusted, and else it is not.
check_tls() {
	local dir=$tmp/tls port
	mkdir -p "$dir"
	(
		cd "$dir"
		openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=test-authority
		openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
		openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1)
	) >"$dir/openssl" 2>&1
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	redis-server --bind 127.0.0.1 --port 0 --tls-port "$port" --tls-cert-file "$dir/server.crt" --tls-key-file "$dir/server.key" \
		--tls-ca-cert-file "$dir/ca.crt" --tls-auth-clients no --save '' --dir "$dir" >"$dir/redis" 2>&1 &
	local server=$!
	timeout 30 sh -c "until grep -q 'Ready to accept' '$dir/redis'; do sleep 0.1; done"
	local authority=$dir/ca.crt
	! broken certificates || authority=/etc/ssl/certs/ca-certificates.crt
	CERTIFICATES=$authority packaging/image.sh "$program" trusting >"$dir/build" 2>&1
	check "rediss:// with its authority among the certificates [certificates]" says '^redlatch v' run_image trusting run --nodes "rediss://localhost:$port" hello -- /usr/bin/redlatch version
	check "rediss:// with the usual certificates is refused" says 'unknown authority' refused redlatch run --wait 2s --nodes "rediss://localhost:$port" hello -- /usr/bin/redlatch version
	kill "$server"
	wait "$server" 2>/dev/null || true
}
