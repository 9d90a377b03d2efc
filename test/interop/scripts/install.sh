#!/bin/sh
# Installs the foreign clients that make interop runs: language runtimes and
# what Debian has from its packages, the rest from npm, PyPI and Maven into
# .deps. What is there already is left alone; removing .deps installs anew.
set -eu
cd "$(dirname "$0")/.."

has() { command -v "$1" >/dev/null 2>&1; }

need=""
has node || need="$need nodejs"
has npm || need="$need npm"
python3=/usr/bin/python3
[ -x $python3 ] && $python3 -c 'import ensurepip, venv' 2>/dev/null || need="$need python3-venv"
has javac || need="$need default-jdk-headless"
has mvn || need="$need maven"
has php || need="$need php-cli"
has php && php -r 'exit(class_exists("Redis") ? 0 : 1);' || need="$need php-redis"
[ -e /usr/share/php/Symfony/Component/Lock/autoload.php ] || need="$need php-symfony-lock"
[ -e /usr/share/php/Illuminate/Cache/autoload.php ] || need="$need php-illuminate-cache"
[ -e /usr/share/php/Illuminate/Redis/autoload.php ] || need="$need php-illuminate-redis"
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

# get NAME HOW PACKAGES…: installs into .deps/NAME. A folder that is there was
# installed whole: what fails is removed, and the run lists the client as one
# that could not be had.
get() {
  name=$1 how=$2
  shift 2
  [ -d ".deps/$name" ] && return
  echo "installing into test/interop/.deps/$name" >&2
  if ! "$how" "$PWD/.deps/$name" "$@" >".deps/$name.log" 2>&1; then
    rm -rf ".deps/$name"
    echo "  failed: see test/interop/.deps/$name.log" >&2
  fi
}

from_npm() {
  into=$1
  shift
  npm install --prefix "$into" --no-audit --no-fund --loglevel=error "$@"
}

from_pypi() {
  into=$1
  shift
  $python3 -m venv "$into" && "$into/bin/pip" install --quiet --disable-pip-version-check "$@"
}

from_maven() {
  mvn -q -B -f clients/java/pom.xml -Dmaven.repo.local="$PWD/.deps/m2" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory="$1/lib"
}

get redlock4 from_npm redlock@4.2.0 ioredis@5.11.1
get redlock5 from_npm redlock@5.0.0-beta.2 ioredis@5.11.1
get redis-semaphore from_npm redis-semaphore@5.8.0 ioredis@5.11.1
get redis-py from_pypi redis==8.1.0
get redlock-py from_pypi redlock-py==1.0.8
get pottery from_pypi pottery==3.0.1
get aioredlock from_pypi aioredlock==0.7.3
get python-redis-lock from_pypi python-redis-lock==4.0.1
get redisson from_maven
if [ -d .deps/redisson ] && [ ! .deps/redisson/classes/RedissonDriver.class -nt clients/java/RedissonDriver.java ]; then
  javac -d .deps/redisson/classes -cp '.deps/redisson/lib/*' clients/java/RedissonDriver.java
fi
