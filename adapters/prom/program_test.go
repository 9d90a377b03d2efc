//go:build linux

package redlatchprom_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestMain turns the test binary into the program that Prometheus scrapes when a
// test starts it: a process of its own, as a user's is.
func TestMain(m *testing.M) {
	processes.Main(m, func() {
		if err := program(os.Args[1:]); err != nil {
			log.Fatal(err)
		}
	})
}

// program uses locks until its input ends. It prints the address of its metrics.
// A line of the input, NAME and a duration, is a lock to hold with that MaxHold,
// or to wait for.
func program(nodes []string) error {
	metrics, err := redlatchprom.New(nil)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	locks, err := connect(nodes, redlatch.Options{Observer: metrics, TTL: 8 * time.Second, NodeTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	metrics.Watch(locks)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	fmt.Println("serving", listener.Addr())

	go work(locks)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		name, maxHold, _ := strings.Cut(input.Text(), " ")
		limit, err := time.ParseDuration(maxHold)
		if err != nil {
			return err
		}
		go locks.Lock(context.Background(), name, &redlatch.LockOptions{MaxHold: limit})
	}
	return input.Err()
}

// work contends for locks, with all outcomes that locks have on servers without
// faults.
func work(locks *redlatch.Client) {
	ctx := context.Background()
	go locks.Lock(ctx, "busy", nil)
	for worker := range 2 {
		go func() {
			for i := 0; ; i++ {
				lease, err := locks.Lock(ctx, fmt.Sprintf("orders/%d", i/5), &redlatch.LockOptions{Wait: 2 * time.Second})
				time.Sleep(10 * time.Millisecond)
				if err == nil {
					lease.Release(ctx)
				}
				if worker == 0 {
					locks.TryLock(ctx, "busy", nil)
				}
			}
		}()
	}
}

func connect(nodes []string, opts redlatch.Options) (*redlatch.Client, error) {
	return redlatch.Open(strings.Join(nodes, ","), &opts)
}

// running is a program that was started.
type running struct {
	*processes.Process
	instance string // the address of its metrics
}

// start starts the program on servers that are new. It is killed when the test
// ends.
func start(t *testing.T, servers []*servertest.Server) *running {
	t.Helper()
	addresses := servertest.Addresses(servers)
	locks, err := connect(addresses, redlatch.Options{})
	must(t, err)
	defer locks.Close()
	must(t, fresh.Declare(t.Context(), locks))
	p := processes.Start(t, "program", nil, addresses...)
	return &running{p, strings.TrimPrefix(p.Line("serving 127.0.0.1:"), "serving ")}
}

// lock has the program hold a lock, or wait for it.
func (r *running) lock(name string, maxHold time.Duration) {
	r.Type(fmt.Sprint(name, " ", maxHold))
}

// patience is the limit for everything that is waited for: a busy machine needs
// it, a test that passes does not.
const patience = 90 * time.Second
