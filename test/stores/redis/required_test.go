//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// requiring are cluster parameters for a single server whose replicas are
// counted.
func requiring(replicas int) redlatch.Options {
	opts := quick
	opts.Guard, opts.Replicas = redlatch.GuardOn, replicas
	return opts
}

// changeBounds marks the same servers with other cluster parameters.
func changeBounds(t testing.TB, opts redlatch.Options, addresses ...string) {
	t.Helper()
	eventually(t, patience, func() error { // a replica may lag
		_, err := admin.New(laterClient(t, opts, addresses...)).Init(context.Background(), &admin.InitOptions{Former: open(t, addresses...)})
		return err
	})
}

// withReplicas returns a master with replicas that are online.
func withReplicas(t testing.TB, n int) (master *servertest.Server, replicas []*servertest.Server) {
	t.Helper()
	master = servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]
	replicas = replicaOf(t, master, n)
	awaitReplicas(t, master, n)
	return master, replicas
}

// TestRequiredReplicasAreTakenFromTheMarker also has a server lose its data under a
// client that leaves the number open, and has read it. A new client cannot know it.
func TestRequiredReplicasAreTakenFromTheMarker(t *testing.T) {
	t.Parallel()
	server, _ := withReplicas(t, 1) // without it the server is not marked
	must(t, fresh.Declare(context.Background(), newClient(t, open(t, server.URL()), requiring(1))))
	knows := laterClient(t, requiring(0), server.URL())
	const q = 3*time.Second + 133*time.Millisecond
	want := func(c *redlatch.Client, replicas int, lag, quarantine time.Duration) {
		t.Helper()
		var states []admin.NodeState
		eventually(t, patience, func() (err error) { // a replica may lag
			states, err = admin.New(c).Init(context.Background(), nil)
			return err
		})
		if g := states[0].Marked; g.Replicas != replicas || g.ReplicaLag != lag || g.Quarantine != quarantine {
			t.Errorf("a client that leaves it open sees %+v; want %d replicas with a lag of %v, and a quarantine of %v", g, replicas, lag, quarantine)
		}
	}
	want(knows, 1, 2*time.Second, q+4*time.Second)
	// Another number is refused.
	for field, opts := range map[string]redlatch.Options{"Replicas is 2": requiring(2), "Replicas is 0": requiring(redlatch.NoReplicas)} {
		_, err := laterClient(t, opts, server.URL()).TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, field)
	}
	server.Do("FLUSHALL")
	want(knows, 1, 2*time.Second, q+4*time.Second)
	server.Do("FLUSHALL")
	want(laterClient(t, requiring(0), server.URL()), 0, 0, q)
	changeBounds(t, requiring(1), server.URL())
	want(laterClient(t, requiring(0), server.URL()), 1, 2*time.Second, q+4*time.Second)
	changeBounds(t, requiring(redlatch.NoReplicas), server.URL())
	want(laterClient(t, requiring(0), server.URL()), 0, 0, q)
}

// TestServerWithTooFewReplicasNeitherGrantsNorExtends disconnects and
// reconnects the only replica under a lease. A refusal is no loss: the deadline
// decides.
func TestServerWithTooFewReplicasNeitherGrantsNorExtends(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		master, replicas := withReplicas(t, 1)
		opts := requiring(1)
		opts.MaxTTL = 30 * time.Second
		c := newClient(t, nodes(master.URL()), opts)
		l := mustLock(t, c, "held", redlatch.LockOptions{TTL: 30 * time.Second})
		must(t, l.Extend(context.Background()))
		refused := func(err error) error {
			if err == nil || !strings.Contains(err.Error(), "UNREPLICATED 0 of 1 required replicas") {
				return fmt.Errorf("with no replica online: %v", err)
			}
			wantErr(t, err, redlatch.ErrNoQuorum)
			return nil
		}
		replicas[0].Freeze() // it keeps its connection, and says nothing
		eventually(t, patience, func() error { return refused(l.Extend(context.Background())) })
		_, err := c.TryLock(context.Background(), "other", nil)
		must(t, refused(err))
		if err := l.Err(); err != nil {
			t.Errorf("the lease ended by a refusal, %v before its deadline", err)
		}
		replicas[0].Thaw()
		eventually(t, patience, func() error {
			return errors.Join(l.Extend(context.Background()), cycle(c))
		})
		replicas[0].Kill()
		eventually(t, patience, func() error { return refused(l.Extend(context.Background())) })
		mustRelease(t, l) // freeing is always safe
	})
}

func TestExaminationSaysHowManyReplicasMustBeRequired(t *testing.T) {
	t.Parallel()
	d := startSentinel(t, 1)
	address := d.address()
	about := func(opts redlatch.Options) (found string) {
		t.Helper()
		_, up := examine(t, open(t, address), opts, "")
		for _, f := range up.Findings {
			if f.Check == "replicas" {
				found += f.Severity.String() + ": " + f.Found + "\n"
			}
		}
		return found
	}
	opts, log := logged(redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Second}})
	for range 2 {
		c := newClient(t, open(t, address), opts)
		eventually(t, patience, func() error { return errors.Join(cycle(c), cycle(c)) })
	}
	if n := strings.Count(log.String(), "no replicas are required behind Sentinel"); n != 2 {
		t.Errorf("two clients say %d times that no replicas are required:\n%s", n, log)
	}
	if got, want := about(redlatch.Options{}), "danger: no replica is required, behind Sentinel\n"; got != want {
		t.Errorf("none required: %s", got)
	}
	opts.Replicas = 1
	changeBounds(t, opts, address)
	eventually(t, patience, func() error {
		if got, want := about(redlatch.Options{}), "fine: all 1 required replicas are online\n"; got != want {
			return errors.New("one required: " + got)
		}
		return nil
	})
	d.replicas[0].Kill()
	eventually(t, patience, func() error {
		if got, want := about(redlatch.Options{}), "danger: 0 of 1 required replicas are online with a lag of 2s or less\n"; got != want {
			return errors.New("one required, and away: " + got)
		}
		return nil
	})
}
