package etcd

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// start returns a client of an etcd server of the test's own.
func start(t *testing.T) *clientv3.Client {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Fatal("there is no etcd: scripts/install-deps.sh installs it")
	}
	address, peer := "http://127.0.0.1:"+servertest.FreePort(t), "http://127.0.0.1:"+servertest.FreePort(t)
	var said bytes.Buffer
	cmd := exec.Command("etcd", "--data-dir", t.TempDir(), "--name", "one",
		"--listen-client-urls", address, "--advertise-client-urls", address,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one="+peer)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("etcd said:\n%s", said.Bytes())
		}
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := client.Get(ctx, "ready"); err == nil {
			return client
		} else if ctx.Err() != nil {
			t.Fatalf("etcd does not answer: %v", err)
		}
	}
}
