// Example is a service of which any number of copies run and one leads, with
// metrics for Prometheus on /metrics.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/store/redis/direct"
)

func main() {
	nodes := flag.String("nodes", os.Getenv("REDLATCH_NODES"), "addresses of the nodes, separated by commas")
	address := flag.String("metrics", "127.0.0.1:9464", "where to serve /metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, strings.Split(*nodes, ","), listener); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addresses []string, listener net.Listener) error {
	// snippet: client
	nodes, err := direct.Nodes(addresses...)
	if err != nil {
		return err
	}
	metrics, err := redlatchprom.New(nil)
	if err != nil {
		return err
	}
	prometheus.MustRegister(metrics)
	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: metrics})
	if err != nil {
		return err
	}
	defer locks.Close()
	metrics.Watch(locks) // also exports what the client knows about its nodes
	// end snippet

	// snippet: serve
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	defer server.Close()
	// end snippet

	// The alert rules leave out locks whose name begins with leader/: candidates
	// wait for as long as another leads.
	err = locks.Lead(ctx, "leader/scheduler", nil, lead)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lead does the leader's work until ctx ends.
func lead(ctx context.Context, lease *redlatch.Lease) error {
	log.Println("leading, token", lease.Token())
	<-ctx.Done()
	log.Println("no longer leading:", context.Cause(ctx))
	return nil
}
