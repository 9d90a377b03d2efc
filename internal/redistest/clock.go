//go:build linux

package redistest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// shim is put before a server's C library and moves its wall clock, by as many
// seconds as a file says, which it keeps in its memory: so the clock can be set
// while the server runs. It leaves the monotonic clocks alone, and asks the
// kernel itself, so that an allocator that looks at the time while the library
// is being loaded finds no loop.
const shim = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *by;

__attribute__((constructor)) static void find(void) {
  const char *file = getenv("WALL_CLOCK_FILE");
  int fd = file ? open(file, O_RDONLY) : -1;
  if (fd < 0) _exit(97);
  void *m = mmap(0, sizeof *by, PROT_READ, MAP_SHARED, fd, 0);
  if (m == MAP_FAILED) _exit(98);
  by = m;
}

static time_t shift(void) { return by ? *by : 0; }

int clock_gettime(clockid_t id, struct timespec *ts) {
  int r = syscall(SYS_clock_gettime, id, ts);
  if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) ts->tv_sec += shift();
  return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec ts;
  (void)tz;
  if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts) != 0) return -1;
  tv->tv_sec = ts.tv_sec + shift();
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec ts;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
  ts.tv_sec += shift();
  if (t) *t = ts.tv_sec;
  return ts.tv_sec;
}
`

// Clock is the wall clock of a server.
type Clock struct {
	t    testing.TB
	file string
}

// Set has the clock be off by the given time, in whole seconds, from now on.
func (c *Clock) Set(off time.Duration) {
	c.t.Helper()
	// Written over, not anew: the server has this very file in its memory.
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(off/time.Second)), 0); err != nil {
		c.t.Fatal(err)
	}
}

// StartWithClock starts a server whose wall clock is off by the given time, in
// whole seconds. It needs a C compiler.
func StartWithClock(t testing.TB, off time.Duration, settings ...string) *Server {
	t.Helper()
	s, _ := StartWithSettableClock(t, off, settings...)
	return s
}

// StartWithSettableClock is like StartWithClock, and returns the clock besides.
func StartWithSettableClock(t testing.TB, off time.Duration, settings ...string) (*Server, *Clock) {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so")
	if err := os.WriteFile(source, []byte(shim), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("compiling the clock shim, for which scripts/install-deps.sh installs a C compiler: %v\n%s", err, out)
	}
	clock := &Clock{t: t, file: filepath.Join(dir, "shift")}
	clock.Set(off)
	s := &Server{t: t, dir: t.TempDir(), args: settings, env: []string{"LD_PRELOAD=" + library, "WALL_CLOCK_FILE=" + clock.file}}
	s.start()
	s.await()
	return s, clock
}
