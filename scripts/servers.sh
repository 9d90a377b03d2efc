#!/bin/sh
# Runs the tests of Redis nodes on servers of other versions, one after the
# other, and prints a row of numbers for docs/compatibility.md for each:
#
#   scripts/servers.sh PROGRAM...
#   scripts/servers.sh /opt/redis-7.4/redis-server /opt/valkey-9/valkey-server
#
# A PROGRAM is a redis-server or valkey-server. Exits with 1 if a test failed on
# any of them; its output is then on standard error.
#
#   PACKAGES   packages to run           ./test/stores/redis ./store/redis/direct
#   RUN        tests to run, a pattern   all of them
#   PARALLEL   how many run at once      6
#   LOGS       a folder for the whole output of each run, to be kept
#
# A run of all tests takes some three minutes.
set -eu

if [ $# = 0 ]; then
  echo "usage: scripts/servers.sh PROGRAM... (see the comment in it)" >&2
  exit 64
fi
packages=${PACKAGES:-./test/stores/redis ./store/redis/direct}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
logs=${LOGS:-$dir}
mkdir -p "$logs"

# One build for all servers.
built=""
for package in $packages; do
  file=$(echo "$package" | tr -c 'a-z0-9\n' -)
  ${GO:-go} test -c -o "$dir/$file.test" "$package"
  built="$built $package:$dir/$file.test"
done

# count STATUS FILE: how many tests, without the parts of tests, had the status.
count() { grep -c "^--- $1" "$2" || true; }

echo "| server | packages | passed | failed | skipped | seconds |"
echo "|---|---|---|---|---|---|"
failed=0
for program in "$@"; do
  if ! version=$("$program" --version 2>/dev/null); then
    echo "$program does not print a version: it must be a redis-server or valkey-server" >&2
    failed=1
    continue
  fi
  # Redis server v=7.0.15 sha=…; or without the first word, as Valkey 7.2 has it.
  number=$(echo "$version" | sed -n 's/.*erver v=\([^ ]*\).*/\1/p')
  case $version in
    Server* ) name=$(basename "$program" | sed 's/-server.*//') ;;
    * ) name=${version%% *} ;;
  esac
  server="$name $number"
  log="$logs/$(echo "$server" | tr ' /' '--').log"
  : >"$log"
  began=$(date +%s)
  for item in $built; do
    # Tests run in the folder of their package.
    (cd "${item%%:*}" && REDLATCH_REDIS_SERVER=$program "${item#*:}" -test.v -test.timeout 20m \
      -test.run "${RUN:-.}" -test.parallel "${PARALLEL:-6}") >"$dir/one" 2>&1 || {
      failed=1
      # A run that ends by a panic does not say which test failed.
      grep -q '^--- FAIL' "$dir/one" || echo "--- FAIL: ${item%%:*} ended early" >>"$dir/one"
    }
    cat "$dir/one" >>"$log"
  done
  if ! grep -q '^--- ' "$log" || grep -q '^--- FAIL' "$log"; then
    grep -v '^ *\(=== \|--- PASS\)' "$log" >&2 || true
  fi
  echo "| $server | $packages | $(count PASS "$log") | $(count FAIL "$log") | $(count SKIP "$log") | $(($(date +%s) - began)) |"
done
exit "$failed"
