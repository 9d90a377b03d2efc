//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/owned"
)

// namespace is a network of its own for the servers, with a cable to ours and a
// packet filter at its end. TCP retransmits what the filter drops: a request
// that was cut off arrives when the filter is lifted, if its sender still runs.
//
// It has no name: it belongs to a process which does nothing else, and which
// ends with us in every case. So nothing of it can be left behind.
type namespace struct {
	holder  *exec.Cmd
	wait    func() error
	cable   string // our end of it
	address string // the servers' address, for us
}

// newNamespace needs root, or at least the right to administer networks.
func newNamespace() (*namespace, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("network namespaces are Linux's alone")
	}
	for _, program := range []string{"ip", "nft", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is missing: install it (apt-get install iproute2 nftables util-linux)", program)
		}
	}
	n, err := holdNamespace()
	if err != nil {
		return nil, fmt.Errorf("network namespaces need root here: %w", err)
	}
	// A separate name and separate addresses for every run on the machine.
	id := rand.IntN(10_000)
	subnet := fmt.Sprintf("10.%d.%d", 200+id/256%40, id%256)
	n.cable, n.address = fmt.Sprintf("rlt%d", id), subnet+".2"
	inside := strings.Join(n.wrap(), " ") + " "
	for _, line := range []string{
		"ip link add " + n.cable + " type veth peer name far netns " + strconv.Itoa(n.holder.Process.Pid),
		"ip addr add " + subnet + ".1/30 dev " + n.cable,
		"ip link set " + n.cable + " up",
		inside + "ip addr add " + n.address + "/30 dev far",
		inside + "ip link set far up",
		inside + "ip link set lo up",
		inside + "nft add table inet torture",
		inside + "nft add set inet torture cut { type inet_service ; }",
		inside + "nft add chain inet torture in { type filter hook input priority 0 ; }",
		inside + "nft add chain inet torture out { type filter hook output priority 0 ; }",
		inside + "nft add rule inet torture in iifname far tcp dport @cut drop",
		inside + "nft add rule inet torture out oifname far tcp sport @cut drop",
	} {
		if err := run(line); err != nil {
			n.remove()
			return nil, fmt.Errorf("network namespaces need root here: %w", err)
		}
	}
	return n, nil
}

// holdNamespace starts the process that owns the namespace.
func holdNamespace() (*namespace, error) {
	var said bytes.Buffer
	n := &namespace{holder: exec.Command("unshare", "--net", "sleep", "infinity")}
	n.holder.SysProcAttr, n.holder.Stderr = owned.Apart(), &said
	wait, err := owned.Start(n.holder)
	if err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		wait()
		close(gone)
	}()
	n.wait = func() error { <-gone; return nil }
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		n.remove()
		return nil, err
	}
	for {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.holder.Process.Pid))
		if err == nil && theirs != ours {
			return n, nil
		}
		select {
		case <-gone:
			return nil, errors.New(firstLine(said.String()))
		case <-time.After(time.Millisecond): // there is no event to wait for
		}
	}
}

func run(line string) error {
	args := strings.Fields(line)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s", strings.Join(args[:min(len(args), 4)], " "), firstLine(string(out)))
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// wrap is the command line that runs another in the namespace.
func (n *namespace) wrap() []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", n.holder.Process.Pid), "--"}
}

// cut makes the filter drop all packets from and to a port.
func (n *namespace) cut(port int) error { return n.filter("add", port) }

// mend lets the packets pass again.
func (n *namespace) mend(port int) error { return n.filter("delete", port) }

func (n *namespace) filter(what string, port int) error {
	return run(fmt.Sprintf("%s nft %s element inet torture cut { %d }", strings.Join(n.wrap(), " "), what, port))
}

// remove removes all of it.
func (n *namespace) remove() {
	if n.cable != "" {
		run("ip link del " + n.cable)
	}
	n.holder.Process.Kill()
	n.wait()
}
