//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// namespace is a network of its own for the servers, with a cable to ours and a
// packet filter at its end. What the filter drops TCP sends again: a request
// that was cut off arrives when the filter is lifted, if its sender still lives.
type namespace struct {
	name    string
	cable   string // our end of it
	address string // the servers', for us
}

// newNamespace needs root, or at least the right to administer networks.
func newNamespace() (*namespace, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("network namespaces are Linux's alone")
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is missing: install it (apt-get install iproute2 nftables)", program)
		}
	}
	// Names and addresses of its own for every run on the machine.
	id := rand.IntN(10_000)
	n := &namespace{name: fmt.Sprintf("redlatch%d", id), cable: fmt.Sprintf("rlt%d", id), address: fmt.Sprintf("10.%d.%d.2", 200+id/256%40, id%256)}
	ours := fmt.Sprintf("10.%d.%d.1", 200+id/256%40, id%256)
	for _, line := range []string{
		"ip netns add " + n.name,
		"ip link add " + n.cable + " type veth peer name far netns " + n.name,
		"ip addr add " + ours + "/30 dev " + n.cable,
		"ip link set " + n.cable + " up",
		"ip -n " + n.name + " addr add " + n.address + "/30 dev far",
		"ip -n " + n.name + " link set far up",
		"ip -n " + n.name + " link set lo up",
		"ip netns exec " + n.name + " nft add table inet torture",
		"ip netns exec " + n.name + " nft add set inet torture cut { type inet_service ; }",
		"ip netns exec " + n.name + " nft add chain inet torture in { type filter hook input priority 0 ; }",
		"ip netns exec " + n.name + " nft add chain inet torture out { type filter hook output priority 0 ; }",
		"ip netns exec " + n.name + " nft add rule inet torture in iifname far tcp dport @cut drop",
		"ip netns exec " + n.name + " nft add rule inet torture out oifname far tcp sport @cut drop",
	} {
		if err := run(line); err != nil {
			n.remove()
			return nil, fmt.Errorf("network namespaces need root here: %w", err)
		}
	}
	return n, nil
}

func run(line string) error {
	args := strings.Fields(line)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
		return fmt.Errorf("%s: %s", strings.Join(args[:min(len(args), 4)], " "), said)
	}
	return nil
}

// wrap is the command line that runs another in the namespace.
func (n *namespace) wrap() []string { return []string{"ip", "netns", "exec", n.name} }

// cut has the filter drop all packets from and to a port.
func (n *namespace) cut(port int) error {
	return run("ip netns exec " + n.name + " nft add element inet torture cut { " + strconv.Itoa(port) + " }")
}

// mend lets the packets pass again.
func (n *namespace) mend(port int) error {
	return run("ip netns exec " + n.name + " nft delete element inet torture cut { " + strconv.Itoa(port) + " }")
}

// remove takes all of it away.
func (n *namespace) remove() {
	run("ip link del " + n.cable)
	run("ip netns del " + n.name)
}
