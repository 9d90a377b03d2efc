package server

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/owned"
	"github.com/redlatch/redlatch/internal/redisproc"
)

// EtcdMembers is how many members the cluster has.
const EtcdMembers = 3

// etcd is a cluster with etcd's default settings: it writes to disk before it
// answers.
type etcd struct {
	dir     string
	clients []string // host:port of each member
	pids    []int
	stops   []func()
}

// startEtcd starts the members and waits until each is healthy.
func startEtcd(members int) (Backend, error) {
	if members != EtcdMembers {
		return nil, fmt.Errorf("etcd is measured with %d members", EtcdMembers)
	}
	dir, err := os.MkdirTemp("", "redlatch-bench-etcd-")
	if err != nil {
		return nil, err
	}
	e := &etcd{dir: dir}
	if err := e.start(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		e.Stop()
		return nil, fmt.Errorf("etcd (make deps installs it): %w; its log ends:\n%s", err, log[max(len(log)-2000, 0):])
	}
	return e, nil
}

func (e *etcd) start() error {
	log, err := os.Create(filepath.Join(e.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	var peers, cluster []string
	for i := range EtcdMembers {
		client, err := redisproc.FreePort()
		if err != nil {
			return err
		}
		peer, err := redisproc.FreePort()
		if err != nil {
			return err
		}
		e.clients = append(e.clients, fmt.Sprintf("127.0.0.1:%d", client))
		peers = append(peers, fmt.Sprintf("http://127.0.0.1:%d", peer))
		cluster = append(cluster, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i, client := range e.clients {
		cmd := exec.Command("etcd", "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(e.dir, fmt.Sprintf("data%d", i)),
			"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new", "--initial-cluster-token", filepath.Base(e.dir))
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, owned.Apart()
		wait, err := owned.Start(cmd)
		if err != nil {
			return err
		}
		e.pids = append(e.pids, cmd.Process.Pid)
		e.stops = append(e.stops, func() { cmd.Process.Kill(); wait() })
	}
	for _, client := range e.clients {
		if err := await(client); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a member is healthy.
func await(client string) (err error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		var body string
		if body, err = get(client, "/health"); err == nil && strings.Contains(body, "true") {
			return nil
		}
		time.Sleep(5 * time.Millisecond) // no event says when it listens
	}
	return fmt.Errorf("%s is not healthy: %w", client, err)
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

func (e *etcd) Addresses(int) []string { return e.clients }

// Sample counts the gRPC messages that clients sent: a request is one, and so
// is each message on a stream, such as the start of a watch or a keep-alive.
func (e *etcd) Sample() (Sample, error) {
	return sample(e.pids, func(s *Sample) error {
		for _, client := range e.clients {
			metrics, err := get(client, "/metrics")
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
	for _, stop := range e.stops {
		stop()
	}
	os.RemoveAll(e.dir)
}
