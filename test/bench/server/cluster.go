//go:build unix

package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// Members is how many members a cluster has.
const Members = 3

// startCluster starts the members of etcd or ZooKeeper and waits until each is ready.
// They write to disk before they answer, as is the default of both.
func startCluster(k Kind, n int) (*Backend, error) {
	if n != Members {
		return nil, fmt.Errorf("%s is measured with %d members", k, Members)
	}
	members, err := servertest.NewEtcd(n)
	count := countEtcd
	if k == ZooKeeper {
		members, err = servertest.NewZooKeeper(n, "-Dzookeeper.forceSync=yes", "maxClientCnxns=0")
		count = countZooKeeper
	}
	if err != nil {
		return nil, err
	}
	b := &Backend{Stop: func() {
		for _, m := range members {
			m.Stop()
		}
	}}
	if err := servertest.Together(members, (*servertest.Database).Start); err != nil {
		b.Stop()
		return nil, fmt.Errorf("%s (make deps installs it): %w", k, err)
	}
	b.Addresses = servertest.Hosts(members)
	b.pids = func() (all []int, err error) {
		for _, m := range members {
			own, failed := m.Pids()
			all, err = append(all, own...), errors.Join(err, failed)
		}
		return all, err
	}
	b.count = func(s *Sample) (err error) {
		for _, m := range b.Addresses {
			err = errors.Join(err, count(s, m))
		}
		return err
	}
	return b, nil
}

// countEtcd counts the gRPC messages that clients sent: a request is one, and so
// is each message on a stream, such as the start of a watch or a keep-alive. A
// write is an entry of the log.
func countEtcd(s *Sample, member string) error {
	r, err := http.Get("http://" + member + "/metrics")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	metrics, err := io.ReadAll(r.Body)
	// Lines are like grpc_server_msg_received_total{grpc_method="Txn",…} 12
	for line := range strings.Lines(string(metrics)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var n float64
		fmt.Sscan(value, &n) // it may be like 1.2e+06
		if labels, ok := strings.CutPrefix(name, "grpc_server_msg_received_total{"); ok {
			_, method, _ := strings.Cut(labels, `grpc_method="`)
			method, _, _ = strings.Cut(method, `"`)
			s.Commands[method] += int64(n)
		}
		if name == "etcd_server_proposals_committed_total" {
			s.Writes = max(s.Writes, int64(n)) // a member may lag behind
		}
	}
	return err
}

// countZooKeeper counts the packets that clients sent, pings included. A write is
// a transaction, which has the next zxid.
func countZooKeeper(s *Sample, member string) error {
	text, err := servertest.AskZooKeeper(member, "srvr", time.Minute)
	for line := range strings.Lines(text) {
		var n int64
		if _, err := fmt.Sscanf(line, "Received: %d", &n); err == nil {
			s.Commands["packets"] += n
		}
		if _, err := fmt.Sscanf(line, "Zxid: %v", &n); err == nil { // in hexadecimal digits
			s.Writes = max(s.Writes, n)
		}
	}
	return err
}
