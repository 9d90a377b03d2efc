//go:build unix

package contender_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/etcd"
	"github.com/redlatch/redlatch/store/zookeeper"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/process"
	"github.com/redlatch/redlatch/test/bench/server"
)

// This file stages the history that breaks a lock without a token. A process has the
// lock, and looks whether it still has. Then it is stopped, for longer than its session
// or lease lasts. Another process gets the lock, and writes. The first one goes on, and
// what it was about to write comes late.

const lateTTL = 5 * time.Second // a busy machine keeps it alive

// holders take the lock "job". They return its token, 0 if it has none, and what says
// whether the process still has it.
var holders = map[string]func(address string) (token redlatch.Token, holds func() bool, err error){
	"etcd": func(address string) (redlatch.Token, func() bool, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
		if err != nil {
			return 0, nil, err
		}
		s, err := concurrency.NewSession(c, concurrency.WithTTL(int(lateTTL.Seconds())))
		if err != nil {
			return 0, nil, err
		}
		return 0, func() bool { return s.Ctx().Err() == nil }, concurrency.NewMutex(s, "job").Lock(context.Background())
	},
	"zk-lock": func(address string) (redlatch.Token, func() bool, error) {
		c, _, err := zk.Connect([]string{address}, lateTTL, zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			return 0, nil, err
		}
		return 0, func() bool { return c.State() == zk.StateHasSession }, zk.NewLock(c, "/job", zk.WorldACL(zk.PermAll)).Lock()
	},
	"redlatch-etcd": func(address string) (redlatch.Token, func() bool, error) {
		n, err := etcd.Open("etcd://"+address, nil)
		return lease(n, err)
	},
	"redlatch-zookeeper": func(address string) (redlatch.Token, func() bool, error) {
		n, err := zookeeper.Open("zookeeper://"+address, nil)
		return lease(n, err)
	},
}

func lease(n redlatch.Node, err error) (redlatch.Token, func() bool, error) {
	if err != nil {
		return 0, nil, err
	}
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{TTL: lateTTL})
	if err != nil {
		return 0, nil, err
	}
	for range 20 { // the machine is busy
		var l *redlatch.Lease
		if l, err = c.Lock(context.Background(), "job", nil); err == nil {
			return l.Token(), func() bool { return l.Err() == nil }, nil
		}
	}
	return 0, nil, err
}

// report is what a holder does: it looks, works, and writes with its token, until it
// knows that it has lost the lock.
type report struct {
	Did   string // "looked", "wrote" or "lost"
	Token int64
	At    int64
}

// TestMain lets the program of the tests be a holder.
func TestMain(m *testing.M) {
	if key, address := os.Getenv("HOLDER"), os.Getenv("HOLDER_ADDRESS"); key != "" {
		if err := hold(key, address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold(key, address string) error {
	token, holds, err := holders[key](address)
	if err != nil {
		return err
	}
	say := func(did string) { fmt.Printf(`{"Did":%q,"Token":%d,"At":%d}`+"\n", did, token, clock.Now()) }
	for holds() {
		say("looked")
		time.Sleep(200 * time.Millisecond)
		say("wrote")
	}
	say("lost")
	return nil
}

// holder is a process that has had the lock.
type holder struct {
	*process.Process
	running *os.Process // for signals
	t       *testing.T
}

func startHolder(t *testing.T, key, address string) holder {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HOLDER="+key, "HOLDER_ADDRESS="+address)
	p, err := process.Start(cmd, "", &report{})
	check.Must(t, err)
	t.Cleanup(p.Stop)
	return holder{p, cmd.Process, t}
}

// next returns the next report after a moment that says one of these.
func (h holder) next(after int64, dids ...string) (r report) {
	h.t.Helper()
	for !slices.Contains(dids, r.Did) || r.At <= after {
		if err := h.Decode(&r); err != nil {
			h.t.Fatal(h.Explain(err))
		}
	}
	return r
}

func TestLateWriteOfAProcessThatWasStopped(t *testing.T) {
	addresses := map[server.Kind]string{
		server.EtcdKind:  servertest.OwnEtcd(t).Addr(),
		server.ZooKeeper: servertest.OwnZooKeeper(t, 1, "tickTime=500")[0].Addr(),
	}
	for kind, address := range addresses {
		check.Must(t, contender.Prepare(t.Context(), kind, []string{address}, false))
	}
	for key := range holders {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			address := addresses[find(t, key).Server]
			for range 10 {
				if late(t, key, address) {
					return
				}
			}
			t.Fatal("the process was never stopped between its look and its write")
		})
	}
}

// late stages the history once. It returns false if the first process was not stopped
// between its look and its write, or if the second has lost the lock meanwhile.
func late(t *testing.T, key, address string) bool {
	first := startHolder(t, key, address)
	if first.next(0, "looked", "lost").Did == "lost" {
		return false
	}
	check.Must(t, first.running.Signal(syscall.SIGSTOP))
	second := startHolder(t, key, address)
	defer second.running.Signal(syscall.SIGKILL)
	highest := second.next(0, "wrote") // it does once, in any case
	thawed := clock.Now()
	check.Must(t, first.running.Signal(syscall.SIGCONT))
	write := first.next(highest.At, "wrote", "lost")
	if write.Did == "lost" || second.next(write.At, "looked", "lost").Did == "lost" {
		return false // the second must have the lock all the time
	}
	lost := first.next(0, "lost")
	accepted := write.Token == 0 || write.Token > highest.Token
	t.Logf("the first holder wrote beside the second, token %d after %d, accepted: %v; it knew %v after it went on",
		write.Token, highest.Token, accepted, time.Duration(lost.At-thawed).Round(time.Millisecond))
	if ours := strings.HasPrefix(key, "redlatch"); accepted == ours {
		t.Errorf("the late write is accepted: %v", accepted)
	}
	return true
}
