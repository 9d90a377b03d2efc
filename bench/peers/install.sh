#!/bin/sh
# Installs the peers in other languages that make bench-family runs, into .deps,
# which git does not see. What is there already is left alone; removing .deps
# installs anew. A peer that cannot be had is listed as such in the results.
set -eu
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null 2>&1; }

need=""
has node || need="$need nodejs"
has npm || need="$need npm"
has javac || need="$need default-jdk-headless"
has mvn || need="$need maven"
if [ -n "$need" ]; then
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root="sudo"
  echo "installing:$need" >&2
  has apt-get || { echo "no apt-get here: please install$need by hand" >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -q
  # The list holds several words on purpose.
  # shellcheck disable=SC2086
  $as_root apt-get install -q -y --no-install-recommends $need
fi

mkdir -p .deps
if [ ! -d .deps/node/node_modules ] && ! npm install --prefix .deps/node --no-audit --no-fund --loglevel=error \
  redis-semaphore@5.8.0 ioredis@5.11.1; then
  rm -rf .deps/node
fi
if [ ! -d .deps/java/lib ] && ! mvn -q -B -f peers/java/pom.xml -Dmaven.repo.local="$PWD/.deps/m2" \
  org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$PWD/.deps/java/lib"; then
  rm -rf .deps/java
fi
if [ -d .deps/java/lib ] && [ ! .deps/java/classes/Contend.class -nt peers/java/Contend.java ]; then
  javac -d .deps/java/classes -cp '.deps/java/lib/*' peers/java/Contend.java
fi
