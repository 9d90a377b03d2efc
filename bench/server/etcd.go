package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// Etcd is a cluster of three etcd members, with etcd's default settings: it
// writes to disk before it answers, as it always does.
type Etcd struct {
	dir     string
	members []*process
	clients []string // host:port
	http    *http.Client
}

// EtcdMembers is how many members the cluster has.
const EtcdMembers = 3

// StartEtcd starts the members and waits until each is healthy.
func StartEtcd() (*Etcd, error) {
	dir, err := os.MkdirTemp("", "redlatch-bench-etcd-")
	if err != nil {
		return nil, err
	}
	e := &Etcd{dir: dir, http: &http.Client{Timeout: 10 * time.Second}}
	if err := e.start(); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

func (e *Etcd) start() error {
	var peers, cluster []string
	for i := range EtcdMembers {
		client, err := freePort()
		if err != nil {
			return err
		}
		peer, err := freePort()
		if err != nil {
			return err
		}
		e.clients = append(e.clients, "127.0.0.1:"+client)
		peers = append(peers, "http://127.0.0.1:"+peer)
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i := range EtcdMembers {
		dir := filepath.Join(e.dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		client := "http://" + e.clients[i]
		p, err := start(dir, "etcd", "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new",
			"--initial-cluster-token", filepath.Base(e.dir))
		if err != nil {
			return err
		}
		e.members = append(e.members, p)
	}
	for i, p := range e.members {
		if err := p.await(func() error {
			body, err := e.get(i, "/health")
			if err == nil && !strings.Contains(body, "true") {
				err = fmt.Errorf("not healthy: %s", body)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (e *Etcd) get(i int, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.clients[i]+path, nil)
	if err != nil {
		return "", err
	}
	r, err := e.http.Do(req)
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

// Addresses returns host:port of each member, for clients.
func (e *Etcd) Addresses() []string { return e.clients }

// Sample counts the gRPC messages that clients sent: a request is one, and so
// is each message on a stream, such as the start of a watch or a keep-alive.
func (e *Etcd) Sample() (Sample, error) {
	sample := Sample{Begun: clock.Now(), Commands: map[string]int64{}}
	for i, p := range e.members {
		metrics, err := e.get(i, "/metrics")
		if err != nil {
			return sample, fmt.Errorf("statistics of etcd: %w", err)
		}
		for method, n := range parseReceived(metrics) {
			sample.Commands[method] += n
		}
		sample.CPU += p.cpu()
	}
	sample.At = clock.Now()
	return sample, nil
}

// parseReceived reads lines like
// grpc_server_msg_received_total{grpc_method="Txn",grpc_service="…",…} 12
func parseReceived(metrics string) map[string]int64 {
	received := map[string]int64{}
	for line := range strings.Lines(metrics) {
		labels, ok := strings.CutPrefix(line, "grpc_server_msg_received_total{")
		if !ok {
			continue
		}
		_, method, _ := strings.Cut(labels, `grpc_method="`)
		method, _, _ = strings.Cut(method, `"`)
		_, count, _ := strings.Cut(labels, "} ")
		if n, err := strconv.ParseFloat(strings.TrimSpace(count), 64); err == nil {
			received[method] += int64(n)
		}
	}
	return received
}

// Stop ends the members and removes their folders.
func (e *Etcd) Stop() {
	for _, p := range e.members {
		p.stop()
	}
	e.http.CloseIdleConnections()
	os.RemoveAll(e.dir)
}

// EtcdVersion returns the version of the etcd that is installed, or "" if
// there is none.
func EtcdVersion() string {
	out, err := exec.Command("etcd", "--version").Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "etcd Version: ")
}
