package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// cronHosts is how many machines have the same line in their crontab.
const (
	cronHosts = 10
	cronKeep  = 20 * time.Second
	cronStall = 50 * time.Millisecond
)

// TestCronJobOnTenHostsRunsOnce has ten hosts start the same job at the same
// second, by clocks that are up to a second apart, on a quorum of servers that
// all of them reach by network. Each host is a network namespace with an
// address of its own. If namespaces are not allowed, as the log then says, each
// host is only a process: that tests the same, except for the network.
//
// They wait for two seconds, instead of not at all (-n): if ten ask at the same
// moment, once each, possibly none gets a majority.
func TestCronJobOnTenHostsRunsOnce(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	for name, c := range map[string]struct {
		code  int // where it is not run
		flags []string
	}{
		"keep": {exitHeld, []string{"-w", "2s", "--keep", cronKeep.String()}},
		"once": {0, []string{"--once", "2026-11-16"}},
	} {
		t.Run(name, func(t *testing.T) {
			stall.Retry(t, func(t testing.TB) { cronJob(t, c.code, c.flags) })
		})
	}
}

// cronJob runs the job with these flags. code is the exit code where it is not run.
// A host that comes more than Keep after the first shows nothing.
func cronJob(t testing.TB, code int, flags []string) {
	hosts, server := cronNetwork(t)
	settings := []string{"--protected-mode", "no", "--bind", "127.0.0.1"}
	if server != "127.0.0.1" {
		settings = append(settings, server)
	}
	servers := servertest.Redis(t, 3, settings...)
	var nodes []string
	for _, s := range servers {
		_, port, _ := net.SplitHostPort(s.Addr())
		nodes = append(nodes, "redis://"+net.JoinHostPort(server, port))
	}
	list := strings.Join(nodes, ",")
	declareAllNew(t, list)
	log := filepath.Join(t.TempDir(), "log")
	codes := make([]int, len(hosts))
	stderrs := make([]bytes.Buffer, len(hosts))
	fire := time.Now().Truncate(time.Second).Add(2 * time.Second)
	var done sync.WaitGroup
	for i, host := range hosts {
		args := append(append([]string{"redlatch", "run", "--nodes", list}, flags...),
			"nightly", "--", "sh", "-c", `echo "$0" >>"$1"`, host.name, log)
		cmd := host.command(args...)
		cmd.Stderr = &stderrs[i]
		// Half of them exactly at the second, the rest later and later.
		at := fire.Add(time.Duration(max(0, i-cronHosts/2)) * 250 * time.Millisecond)
		done.Go(func() {
			time.Sleep(time.Until(at))
			codes[i] = -1
			if err := cmd.Start(); err == nil {
				codes[i] = exitCode(t, cmd.Wait())
			}
		})
	}
	done.Wait()
	ran, _ := os.ReadFile(log)
	if code == exitHeld {
		stall.In(t, cronKeep, fire)
	}
	if n := bytes.Count(ran, []byte("\n")); n > 1 {
		exclusion.Never(t, "the job ran %d times, on %q", n, strings.Fields(string(ran)))
	}
	others := 0
	for i, c := range codes {
		switch c {
		case code:
			others++
		case 0:
		default:
			stall.Busy(t, cronStall, fire) // a node has a second to answer
			t.Errorf("%s: exit code %d, %s", hosts[i].name, c, &stderrs[i])
		}
	}
	if others < len(hosts)-1 || len(ran) == 0 {
		stall.Busy(t, cronStall, fire)
		t.Errorf("exit codes %v: one host has 0, and all others %d; it ran on %q", codes, code, ran)
	}
}

// cronHost is a machine that runs a job.
type cronHost struct {
	name      string
	namespace string // empty if it is only an address
}

func (h *cronHost) command(args ...string) *exec.Cmd {
	if h.namespace != "" {
		args = append([]string{"ip", "netns", "exec", h.namespace}, args...)
	}
	return exec.Command(args[0], args[1:]...)
}

// cronNetwork returns the hosts, and the address at which they reach servers of
// this test.
func cronNetwork(t testing.TB) (hosts []*cronHost, server string) {
	t.Helper()
	hosts, server, err := namespaces(t)
	if err == nil {
		return hosts, server
	}
	t.Logf("no network namespaces here (%v): the hosts are processes of one", err)
	for i := range cronHosts {
		hosts = append(hosts, &cronHost{name: fmt.Sprintf("host%d", i)})
	}
	return hosts[len(hosts)-cronHosts:], "127.0.0.1"
}

// namespaces makes a bridge, and hosts with a cable to it. The end of the test
// removes all of it.
func namespaces(t testing.TB) (hosts []*cronHost, server string, err error) {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, "", err
	}
	// Names and addresses of its own for every process that runs this test.
	id := os.Getpid() % 60000
	bridge := fmt.Sprintf("rl%d", id)
	prefix := fmt.Sprintf("10.%d.%d", 128+id/256%128, id%256)
	ip := func(line string) {
		if err == nil {
			if out, failed := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); failed != nil {
				err = fmt.Errorf("ip %s: %s", line, bytes.TrimSpace(out))
			}
		}
	}
	t.Cleanup(func() {
		for _, h := range hosts {
			exec.Command("ip", "netns", "del", h.namespace).Run()
		}
		exec.Command("ip", "link", "del", bridge).Run()
	})
	server = prefix + ".1"
	ip("link add " + bridge + " type bridge")
	ip("addr add " + server + "/24 dev " + bridge)
	ip("link set " + bridge + " up")
	for i := range cronHosts {
		h := &cronHost{name: fmt.Sprintf("host%d", i), namespace: fmt.Sprintf("%sh%d", bridge, i)}
		hosts = append(hosts, h)
		cable := fmt.Sprintf("%sv%d", bridge, i)
		ip("netns add " + h.namespace)
		ip(fmt.Sprintf("link add %s type veth peer name eth0 netns %s", cable, h.namespace))
		ip(fmt.Sprintf("link set %s master %s up", cable, bridge))
		ip(fmt.Sprintf("-n %s addr add %s.%d/24 dev eth0", h.namespace, prefix, 10+i))
		ip(fmt.Sprintf("-n %s link set eth0 up", h.namespace))
		ip(fmt.Sprintf("-n %s link set lo up", h.namespace))
	}
	if err == nil {
		// A firewall can keep a bridge from forwarding.
		l, failed := net.Listen("tcp", net.JoinHostPort(server, "0"))
		if failed != nil {
			return nil, "", failed
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		probe := hosts[0].command("timeout", "3", "bash", "-c", fmt.Sprintf("</dev/tcp/%s/%s", server, port))
		if out, failed := probe.CombinedOutput(); failed != nil {
			err = fmt.Errorf("the hosts do not reach the bridge: %v, %s", failed, bytes.TrimSpace(out))
		}
	}
	return hosts, server, err
}
