package redlatch_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/node"
)

// logged is what a client logs, one record per row.
type logged struct{ written.Text }

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
// answered: in the lease's error, its context's cause, and the log. The answers are
// not its cause: it is an ErrNoQuorum only if the nodes refused.
func TestALossSaysWhichLockSinceWhenAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		opts   redlatch.LockOptions
		strike func(links locktest.Links)
		want   string
	}{
		"cut off": {
			strike: func(links locktest.Links) { links[0].Cut(); links[1].Cut() },
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(\S+s\): it could not be extended in time: ` +
				`cannot extend "job": no quorum \(2 of 3 needed\): memory:1: no route to host; memory:2: no route to host; memory:3: (granted|not waited for)$`,
		},
		"taken": {
			strike: func(links locktest.Links) {
				links.Drop("job")
			},
			want: `^redlatch: "job" is lost, held since HH:MM:SS \(\S+s\): the nodes say that it is no longer ours: ` +
				`cannot extend "job": 2 of 3 nodes no longer have it: memory:1: (not held|not waited for); memory:2: .*; memory:3: .*$`,
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
		locktest.Run(t, name, func(t *testing.T) {
			var log logged
			links, client := locktest.New(t, 3, log.options())
			lease := locktest.MustLock(t, client, "job", c.opts)
			want := regexp.MustCompile(strings.ReplaceAll(c.want, "HH:MM:SS", time.Now().Format("15:04:05")))
			synctest.Wait()
			if c.strike != nil {
				c.strike(links)
			}
			<-lease.Context().Done()
			synctest.Wait()
			for where, err := range map[string]error{"Err": lease.Err(), "Cause": context.Cause(lease.Context()), "Release": lease.Release(t.Context())} {
				locktest.WantErr(t, err, redlatch.ErrLost)
				if !want.MatchString(err.Error()) {
					t.Errorf("%s: got  %v\nwant %v", where, err, want)
				}
				if is := errors.Is(err, redlatch.ErrNoQuorum); is != (name == "taken") {
					t.Errorf("%s: %v is an ErrNoQuorum: %v", where, err, is)
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
	}
}

// The client retries an extension that fails. It logs the first failure, each
// change of the nodes' answers, and the end. The nodes answer one after the
// other: a round ends with the second failure, and what is logged depends on
// which answers were in by then.
func TestExtensionsThatFailAreLoggedOnceAndWhenThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		links, client := locktest.New(t, 3, log.options())
		locktest.MustLock(t, client, "job", redlatch.LockOptions{})
		synctest.Wait()
		for i, l := range links {
			l.Set(func(l *locktest.Link) {
				l.Hook = func(node.Request) { time.Sleep(time.Duration(i+1) * time.Millisecond) }
			})
		}
		failing := func() int { return len(log.with("level=WARN", "could not be extended", "name=job")) }
		time.Sleep(time.Second)
		links[1].Cut()
		links[2].Cut()
		tried := links[0].Count(node.OpExtend)
		time.Sleep(4 * time.Second)
		if n := links[0].Count(node.OpExtend) - tried; n < 3 || failing() != 1 {
			t.Errorf("%d extensions failed, and the log says so %d times:\n%s", n, failing(), log.String())
		}
		links[0].Cut()
		time.Sleep(3 * time.Second)
		if failing() != 2 {
			t.Errorf("after another node was cut off, the log says %d times:\n%s", failing(), log.String())
		}
		links.Mend()
		time.Sleep(time.Second)
		if again := log.with("level=INFO", "extended again", "name=job"); len(again) != 1 {
			t.Errorf("when it was over, the log says %q", again)
		}
	})
}

// A node whose reply is outstanding at the end of a round has not answered
// differently: neither then nor when it answers in time again.
func TestOutstandingReplyIsNotLoggedAsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		links, client := locktest.New(t, 3, log.options())
		locktest.MustLock(t, client, "job", redlatch.LockOptions{})
		synctest.Wait()
		// A round ends when the second node has failed, after 2ms.
		answerAfter := func(l *locktest.Link, d time.Duration) {
			l.Set(func(l *locktest.Link) { l.Hook = func(node.Request) { time.Sleep(d) } })
		}
		for _, l := range links[1:] {
			l.Cut()
			answerAfter(l, 2*time.Millisecond)
		}
		for _, phase := range []struct {
			name  string
			delay time.Duration
		}{{"outstanding", 3 * time.Millisecond}, {"in time", time.Millisecond}, {"outstanding again", 3 * time.Millisecond}, {"in time again", time.Millisecond}} {
			answerAfter(links[0], phase.delay)
			tried := links[0].Count(node.OpExtend)
			for links[0].Count(node.OpExtend) < tried+2 {
				time.Sleep(10 * time.Millisecond)
			}
			if lines := log.with("level=WARN", "could not be extended"); len(lines) != 1 || !strings.Contains(lines[0], "memory:1: not waited for") {
				t.Errorf("%s: the log says %q, want the first failure, with a reply outstanding", phase.name, lines)
			}
		}
		if lines := log.with("lock is lost"); len(lines) > 0 {
			t.Errorf("the log says %q", lines)
		}
	})
}

// A node that reached its time limit before anything was sent: the error says
// the cause, and wraps what a program needs to know.
func TestThatNothingWasSentIsWrappedAndNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		links[0].Set(func(l *locktest.Link) { l.Refuse = context.DeadlineExceeded })
		_, err := locktest.NewClient(t, nodes, redlatch.Options{}).TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrNodeTimeout, node.ErrUnsent)
		if text := err.Error(); strings.Contains(text, "no effect") || strings.Count(text, "redlatch:") != 1 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the cause alone", err)
		}
	})
}

// TestWaitForNewServersIsLoggedByDefault has callers of one client wait, who are many
// and set no Logger.
func TestWaitForNewServersIsLoggedByDefault(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log logged
	slog.SetDefault(log.options().Logger)
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewGuarded(3)
		client := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, name := range []string{"a", "b"} {
			go client.Do(t.Context(), name, nil, func(context.Context, *redlatch.Lease) error { return nil })
		}
		time.Sleep(time.Second)
		lines := log.with("waiting until servers leave quarantine", "servers=3 left=3", "looks like one that lost its locks", "--assume-fresh", "AssumeFresh")
		if len(lines) != 1 {
			t.Errorf("in the first second the log says %q", log.String())
		}
		time.Sleep(time.Minute)
		if strings.Count(log.String(), "\n") != 1 {
			t.Errorf("after it the log says %q", log.String())
		}
	})
}
