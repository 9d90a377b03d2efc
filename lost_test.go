package redlatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// logged is what a client logs, one record per row. The client logs from
// several goroutines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) options() redlatch.Options {
	return redlatch.Options{Logger: slog.New(slog.NewTextHandler(l, nil))}
}

// with returns the records that contain all of the words.
func (l *logged) with(words ...string) (lines []string) {
next:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// A loss says which lock it was, since when it was held, and what the nodes
// answered: in the lease's error, its context's cause, and the log.
func TestALossSaysWhichLockSinceWhenAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		opts   redlatch.LockOptions
		strike func(links []*link)
		want   string
	}{
		"cut off": {
			strike: func(links []*link) { links[0].cut(); links[1].cut() },
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(\S+s\): it could not be extended in time: ` +
				`extend of "job" needs 2 of 3 nodes, after \S+: memory:1: no route to host \(request was not sent\); memory:2: no route to host .*; memory:3: (granted|no answer yet.*)$`,
		},
		"taken": {
			strike: func(links []*link) {
				for _, l := range links {
					l.Node.Drop("job")
				}
			},
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(\S+s\): the nodes say that it is no longer ours: ` +
				`extend of "job" needs 2 of 3 nodes, after \S+: memory:1: (not held|no answer yet.*); memory:2: .*; memory:3: .*$`,
		},
		"not extended": {
			opts: redlatch.LockOptions{NoKeepAlive: true},
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(10s\): it was not extended in time$`,
		},
		"held for too long": {
			opts: redlatch.LockOptions{MaxHold: 30 * time.Second},
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(30s\): it was held for its MaxHold$`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := newLinks(t, 3)
				var log logged
				client := newClient(t, nodes, log.options())
				lease := mustLock(t, client, "job", c.opts)
				want := regexp.MustCompile(strings.ReplaceAll(c.want, "HH:MM:SS", time.Now().Format("15:04:05")))
				synctest.Wait()
				if c.strike != nil {
					c.strike(links)
				}
				<-lease.Context().Done()
				synctest.Wait()
				for where, err := range map[string]error{"Err": lease.Err(), "Cause": context.Cause(lease.Context()), "Release": lease.Release(t.Context())} {
					wantErr(t, err, redlatch.ErrLost)
					if !want.MatchString(err.Error()) {
						t.Errorf("%s: got  %v\nwant %v", where, err, want)
					}
					var lost *redlatch.LostError
					if !errors.As(err, &lost) || lost.Name != "job" || lost.Token != lease.Token() {
						t.Errorf("%s: %+v", where, lost)
					}
				}
				if lines := log.with("lock is lost", "name=job", "held="); len(lines) != 1 {
					t.Errorf("the log says %q", log.String())
				}
			})
		})
	}
}

// The nodes' last answers are in the text of the loss, but are not its cause. A
// loss is an ErrNoQuorum only if the nodes refused.
func TestALossByTheDeadlineIsNoErrNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		lease := mustLock(t, newClient(t, nodes, redlatch.Options{}), "job", redlatch.LockOptions{})
		for _, l := range links {
			l.cut()
		}
		<-lease.Context().Done()
		if errors.Is(lease.Err(), redlatch.ErrNoQuorum) {
			t.Errorf("%v is an ErrNoQuorum", lease.Err())
		}
	})
}

// The client retries an extension that fails. It logs the first failure, each
// change of the nodes' answers, and the end.
func TestExtensionsThatFailAreLoggedOnceAndWhenThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		var log logged
		client := newClient(t, nodes, log.options())
		mustLock(t, client, "job", redlatch.LockOptions{})
		synctest.Wait()
		failing := func() int { return len(log.with("level=WARN", "could not be extended", "name=job")) }
		time.Sleep(time.Second)
		links[0].cut()
		links[1].cut()
		tried := links[2].count(node.OpExtend)
		time.Sleep(4 * time.Second)
		if n := links[2].count(node.OpExtend) - tried; n < 3 || failing() != 1 {
			t.Errorf("%d extensions failed, and the log says so %d times:\n%s", n, failing(), log.String())
		}
		links[2].cut()
		time.Sleep(3 * time.Second) // the client does not wait for it in every round
		if failing() != 2 {
			t.Errorf("after another node was cut off, the log says %d times:\n%s", failing(), log.String())
		}
		for _, l := range links {
			l.set(func(l *link) { l.refusing = nil })
		}
		time.Sleep(time.Second)
		if again := log.with("level=INFO", "extended again", "name=job"); len(again) != 1 {
			t.Errorf("when it was over, the log says %q", again)
		}
	})
}

// A node that reached its time limit before anything was sent is logged once.
func TestThatNothingWasSentIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 1)
		links[0].set(func(l *link) { l.refusing = context.DeadlineExceeded })
		_, err := newClient(t, nodes, redlatch.Options{}).TryLock(t.Context(), "job", redlatch.LockOptions{})
		wantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrNodeTimeout, node.ErrUnsent)
		if n := strings.Count(err.Error(), "request was not sent"); n != 1 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d times: %v", n, err)
		}
	})
}
