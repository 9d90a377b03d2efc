// Package redlatchotel exports metrics and traces of redlatch to OpenTelemetry:
// how long callers wait for locks and hold them, why requests failed and leases
// were lost, and what each node does.
//
//	observer, err := redlatchotel.New(nil)
//	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: observer})
//	observer.Watch(locks)
//
// A request is the span "lock NAME", which begins when the lock is requested and
// ends when Lock or TryLock returns. It has an event for every round and for every
// change of what the caller waits for.
//
// A lease is the span "hold NAME", which begins when the caller gets the lease and
// ends with it. It has a link to the span of the request, and, like that, is a
// child of the span of the caller's context; without one it is a root. It is no
// child of the request's: that has ended, and a lease may be held for days. It has
// an event for every extension that failed, and for the next that did not. The
// release is the span "release NAME", a child of it.
//
// NAME is the label of the lock's name, so that there are not too many. The metrics
// have the names that the exporter for Prometheus makes those of redlatchprom of.
// docs/metrics.md lists them.
package redlatchotel
