package redis_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// nameServer answers every question for an address with the same address, which
// can be changed.
type nameServer struct {
	conn  net.PacketConn
	lead  atomic.Pointer[[4]byte]
	asked atomic.Int32
}

func startNameServer(t testing.TB) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	n := &nameServer{conn: conn}
	go func() {
		buf := make([]byte, 512)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer, err := n.answer(buf[:size]); err == nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
	return n
}

// answer returns the answer to one question: an address for a question of type
// A, and otherwise that there is none.
func (n *nameServer) answer(question []byte) ([]byte, error) {
	const header, typeA = 12, 1
	end := header
	for end < len(question) && question[end] != 0 { // the labels of the name
		end += 1 + int(question[end])
	}
	end += 1 + 4 // the root, the type and the class
	if len(question) < end {
		return nil, errors.New("the question is cut off")
	}
	answer := append([]byte{}, question[:end]...)
	answer[2], answer[3] = 0x81, 0x80 // a response, with recursion
	copy(answer[4:header], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if binary.BigEndian.Uint16(question[end-4:]) == typeA {
		n.asked.Add(1)
		answer[7] = 1
		// The name of the question, type A, class IN, for one second.
		answer = append(answer, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4)
		answer = append(answer, n.lead.Load()[:]...)
	}
	return answer, nil
}

// dial connects a resolver to this name server.
func (n *nameServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
	return (&net.Dialer{Resolver: resolver, Timeout: time.Second}).DialContext(ctx, network, address)
}

// relay listens on another address of this machine, at the port of one server,
// and forwards to another server.
func relay(t testing.TB, address, port string, to *servertest.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to.Addr())
			if err != nil {
				client.Close()
				continue
			}
			always := func(string) bool { return true }
			go pass(client, server, always)
			go pass(server, client, always)
		}
	}()
}

// TestFailoverBehindOneNameDoesNotLetASecondHolderIn has the name of one of
// three servers resolve to a replica of it, which was promoted without the last
// write. Only clients that resolve the name again notice.
func TestFailoverBehindOneNameDoesNotLetASecondHolderIn(t *testing.T) {
	t.Parallel()
	byName := map[string]func(n *nameServer, address string) (redlatch.Node, error){
		"rueidis": func(n *nameServer, address string) (redlatch.Node, error) {
			client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
				InitAddress: []string{address}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
				DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
					return n.dial(ctx, "tcp", address)
				},
			})
			if err != nil {
				return nil, err
			}
			t.Cleanup(client.Close)
			return rueidis.From(client, &rueidis.Options{Name: address})
		},
		"goredis": func(n *nameServer, address string) (redlatch.Node, error) {
			client := goredisclient.NewClient(&goredisclient.Options{Addr: address, Dialer: n.dial, MaxRetries: -1, ContextTimeoutEnabled: true})
			t.Cleanup(func() { client.Close() })
			return goredis.From(client, &goredis.Options{Name: address})
		},
	}
	for name, open := range byName {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3, "--repl-diskless-sync-delay", "0")
			host, port, _ := net.SplitHostPort(servers[0].Addr())
			replica := servertest.Redis(t, 1, "--replicaof", host, port)[0]
			relay(t, "127.0.0.2", port, replica)
			names := startNameServer(t)
			names.lead.Store(&[4]byte{127, 0, 0, 1})
			node := func() redlatch.Node {
				n, err := open(names, "locks.redlatch.test:"+port)
				must(t, err)
				return n
			}
			list := func() []redlatch.Node {
				return append([]redlatch.Node{node()}, nodesOf(drivers[name](servertest.Addresses(servers[1:])...))...)
			}
			opts, log := logged(quick)
			first, second := newClient(t, list(), opts), newClient(t, list(), opts)
			for _, c := range []*redlatch.Client{first, second} {
				must(t, cycle(c))
			}
			eventually(t, patience, func() error {
				// A first replica changes the master's replication id: the
				// master is quarantined, and its replica must have that marker.
				if err := cycle(first); err != nil {
					return err
				}
				m := servers[0].Do("GET", "redlatch:1:marker")
				if id := strings.Fields(m); m == "" || m != replica.Do("GET", "redlatch:1:marker") ||
					!strings.Contains(servers[0].Do("INFO", "replication"), "master_replid:"+id[1]) || servers[0].Do("EXISTS", "redlatch:1:fence:{job}") == "0" {
					return errors.New("master and replica are not in step: " + m)
				}
				return nil
			})
			replica.Do("REPLICAOF", "NO", "ONE") // it misses the writes from here on
			l := hold(t, first, servers...)
			servers[2].Do("DEL", "job") // the lease is held on the first two
			names.lead.Store(&[4]byte{127, 0, 0, 2})
			servers[0].Kill()
			asked := names.asked.Load()
			wantNoSecond(t, second, l)
			if names.asked.Load() == asked {
				t.Error("nobody asked for the name again: nothing is shown")
			}
			eventually(t, patience, func() error {
				next, err := second.TryLock(context.Background(), "job", nil)
				if err != nil {
					return err
				}
				if next.Token() <= l.Token() {
					exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
				}
				return next.Release(context.Background())
			})
			if text := log.String(); !strings.Contains(text, "restarted or promoted") {
				t.Errorf("the log does not say why the server is quarantined: %s", text)
			}
		})
	}
}
