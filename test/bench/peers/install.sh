#!/bin/sh
# Installs the peer in JavaScript into .deps, which git does not see. What is
# there already is left alone; removing .deps installs anew. If it cannot be
# installed, the results list it as not measured.
set -eu
cd "$(dirname "$0")/.."

need=""
command -v node >/dev/null 2>&1 || need="$need nodejs"
command -v npm >/dev/null 2>&1 || need="$need npm"
if [ -n "$need" ]; then
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root="sudo"
  echo "installing:$need" >&2
  command -v apt-get >/dev/null 2>&1 || { echo "no apt-get here: please install$need by hand" >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -q
  # The list holds several words on purpose.
  # shellcheck disable=SC2086
  $as_root apt-get install -q -y --no-install-recommends $need
fi
if [ ! -d .deps/node_modules ] && ! npm install --prefix .deps --no-audit --no-fund --loglevel=error \
  redis-semaphore@5.8.0 ioredis@5.11.1; then
  rm -rf .deps
fi
