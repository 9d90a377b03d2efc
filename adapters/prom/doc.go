// Package redlatchprom exports metrics of redlatch to Prometheus: how long
// callers wait for locks and hold them, why requests failed and leases were
// lost, and what each node does.
//
//	metrics, err := redlatchprom.New(nil)
//	prometheus.MustRegister(metrics)
//	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: metrics})
//	metrics.Watch(locks)
//
// The module has alert rules in alerts.yml and a Grafana dashboard in
// dashboard.json. docs/metrics.md lists the metrics and what to do about them.
package redlatchprom
