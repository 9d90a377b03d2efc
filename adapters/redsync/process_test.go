//go:build unix

package redsync_test

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	theirs "github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	pool9 "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/adapters/redsync"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestMain turns the test binary into the program below when a test starts it.
func TestMain(m *testing.M) { processes.Main(m, program) }

// mutex is what a program uses of redsync's Mutex, and of ours.
type mutex interface {
	Lock() error
	Extend() (bool, error)
	Unlock() (bool, error)
}

// noMutex excludes nobody.
type noMutex struct{}

func (noMutex) Lock() error           { return nil }
func (noMutex) Extend() (bool, error) { return true, nil }
func (noMutex) Unlock() (bool, error) { return true, nil }

var (
	which = flag.String("mutex", "ours", "ours, theirs or none")
	turns = flag.Int("turns", 1, "how often it is locked")
	hold  = flag.Duration("hold", time.Millisecond, "how long it is held")
	file  = flag.String("file", "", "what only the holder may use")
)

// expiry is that of every mutex in the program. A busy machine may not run a holder
// for a second or two.
const expiry = 5 * time.Second

// program uses a file under a mutex, a number of times. It fails if another
// process uses the file at the same time.
func program() {
	log.SetFlags(0)
	flag.Parse()
	for i := range *turns {
		if err := turn(newMutex(flag.Args())); err != nil {
			log.Fatalf("turn %d: %v", i, err)
		}
	}
	fmt.Println("done")
}

func newMutex(addresses []string) mutex {
	var pools []redis.Pool
	for _, a := range addresses {
		pools = append(pools, pool9.NewPool(goredis9.NewClient(&goredis9.Options{Addr: a})))
	}
	switch *which {
	case "ours":
		return redsync.New(pools...).NewMutex("file", redsync.WithExpiry(expiry), redsync.WithTries(600))
	case "theirs":
		return theirs.New(pools...).NewMutex("file", theirs.WithExpiry(expiry), theirs.WithTries(600))
	}
	return noMutex{}
}

func turn(m mutex) (err error) {
	if err := m.Lock(); err != nil {
		return err
	}
	defer func() {
		if _, failed := m.Unlock(); err == nil {
			err = failed
		}
	}()
	f, err := os.OpenFile(*file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	// The system frees this lock when the process ends, however it ends.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.New("two use the file at the same time")
	}
	fmt.Println("holds it")
	for end := time.Now().Add(*hold); time.Now().Before(end); time.Sleep(min(expiry/10, time.Until(end))) {
		if ok, err := m.Extend(); !ok {
			return fmt.Errorf("extend: %w", err)
		}
	}
	return nil
}

// start starts the program.
func start(t testing.TB, servers []*servertest.Server, file, which string, args ...string) *processes.Process {
	args = append([]string{"-file", file, "-mutex", which}, args...)
	return processes.Start(t, which, nil, append(args, servertest.Hosts(servers)...)...)
}

// TestLockOfAKilledProcessGoesToTheNext kills a holder that extends its lock.
func TestLockOfAKilledProcessGoesToTheNext(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	servers, file := servertest.Redis(t, 3), filepath.Join(t.TempDir(), "file")
	holder := start(t, servers, file, "ours", "-hold", "10m")
	holder.Line("holds it")
	next := start(t, servers, file, "ours")
	// The holder extends its lock: the other one waits longer than the expiry.
	time.Sleep(expiry + expiry/2)
	if said := next.Said(); said != "" {
		t.Fatalf("the other says %q while the lock is held", said)
	}
	holder.Kill()
	next.Line("done")
}

// TestProcessesOfBothPackagesExcludeEachOther has copies of a program exchanged
// one by one: some have redsync, some this package.
func TestProcessesOfBothPackagesExcludeEachOther(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	servers, file := servertest.Redis(t, 3), filepath.Join(t.TempDir(), "file")
	var all []*processes.Process
	for _, which := range []string{"ours", "theirs", "ours"} {
		all = append(all, start(t, servers, file, which, "-turns", "15", "-hold", "20ms"))
	}
	for _, p := range all {
		p.Ends(0)
	}
}

// TestProcessesWithoutTheMutexMeet shows that the tests above can fail.
func TestProcessesWithoutTheMutexMeet(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	file := filepath.Join(t.TempDir(), "file")
	start(t, nil, file, "none", "-hold", "10m").Line("holds it")
	second := start(t, nil, file, "none")
	if code := second.Wait(); code == 0 || !strings.Contains(second.Said(), "at the same time") {
		t.Errorf("exits with %d: %s", code, second.Said())
	}
}
