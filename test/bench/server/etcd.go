//go:build unix

package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// EtcdMembers is how many members the cluster has.
const EtcdMembers = 3

// etcd is a cluster with etcd's default settings: it writes to disk before it
// answers.
type etcd struct{ members []*servertest.Database }

// startEtcd starts the members and waits until each is ready.
func startEtcd(members int) (Backend, error) {
	if members != EtcdMembers {
		return nil, fmt.Errorf("etcd is measured with %d members", EtcdMembers)
	}
	all, err := servertest.NewEtcd(members)
	if err != nil {
		return nil, err
	}
	e := &etcd{all}
	var g errgroup.Group
	for _, m := range all {
		g.Go(m.Start)
	}
	if err := g.Wait(); err != nil {
		e.Stop()
		return nil, fmt.Errorf("etcd (make deps installs it): %w", err)
	}
	return e, nil
}

func get(client, path string) (string, error) {
	r, err := http.Get("http://" + client + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return string(body), err
}

func (e *etcd) Addresses() (list []string) {
	for _, m := range e.members {
		list = append(list, m.Addr())
	}
	return list
}

// Sample counts the gRPC messages that clients sent: a request is one, and so
// is each message on a stream, such as the start of a watch or a keep-alive.
func (e *etcd) Sample() (Sample, error) {
	var pids []int
	for _, m := range e.members {
		own, err := m.Pids()
		if err != nil {
			return Sample{}, err
		}
		pids = append(pids, own...)
	}
	return sample(pids, func(s *Sample) error {
		for _, m := range e.members {
			metrics, err := get(m.Addr(), "/metrics")
			if err != nil {
				return fmt.Errorf("statistics of etcd: %w", err)
			}
			// Lines are like grpc_server_msg_received_total{grpc_method="Txn",…} 12
			for line := range strings.Lines(metrics) {
				if labels, ok := strings.CutPrefix(line, "grpc_server_msg_received_total{"); ok {
					_, method, _ := strings.Cut(labels, `grpc_method="`)
					method, _, _ = strings.Cut(method, `"`)
					var n float64
					fmt.Sscan(labels[strings.LastIndex(labels, "} ")+2:], &n)
					s.Commands[method] += int64(n)
				}
			}
		}
		return nil
	})
}

// Stop ends the members and removes their folders.
func (e *etcd) Stop() {
	for _, m := range e.members {
		m.Stop()
	}
}
