//go:build unix

// Package clockshim gives a process a wall clock that can be set while it
// runs: forward, back, and to another rate. It is a small library that is
// preloaded, and a file that it shares with us. Monotonic clocks are left alone.
package clockshim

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

//go:embed lib/shim.c
var source []byte

// Build compiles the library into a folder and returns its path. It needs a C
// compiler, by the name of cc.
func Build(dir string) (library string, err error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("servers' clocks can be moved on Linux alone")
	}
	if err := os.Chmod(dir, 0o755); err != nil { // a server may run as another user
		return "", err
	}
	file := filepath.Join(dir, "clockshim.c")
	library = filepath.Join(dir, "clockshim.so")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", fmt.Errorf("there is no C compiler: install one (apt-get install gcc libc6-dev)")
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", library, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the clock shim: %w\n%s", err, out)
	}
	return library, nil
}

// Clock is the wall clock of one or more processes.
type Clock struct {
	path string

	mu   sync.Mutex
	page []byte
}

// New returns a clock that is right, kept in a file of its own.
func New(path string) (*Clock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		return nil, err
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return &Clock{path: path, page: page}, nil
}

// Env is the environment that makes a process use the clock.
func (c *Clock) Env(library string) []string {
	return []string{"LD_PRELOAD=" + library, "WALL_CLOCK_FILE=" + c.path}
}

// Off returns by how much the clock is off now.
func (c *Clock) Off() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off(time.Now())
}

func (c *Clock) off(now time.Time) time.Duration {
	shift, since, rate := c.get(1), c.get(2), c.get(3)
	gone := now.UnixNano() - since
	return time.Duration(shift + gone/1_000_000*rate/1000)
}

// Set makes the clock wrong by a time from now on, and has it gain some time in
// every second from there; a negative gain is a loss.
func (c *Clock) Set(off, gain time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(time.Now(), off, gain)
}

// Slew changes how much the clock gains in a second, without a step.
func (c *Clock) Slew(gain time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.set(now, c.off(now), gain)
}

func (c *Clock) set(now time.Time, off, gain time.Duration) {
	version := c.get(0)
	c.put(0, version+1) // odd: a reader that sees this reads again
	c.put(1, int64(off))
	c.put(2, now.UnixNano())
	c.put(3, int64(gain))
	c.put(0, version+2)
}

// Close unmaps the file; processes keep their own mapping.
func (c *Clock) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return syscall.Munmap(c.page)
}

// Other processes read the page while we write it, so the order of the writes
// matters.
func (c *Clock) get(i int) int64 { return atomic.LoadInt64(c.word(i)) }

func (c *Clock) put(i int, v int64) { atomic.StoreInt64(c.word(i), v) }

func (c *Clock) word(i int) *int64 { return (*int64)(unsafe.Pointer(&c.page[8*i])) }
