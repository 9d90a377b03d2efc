//go:build unix

package servertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/check"
)

// NewZooKeeper returns the members of an ensemble, or a server of its own if there is
// one. settings are lines for its configuration, such as tickTime=500; one that begins
// with -D is a property of the JVM. A member is ready when most of them run, so they
// are started at once. They do not wait for the disk: no test turns the power off.
func NewZooKeeper(members int, settings ...string) ([]*Database, error) {
	all, lines := make([]*Database, members), []string{"admin.enableServer=false", "initLimit=20", "syncLimit=10"}
	flags := []string{"-Xmx256m", "-Xmn128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-Dzookeeper.globalOutstandingLimit=1000"}
	for _, s := range settings {
		if strings.HasPrefix(s, "-D") {
			flags = append(flags, s)
		} else {
			lines = append(lines, s)
		}
	}
	for i := range all {
		s := &Database{Name: "ZooKeeper", ready: "checkIntervalMs=", end: os.Kill, scheme: "zookeeper://"}
		s.DSN = s.URL
		all[i] = s
		if members > 1 {
			s.ready = " - broadcast"
			peer, err1 := redisproc.FreePort()
			election, err2 := redisproc.FreePort()
			if err := errors.Join(err1, err2); err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", i+1, peer, election))
		}
		s.setUp = func(*Database) error {
			jar, log, java := find("/usr/share/java/zookeeper.jar"), find("/usr/share/java/slf4j-simple.jar"), find("java")
			if jar == "" || log == "" || java == "" {
				return errors.New("zookeeper is missing: install the system's package (apt-get install zookeeper), or run make deps")
			}
			data := filepath.Join(s.dir, "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				return err
			}
			config := filepath.Join(s.dir, "zoo.cfg")
			s.run = func() []string {
				text := fmt.Sprintf("%s\ndataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%d\n", strings.Join(lines, "\n"), data, s.port)
				if s.Config != nil {
					text = s.Config(text)
				}
				_ = os.WriteFile(config, []byte(text), 0o600) // else the server says that it is missing
				return append(append([]string{java}, flags...), "-cp", jar+":"+log, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
			}
			return os.WriteFile(filepath.Join(data, "myid"), fmt.Append(nil, i+1), 0o600)
		}
	}
	return all, nil
}

// OwnZooKeeper starts an ensemble for one test, or one server.
func OwnZooKeeper(t testing.TB, members int, settings ...string) []*OwnDatabase {
	t.Helper()
	all, err := NewZooKeeper(members, settings...)
	check.Must(t, err)
	owned := make([]*OwnDatabase, members)
	for i, s := range all {
		need(t, s)
		owned[i] = &OwnDatabase{s, t}
		t.Cleanup(s.Stop)
	}
	if err := Together(all, (*Database).Start); err != nil {
		t.Fatalf("ZooKeeper: %v", err)
	}
	return owned
}

// AskZooKeeper returns the answer of a server to a word of four letters, such as srvr.
func AskZooKeeper(address, word string, limit time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(limit))
	io.WriteString(c, word)
	answer, err := io.ReadAll(c)
	return string(answer), err
}
