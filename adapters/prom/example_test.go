package redlatchprom_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/store/memory"
)

// A client with metrics, which a program serves by promhttp.Handler.
func ExampleNew() {
	nodes := memory.Nodes(1)
	// snippet: client
	metrics, err := redlatchprom.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	prometheus.MustRegister(metrics)
	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: metrics})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	metrics.Watch(locks) // also exports what the client knows about its nodes
	// end snippet
	lease, err := locks.Lock(context.Background(), "orders/42", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(context.Background())
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "redlatch_lock_held" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: redlatch_lock_held 1
}

func ExampleOptions() {
	// snippet: label
	metrics, err := redlatchprom.New(&redlatchprom.Options{
		// "customer/smith" and "customer/jones" are both "customer".
		Label: func(name string) string {
			kind, _, _ := strings.Cut(name, "/")
			return kind
		},
		ConstLabels: prometheus.Labels{"cluster": "eu"},
	})
	// end snippet
	if err != nil {
		log.Fatal(err)
	}
	locks, err := redlatch.New(memory.Nodes(1), &redlatch.Options{Observer: metrics})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	fmt.Println("clients with metrics:", 1)
	// Output: clients with metrics: 1
}
