//go:build unix

package zookeeper

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
)

// encrypted listens with TLS before a server, and returns its address and a file with
// its certificate.
func encrypted(t *testing.T, server string) (address, ca string) {
	t.Helper()
	ca, key := certs.SelfSigned(t, "locks.internal")
	pair, err := tls.LoadX509KeyPair(ca, key)
	check.Must(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	check.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				to, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, client)
				io.Copy(client, to)
			}()
		}
	}()
	return listener.Addr().String(), ca
}

// TestConnectionsAreEncrypted has a server behind TLS, for the session and for timers.
func TestConnectionsAreEncrypted(t *testing.T) {
	t.Parallel()
	address, ca := encrypted(t, server(t).Addr())
	files := "?tls_server_name=locks.internal&tls_ca=" + url.QueryEscape(ca)
	n := open(t, "zookeepers://"+address+"/locks"+files)
	want(t, n, request(node.OpAcquire, "one", 30*time.Second), node.Granted)
	want(t, n, request(node.OpAcquire, "two", 30*time.Second), node.Held)
	if n.Timers() != 1 {
		t.Errorf("%d timers were left", n.Timers())
	}
	for _, wrong := range []string{"zookeeper://" + address, "zookeepers://" + address, "zookeepers://" + address + strings.Replace(files, "locks.", "other.", 1)} {
		n := open(t, wrong)
		poll.Within(t, patience, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := n.Do(ctx, request(node.OpAcquire, "two", time.Minute))
			if err == nil {
				t.Fatalf("%s works", wrong)
			}
			if strings.HasPrefix(wrong, "zookeepers:") && !strings.Contains(err.Error(), "certificate") {
				return err
			}
			return nil
		})
	}
}
