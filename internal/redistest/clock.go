//go:build linux

package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// shim is put before a server's C library and moves its wall clock. It leaves
// the monotonic clocks alone, and asks the kernel itself, so that an allocator
// that looks at the time while the library is being loaded finds no loop.
const shim = `
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  static long cached, known;
  if (!known) {
    const char *s = getenv("WALL_CLOCK_SHIFT");
    cached = s ? atol(s) : 0;
    known = 1;
  }
  return cached;
}

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

// StartWithClock starts a server whose wall clock is off by the given time, in
// whole seconds. It needs a C compiler.
func StartWithClock(t testing.TB, off time.Duration, settings ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so")
	if err := os.WriteFile(source, []byte(shim), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("compiling the clock shim: %v\n%s", err, out)
	}
	s := &Server{t: t, dir: t.TempDir(), args: settings, env: []string{
		"LD_PRELOAD=" + library, "WALL_CLOCK_SHIFT=" + strconv.FormatInt(int64(off/time.Second), 10),
	}}
	s.start()
	s.await()
	return s
}
