/* Put before a server's C library, this moves its wall clock by what a shared
   file says, while it runs. The monotonic clocks are left alone. It asks the
   kernel itself and allocates nothing, so that an allocator that looks at the
   time while the library is being loaded finds no loop. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct page {
  volatile int64_t version; /* odd while it is being written */
  volatile int64_t shift;   /* nanoseconds, at since */
  volatile int64_t since;   /* on the true wall clock */
  volatile int64_t rate;    /* nanoseconds gained per second */
};

static struct page none;
static struct page *map(void) {
  static struct page *cached;
  struct page *p = cached;
  if (p) return p;
  p = &none;
  const char *path = getenv("WALL_CLOCK_FILE");
  if (path) {
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
      long at = syscall(SYS_mmap, 0, sizeof(struct page), PROT_READ, MAP_SHARED, fd, 0);
      if (at > 0 || at < -4095) p = (struct page *)at;
      syscall(SYS_close, fd);
    }
  }
  cached = p;
  return p;
}

static int64_t now(clockid_t id) {
  struct timespec ts;
  syscall(SYS_clock_gettime, id, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t wall(clockid_t id) {
  struct page *p = map();
  for (;;) {
    int64_t version = p->version;
    __sync_synchronize();
    int64_t t = now(id), shift = p->shift, gone = t - p->since, rate = p->rate;
    __sync_synchronize();
    if ((version & 1) == 0 && version == p->version)
      return t + shift + gone / 1000000 * rate / 1000;
  }
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return syscall(SYS_clock_gettime, id, ts);
  int64_t t = wall(id);
  ts->tv_sec = t / 1000000000;
  ts->tv_nsec = t % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  int64_t t = wall(CLOCK_REALTIME);
  (void)tz;
  tv->tv_sec = t / 1000000000;
  tv->tv_usec = t % 1000000000 / 1000;
  return 0;
}

time_t time(time_t *t) {
  time_t s = wall(CLOCK_REALTIME) / 1000000000;
  if (t) *t = s;
  return s;
}
