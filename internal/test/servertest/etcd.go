//go:build unix

package servertest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
)

// NewEtcd returns the members of a cluster with etcd's default settings: it writes
// to disk before it answers. A member is ready when most of them run, so they are
// started at once. Flags are for all of them; SECURE-CLIENTS=CERT,KEY has clients use
// TLS.
func NewEtcd(members int, flags ...string) ([]*Database, error) {
	all, cluster := make([]*Database, members), make([]string, members)
	for i := range all {
		port, err := redisproc.FreePort()
		if err != nil {
			return nil, err
		}
		name, peer := fmt.Sprint("m", i), fmt.Sprint("http://127.0.0.1:", port)
		cluster[i] = name + "=" + peer
		s := &Database{Name: "etcd", ready: "ready to serve client requests", end: os.Kill}
		s.DSN = func(address string) string { return address }
		s.setUp = func(*Database) error {
			program := find("etcd")
			if program == "" {
				return errors.New("etcd is missing: install the system's package (apt-get install etcd-server), or run make deps")
			}
			s.run = func() []string {
				client, more := "http://"+s.Addr(), flags
				if len(flags) > 0 {
					if files, secure := strings.CutPrefix(flags[0], "SECURE-CLIENTS="); secure {
						cert, key, _ := strings.Cut(files, ",")
						client, more = "https://"+s.Addr(), append([]string{"--cert-file", cert, "--key-file", key}, flags[1:]...)
					}
				}
				return append([]string{program, "--name", name, "--data-dir", filepath.Join(s.dir, "data"),
					"--listen-client-urls", client, "--advertise-client-urls", client,
					"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
					"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", cluster[0]}, more...)
			}
			return nil
		}
		all[i] = s
	}
	return all, nil
}

// OwnEtcd starts an etcd of one member for one test.
func OwnEtcd(t testing.TB) *OwnDatabase {
	t.Helper()
	all, err := NewEtcd(1)
	check.Must(t, err)
	return own(t, all[0])
}
