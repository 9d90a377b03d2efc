//go:build unix

package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// Members is how many members a cluster has.
const Members = 3

// cluster is etcd or ZooKeeper. It writes to disk before it answers, as is the
// default of both.
type cluster struct {
	members []*servertest.Database
	// count adds what a member has counted to a sample.
	count func(s *Sample, member string) error
}

// startCluster starts the members and waits until each is ready.
func startCluster(k Kind, members int) (Backend, error) {
	if members != Members {
		return nil, fmt.Errorf("%s is measured with %d members", k, Members)
	}
	all, err := servertest.NewEtcd(members)
	c := &cluster{all, countEtcd}
	if k == ZooKeeper {
		c.members, err = servertest.NewZooKeeper(members, "-Dzookeeper.forceSync=yes", "maxClientCnxns=0")
		c.count = countZooKeeper
	}
	if err != nil {
		return nil, err
	}
	if err := servertest.Together(c.members, (*servertest.Database).Start); err != nil {
		c.Stop()
		return nil, fmt.Errorf("%s (make deps installs it): %w", k, err)
	}
	return c, nil
}

// Addresses returns host:port of each member.
func (c *cluster) Addresses() []string { return servertest.Hosts(c.members) }

// Sample reads the counters of all members.
func (c *cluster) Sample() (Sample, error) {
	var pids []int
	for _, m := range c.members {
		own, err := m.Pids()
		if err != nil {
			return Sample{}, err
		}
		pids = append(pids, own...)
	}
	return sample(pids, func(s *Sample) error {
		for _, m := range c.members {
			if err := c.count(s, m.Addr()); err != nil {
				return fmt.Errorf("statistics of %s: %w", m.Name, err)
			}
		}
		return nil
	})
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

// Stop ends the members and removes their folders.
func (c *cluster) Stop() {
	for _, m := range c.members {
		m.Stop()
	}
}
