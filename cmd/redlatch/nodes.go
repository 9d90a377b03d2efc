package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/seconds"
	"github.com/redlatch/redlatch/node"
	_ "github.com/redlatch/redlatch/store/mysql"
	_ "github.com/redlatch/redlatch/store/postgres"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/direct"
	_ "github.com/redlatch/redlatch/store/redis/rueidis"
	_ "github.com/redlatch/redlatch/store/sqlite"
)

// nodesVariable holds the addresses for command lines that name none.
const nodesVariable = "REDLATCH_NODES"

// membershipVariable holds the name of the membership for command lines that give
// none.
const membershipVariable = "REDLATCH_MEMBERSHIP"

const addressForms = "redis://HOST:PORT, rediss://…, redis+sentinel://HOST+HOST/MASTER, redis+cluster://HOST+HOST, postgres://HOST/DATABASE, mysql://HOST/DATABASE or sqlite:FILE"

// nodeFlags say which nodes are used.
type nodeFlags struct {
	nodes      []string
	state      string
	membership string
	guard      guardMode
	any        bool

	passwordFile string
	requireNodes bool
	nodeTimeout  time.Duration // 0 for the verb's own

	say    *reporter // where to report that locks are local by default; nil for nowhere
	opened []string  // the names of the nodes, once they are open
}

// guardMode is a pflag.Value: auto, on or off.
type guardMode redlatch.GuardMode

var guardModes = []string{"auto", "on", "off"} // in the order of the library's

func (m *guardMode) String() string { return guardModes[*m] }
func (m *guardMode) Type() string   { return "auto|on|off" }
func (m *guardMode) Set(s string) error {
	i := slices.Index(guardModes, s)
	if i < 0 {
		return errors.New("must be auto, on or off")
	}
	*m = guardMode(i)
	return nil
}

// timeLimit is a pflag.Value: a duration above 0. 0 means none.
type timeLimit struct{ d *time.Duration }

func (l timeLimit) String() string {
	if l.d == nil || *l.d == 0 {
		return ""
	}
	return l.d.String()
}
func (l timeLimit) Type() string { return "duration" }
func (l timeLimit) Set(s string) error {
	d, err := seconds.Parse(s)
	if err != nil || d <= 0 {
		return errors.New("must be longer than 0s: a duration such as 500ms, or a number of seconds")
	}
	*l.d = d
	return nil
}

// apply sets the client's options that the flags are for.
func (f *nodeFlags) apply(opts *redlatch.Options) {
	opts.Membership = f.membership
	opts.Guard = redlatch.GuardMode(f.guard)
	opts.AnyMembership = f.any
	if f.nodeTimeout > 0 {
		opts.NodeTimeout = f.nodeTimeout
	}
}

func (f *nodeFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.nodes, "nodes", nil,
		"`addresses` of the nodes, separated by commas, or local for a file of this user on this machine; may be repeated; see redlatch help nodes (default $"+nodesVariable+", else local)")
	flags.Var(requireNodes{f}, "require-nodes", "refuse to lock on this machine only because no nodes are given")
	flags.Lookup("require-nodes").NoOptDefVal = "true"
	flags.StringVar(&f.membership, "membership", "", "the `name` of the membership, for clients that reach the nodes by different addresses (default $"+membershipVariable+", else the addresses)")
	flags.Var(&f.guard, "guard", "whether a node that may have forgotten locks is quarantined until they have expired; auto is on for several nodes and for Sentinel")
	flags.BoolVar(&f.any, "any-membership", false, "with the guard off: use nodes that are marked for another membership, whose clients share no lock names with these")
	flags.Var(timeLimit{&f.nodeTimeout}, "node-timeout", "a node that has not answered after `DURATION` counts as down (default a tenth of the TTL, between 250ms and 2s; redlatch doctor suggests one)")
	flags.StringVar(&f.passwordFile, "password-file", "", "a `file` whose first line is the password for addresses without one (default $"+passwordVariable+")")
	flags.StringVar(&f.state, "state", "", "the `file` that holds the locks of this machine; several users need one that all may write to (default in $REDLATCH_STATE_DIR, else in the user's own state folder)")
}

