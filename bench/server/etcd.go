package server

import (
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
	"github.com/redlatch/redlatch/internal/owned"
	"github.com/redlatch/redlatch/internal/redisproc"
)

// EtcdMembers is how many members the cluster has.
const EtcdMembers = 3

// Etcd is a cluster of three etcd members with etcd's default settings: it
// writes to disk before it answers.
type Etcd struct {
	dir     string
	members []*etcdMember
	http    *http.Client
}

type etcdMember struct {
	client, peer string // host:port
	process      *os.Process
	gone         chan struct{} // closed when the process has ended
}

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
	var cluster []string
	for i := range EtcdMembers {
		client, err := redisproc.FreePort()
		if err != nil {
			return err
		}
		peer, err := redisproc.FreePort()
		if err != nil {
			return err
		}
		m := &etcdMember{client: fmt.Sprintf("127.0.0.1:%d", client), peer: fmt.Sprintf("127.0.0.1:%d", peer)}
		e.members = append(e.members, m)
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, m.peer))
	}
	for i, m := range e.members {
		if err := e.startMember(i, m, strings.Join(cluster, ",")); err != nil {
			return err
		}
	}
	for _, m := range e.members {
		if err := e.await(m); err != nil {
			return err
		}
	}
	return nil
}

func (e *Etcd) log(i int) string { return filepath.Join(e.dir, fmt.Sprintf("log%d", i)) }

func (e *Etcd) startMember(i int, m *etcdMember, cluster string) error {
	log, err := os.Create(e.log(i))
	if err != nil {
		return err
	}
	defer log.Close()
	client, peer := "http://"+m.client, "http://"+m.peer
	cmd := exec.Command("etcd", "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(e.dir, fmt.Sprintf("data%d", i)),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", cluster, "--initial-cluster-state", "new", "--initial-cluster-token", filepath.Base(e.dir))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, owned.Apart()
	wait, err := owned.Start(cmd)
	if err != nil {
		return fmt.Errorf("cannot start etcd (make deps installs it): %w", err)
	}
	m.process, m.gone = cmd.Process, make(chan struct{})
	go func() {
		wait()
		close(m.gone)
	}()
	return nil
}

// await waits until a member is healthy.
func (e *Etcd) await(m *etcdMember) error {
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		var body string
		if body, err = e.get(m, "/health"); err == nil && strings.Contains(body, "true") {
			return nil
		}
		select {
		case <-m.gone:
			return fmt.Errorf("etcd ended; its logs:\n%s", e.logs())
		case <-time.After(5 * time.Millisecond): // no event says when it listens
		}
	}
	return fmt.Errorf("etcd is not healthy: %v; its logs:\n%s", err, e.logs())
}

func (e *Etcd) logs() string {
	var all strings.Builder
	for i := range e.members {
		text, _ := os.ReadFile(e.log(i))
		all.Write(text)
	}
	return all.String()
}

func (e *Etcd) get(m *etcdMember, path string) (string, error) {
	r, err := e.http.Get("http://" + m.client + path)
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
func (e *Etcd) Addresses() []string {
	var list []string
	for _, m := range e.members {
		list = append(list, m.client)
	}
	return list
}

// Sample counts the gRPC messages that clients sent: a request is one, and so
// is each message on a stream, such as the start of a watch or a keep-alive.
func (e *Etcd) Sample() (Sample, error) {
	sample := Sample{Begun: clock.Now(), Commands: map[string]int64{}}
	for _, m := range e.members {
		metrics, err := e.get(m, "/metrics")
		if err != nil {
			return sample, fmt.Errorf("statistics of etcd: %w", err)
		}
		// Lines are like grpc_server_msg_received_total{grpc_method="Txn",…} 12
		for line := range strings.Lines(metrics) {
			labels, ok := strings.CutPrefix(line, "grpc_server_msg_received_total{")
			if !ok {
				continue
			}
			_, method, _ := strings.Cut(labels, `grpc_method="`)
			method, _, _ = strings.Cut(method, `"`)
			_, count, _ := strings.Cut(labels, "} ")
			if n, err := strconv.ParseFloat(strings.TrimSpace(count), 64); err == nil {
				sample.Commands[method] += int64(n)
			}
		}
		sample.CPU += clock.OfProcess(m.process.Pid)
	}
	sample.At = clock.Now()
	return sample, nil
}

// Stop ends the members and removes their folders.
func (e *Etcd) Stop() {
	for _, m := range e.members {
		if m.process != nil {
			m.process.Kill()
			<-m.gone
		}
	}
	e.http.CloseIdleConnections()
	os.RemoveAll(e.dir)
}
