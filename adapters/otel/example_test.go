package redlatchotel_test

import (
	"context"
	"fmt"
	"log"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/store/memory"
)

func Example() {
	tracers, meters := sdktrace.NewTracerProvider(), sdkmetric.NewMeterProvider()
	if err := run(context.Background(), tracers, meters, memory.Nodes(1)); err != nil {
		log.Fatal(err)
	}
	// Output: under the lock
}

func run(ctx context.Context, tracers *sdktrace.TracerProvider, meters *sdkmetric.MeterProvider, nodes []redlatch.Node) error {
	// snippet: client
	observer, err := redlatchotel.New(&redlatchotel.Options{TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		return err
	}
	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: observer})
	if err != nil {
		return err
	}
	defer locks.Close()
	observer.Watch(locks) // also exports what the client knows about its nodes
	// end snippet
	return locks.Do(ctx, "nightly-import", nil, func(context.Context, *redlatch.Lease) error {
		fmt.Println("under the lock")
		return nil
	})
}