// open returns the nodes that the flags name, else those of the settings, else
// the file of this machine.
func (f *nodeFlags) open() ([]redlatch.Node, error) {
	addresses := split(f.nodes...)
	switch {
	case len(f.nodes) > 0 && f.state != "":
		return nil, usageError(errors.New("--nodes and --state cannot be combined"),
			"write sqlite:FILE in --nodes for a file among other nodes")
	case len(f.nodes) > 0 && len(addresses) == 0:
		return nil, usageError(errors.New("--nodes is empty"), "give it "+addressForms)
	case f.state != "":
		addresses = []string{"sqlite:" + f.state}
	}
	if len(addresses) == 0 {
		if err := f.byDefault(); err != nil {
			return nil, err
		}
		addresses = []string{localNodes}
	}
	nodes, err := f.openAll(addresses)
	f.opened = nodeNames(nodes)
	return nodes, err
}

// openAll returns a node for each address, with the password that the flags
// name where an address has none.
func (f *nodeFlags) openAll(addresses []string) ([]redlatch.Node, error) {
	for i, a := range addresses {
		if a != localNodes {
			continue
		}
		file, err := fileOfUser()
		if err != nil {
			return nil, err
		}
		addresses[i] = file
	}
	// Before passwords are added to them.
	if err := checkAddresses(addresses); err != nil {
		return nil, err
	}
	password, err := f.password()
	if err != nil {
		return nil, err
	}
	for i, a := range addresses {
		addresses[i] = withPassword(a, password)
	}
	return openNodes(addresses)
}

func split(lists ...string) []string {
	var all []string
	for _, list := range lists {
		for address := range strings.SplitSeq(list, ",") {
			if address = strings.TrimSpace(address); address != "" {
				all = append(all, address)
			}
		}
	}
	return all
}

// openNodes returns a node for each address, in their order.
func openNodes(addresses []string) (nodes []redlatch.Node, err error) {
	defer func() {
		if err != nil {
			closeAll(nodes)
		}
	}()
	if err := checkAddresses(addresses); err != nil {
		return nil, err
	}
	var servers []string
	for _, a := range addresses {
		if kindOf(a) == redisKind {
			servers = append(servers, a)
		}
	}
	if _, err := redis.ParseAddresses(servers); err != nil { // one of them twice
		return nil, outcomeOf(err)
	}
	for _, a := range addresses {
		n, err := openNode(a)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// openNode returns the node of an address.
func openNode(address string) (n redlatch.Node, err error) {
	hint := "see redlatch help nodes"
	switch node.Scheme(address) {
	case "redis", "rediss":
		n, err = direct.Open(address, nil)
	case "sqlite":
		hint = "try --state with a file that can be written"
		fallthrough
	default:
		n, err = node.Open(address)
	}
	switch {
	case errors.Is(err, redlatch.ErrConfig):
		return nil, outcomeOf(err)
	case err != nil:
		return nil, &outcome{code: exitNoQuorum, event: "no_quorum", err: err, hint: hint}
	}
	return n, nil
}

// The kinds of nodes.
const (
	redisKind    = "redis"
	sqliteKind   = "sqlite"
	postgresKind = "postgres"
	mysqlKind    = "mysql"
)

// kindOf returns the kind of node that an address is for; "" for none.
func kindOf(address string) string {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return ""
	}
	switch transport, _, _ := strings.Cut(scheme, "+"); transport {
	case "redis", "rediss":
		return redisKind
	case "sqlite":
		return sqliteKind
	case "postgres", "postgresql":
		return postgresKind
	case "mysql", "mariadb":
		return mysqlKind
	}
	return ""
}

func closeAll(nodes []redlatch.Node) {
	for _, n := range nodes {
		n.Close()
	}
}
