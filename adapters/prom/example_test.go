package redlatchprom_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/store/memory"
)

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
