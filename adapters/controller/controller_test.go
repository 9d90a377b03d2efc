//go:build unix

package redlatchcontroller_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redlatch/redlatch"
	redlatchcontroller "github.com/redlatch/redlatch/adapters/controller"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

var must = check.Must

// ttl is the time to live of the leader's lock: long, for a busy machine.
const ttl = 10 * time.Second

// kubernetes serves as much of the API of Kubernetes as a manager with a
// controller of ConfigMaps asks for. There is one ConfigMap, which never changes.
func kubernetes(t interface{ Cleanup(func()) }) *rest.Config {
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["get","list","watch"]}]}`,
		"/api/v1/configmaps": `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[
			{"metadata":{"name":"shop","namespace":"default","uid":"1","resourceVersion":"1"}}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		switch {
		case !found:
			http.NotFound(w, r)
		case r.FormValue("sendInitialEvents") != "": // a list is asked for instead
			http.Error(w, "not supported", http.StatusUnprocessableEntity)
		case r.FormValue("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &rest.Config{Host: s.URL}
}

// options are those of a manager in a test, where one process has several.
func options() manager.Options {
	one := true
	return manager.Options{
		Logger:     logr.Discard(),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &one},
	}
}

// group is a group of replicas of an operator.
type group struct {
	t       testing.TB
	api     *rest.Config
	servers []*servertest.Server
}

func newGroup(t testing.TB) group {
	t.Helper()
	api := kubernetes(t)
	servers, _ := processes.Servers(t, 3)
	return group{t, api, servers}
}

func (g group) client() *redlatch.Client { return processes.Client(g.t, g.servers) }

func (g group) manager(opts manager.Options) *redlatchcontroller.Manager {
	g.t.Helper()
	mgr, err := redlatchcontroller.New(g.api, opts, g.client(), "operator", &redlatch.LockOptions{TTL: ttl})
	must(g.t, err)
	return mgr
}

// replica is a manager with a controller that reconciles again and again.
type replica struct {
	manager.Manager
	stop  func()
	ended chan error

	reconciles, others atomic.Int64
	last               atomic.Pointer[time.Time] // when a reconciliation ended
}

// start starts a manager.
func start(t testing.TB, mgr manager.Manager) *replica {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &replica{Manager: mgr, stop: stop, ended: make(chan error, 1)}
	must(t, builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		r.reconciles.Add(1)
		now := time.Now()
		r.last.Store(&now)
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	})))
	must(t, mgr.Add(everywhere(func() { r.others.Add(1) })))
	end := make(chan struct{})
	go func() {
		r.ended <- mgr.Start(ctx)
		close(end)
	}()
	t.Cleanup(func() {
		stop()
		<-end
	})
	return r
}

// everywhere is a runnable that needs no election.
type everywhere func()

func (everywhere) NeedLeaderElection() bool { return false }

func (e everywhere) Start(ctx context.Context) error {
	e()
	<-ctx.Done()
	return nil
}

func (r *replica) reconcilesMore(t testing.TB, what string) {
	t.Helper()
	before := r.reconciles.Load()
	poll.Until(t, what, func() bool { return r.reconciles.Load() > before+3 })
}

func TestOneManagerOfTwoReconciles(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := start(t, g.manager(options()))
	a.reconcilesMore(t, "the first replica reconciles")
	b := start(t, g.manager(options()))
	poll.Until(t, "the second replica runs what needs no election", func() bool { return b.others.Load() > 0 })
	// A replica that is not held back, and starts later, shows that the second one
	// has had the time to reconcile.
	free, err := manager.New(g.api, options())
	must(t, err)
	c := start(t, free)
	for range 10 {
		c.reconcilesMore(t, "a replica without an election reconciles")
		a.reconcilesMore(t, "the first replica goes on")
	}
	if n := b.reconciles.Load(); n > 0 {
		t.Errorf("the second replica reconciled %d times", n)
	}
	select {
	case <-b.Elected():
		t.Error("the second replica is elected")
	default:
	}
	a.stop()
	if err := <-a.ended; err != nil {
		t.Errorf("the manager that was stopped returned %v", err)
	}
	last := *a.last.Load()
	b.reconcilesMore(t, "the second replica reconciles")
	if !a.last.Load().Equal(last) {
		t.Error("the first replica reconciled after it had stopped")
	}
}

// watched is a manager that notes how much is left of its lease when it has
// stopped.
type watched struct {
	manager.Manager
	of   *redlatchcontroller.Manager
	left chan time.Duration
}

func (w watched) Start(ctx context.Context) error {
	err := w.Manager.Start(ctx)
	w.left <- w.of.Lease().Remaining()
	return err
}

// TestManagerStopsBeforeTheDeadline freezes the servers of the locks, so that the
// lease cannot be extended.
func TestManagerStopsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	mgr := g.manager(options())
	left := make(chan time.Duration, 1)
	mgr.Manager = watched{mgr.Manager, mgr, left}
	r := start(t, mgr)
	r.reconcilesMore(t, "it reconciles")
	for _, s := range g.servers {
		s.Freeze()
		t.Cleanup(s.Thaw)
	}
	if l := <-left; l <= 0 {
		t.Errorf("the manager stopped %v after the deadline", -l)
	}
	count := r.reconciles.Load()
	if err := <-r.ended; err == nil {
		t.Error("a manager that no longer leads returned no error")
	}
	if r.reconciles.Load() != count {
		t.Error("it reconciles after it has stopped")
	}
}

// TestLockOutlivesWhatDoesNotStop has a runnable that ignores its context.
func TestLockOutlivesWhatDoesNotStop(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	opts := options()
	grace := 100 * time.Millisecond
	opts.GracefulShutdownTimeout = &grace
	mgr := g.manager(opts)
	began, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error {
		close(began)
		<-end
		return nil
	})))
	r := start(t, mgr)
	<-began
	r.stop()
	if err := <-r.ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the manager returned %v, want that it did not stop in time", err)
	}
	if _, err := g.client().TryLock(t.Context(), "operator", nil); !errors.Is(err, redlatch.ErrHeld) {
		t.Errorf("the lock was released although something runs: %v", err)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	locks := g.client()
	with := func(change func(*manager.Options)) manager.Options {
		o := options()
		change(&o)
		return o
	}
	never, long := -time.Second, 30*time.Second
	late, err := redlatchcontroller.New(g.api, with(func(o *manager.Options) { o.GracefulShutdownTimeout = &long }), locks, "operator", nil)
	must(t, err)
	for says, err := range map[string]error{
		"locks":                   second(redlatchcontroller.New(g.api, options(), nil, "operator", nil)),
		"LeaderElection":          second(redlatchcontroller.New(g.api, with(func(o *manager.Options) { o.LeaderElection = true }), locks, "operator", nil)),
		"GracefulShutdownTimeout": second(redlatchcontroller.New(g.api, with(func(o *manager.Options) { o.GracefulShutdownTimeout = &never }), locks, "operator", nil)),
		"half of the TTL":         late.Start(t.Context()),
	} {
		if !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want one that names %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }
