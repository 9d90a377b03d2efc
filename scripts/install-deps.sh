#!/bin/sh
# Installs what the tests need and the machine lacks: redis-server, the servers
# of MariaDB and PostgreSQL, PgBouncer, etcd, ZooKeeper, Prometheus with promtool, Chromium, a C
# compiler for the race detector, make, bash, git, python3, and on Linux ip,
# for network namespaces, ps, and systemd-analyze. Does nothing
# if all are installed. The tests start their own servers.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

need=""
has redis-server || need="$need redis"
has mariadbd || has mysqld || [ -x /usr/sbin/mariadbd ] || need="$need mariadb"
has postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || need="$need postgresql"
has pgbouncer || [ -x /usr/sbin/pgbouncer ] || need="$need pgbouncer"
has etcd || need="$need etcd"
# The tests start it from the files of Debian's package.
if has apt-get; then
  [ -e /usr/share/java/zookeeper.jar ] || need="$need zookeeper"
fi
has promtool || need="$need prometheus"
has chromium || has chromium-browser || has google-chrome || has google-chrome-stable || need="$need chromium"
has make || need="$need make"
has bash || need="$need bash"
has git || need="$need git"
has python3 || need="$need python3"
# Only on Linux does the race detector need a C compiler.
if [ "$(uname -s)" = Linux ] && ! has "${CC:-gcc}"; then
  need="$need cc"
fi
if [ "$(uname -s)" = Linux ]; then
  has ip || [ -x /usr/sbin/ip ] || [ -x /sbin/ip ] || need="$need iproute"
  has ps || need="$need ps"
fi
# Alpine and macOS have none; a container of the others may lack it.
if has apt-get || has dnf; then
  has systemd-analyze || need="$need systemd"
fi
[ -n "$need" ] || exit 0

as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"

# names maps what is needed to the package names of one manager.
names() {
  for n in $need; do
    case $n in
      redis) echo "$1" ;;
      cc) echo "$2" ;;
      mariadb) echo "$3" ;;
      postgresql) echo "$4" ;;
      iproute) echo "$5" ;;
      ps) echo "$6" ;;
      etcd) echo "$7" ;;
      *) echo "$n" ;;
    esac
  done
}

# install prints what it is about to install, and how, and then installs it. The
# output of the package manager is kept, and shown if it fails.
install() {
  echo "make test needs what this machine lacks:$need" >&2
  echo "installing it now: $*" >&2
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
    return 0
  fi
  tail -n 40 "$log" >&2
  rm -f "$log"
  return 1
}

# The package lists contain several words on purpose.
# shellcheck disable=SC2046
if has apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -qq
  install $as_root apt-get install -y --no-install-recommends $(names redis-server "gcc libc6-dev" mariadb-server postgresql iproute2 procps etcd-server)
elif has dnf; then
  # If Redis is no longer packaged, Valkey provides its name.
  install $as_root dnf install -y $(names redis gcc mariadb-server postgresql-server iproute procps-ng etcd) ||
    install $as_root dnf install -y $(names valkey-compat-redis gcc mariadb-server postgresql-server iproute procps-ng etcd)
elif has apk; then
  install $as_root apk add --no-cache $(names redis "gcc musl-dev" mariadb postgresql iproute2 procps etcd)
elif has brew; then
  install brew install $(names redis gcc mariadb postgresql iproute2mac procps etcd)
else
  echo "no apt-get, dnf, apk or brew here: please install$need by hand" >&2
  exit 1
fi
