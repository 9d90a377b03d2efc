package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/internal/nodeaddress"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node/registry"
	_ "github.com/redlatch/redlatch/store/etcd"
	_ "github.com/redlatch/redlatch/store/mysql"
	_ "github.com/redlatch/redlatch/store/postgres"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/direct"
	_ "github.com/redlatch/redlatch/store/redis/rueidis"
	"github.com/redlatch/redlatch/store/sqlite"
	_ "github.com/redlatch/redlatch/store/zookeeper"
)

// nodesVariable holds the addresses for command lines that name none.
const nodesVariable = "REDLATCH_NODES"

// membershipVariable holds the name of the membership for command lines that give
// none.
const membershipVariable = "REDLATCH_MEMBERSHIP"

const addressForms = "redis://HOST:PORT, rediss://…, redis+sentinel://HOST+HOST/MASTER, redis+cluster://HOST+HOST, postgres://HOST/DATABASE, mysql://HOST/DATABASE, etcd://HOST+HOST, zookeeper://HOST+HOST or sqlite:FILE"

// nodeFlags say which nodes are used.
type nodeFlags struct {
	nodes      []string
	membership string
	guard      string
	any        bool

	passwordFile string
	requireNodes bool
	nodeTimeout  time.Duration // 0 for the verb's own

	flags  *pflag.FlagSet
	say    *reporter // where to report that locks are local by default; nil for nowhere
	opened []string  // the names of the nodes, once they are open
}

// guardModes are the words for the library's.
var guardModes = map[string]redlatch.GuardMode{"auto": redlatch.GuardAuto, "on": redlatch.GuardOn, "off": redlatch.GuardOff}

// apply sets the client's options that the flags are for.
func (f *nodeFlags) apply(opts *redlatch.Options) {
	opts.Membership = f.membership
	opts.Guard = guardModes[f.guard]
	opts.AnyMembership = f.any
	if f.nodeTimeout > 0 {
		opts.NodeTimeout = f.nodeTimeout
	}
}

// register adds the flags. say, if it is not nil, is where open reports that
// locks are local by default.
func (f *nodeFlags) register(flags *pflag.FlagSet, say *reporter) {
	f.flags, f.say = flags, say
	flags.StringArrayVar(&f.nodes, "nodes", nil,
		"`addresses` of the nodes, separated by commas; sqlite:FILE for a file on this machine, which all users of it may write to, or local for one of this user; may be repeated; see redlatch help nodes (default $"+nodesVariable+", else local)")
	flags.BoolVar(&f.requireNodes, "require-nodes", false, "refuse to lock on this machine only because no nodes are given")
	flags.StringVar(&f.membership, "membership", "", "the `name` of the membership, for clients that reach the nodes by different addresses (default $"+membershipVariable+", else the addresses)")
	flag.Word(flags, &f.guard, "guard", "whether a node that may have forgotten locks is quarantined until they have expired; auto is off for one plain Redis server or one Redis Cluster, and if a file is among the nodes", "auto", "on", "off")
	flags.BoolVar(&f.any, "any-membership", false, "with the guard off: use nodes that are marked for another membership, whose clients share no lock names with these")
	flag.Limit(flags, &f.nodeTimeout, "node-timeout", "a node that has not answered after `DURATION` counts as down (default a tenth of the TTL, between 250ms and 2s; redlatch doctor suggests one)")
	flags.StringVar(&f.passwordFile, "password-file", "", "a `file` whose first line is the password for addresses without one (default $"+passwordVariable+")")
}

// given reports whether a flag is set: on the command line, or by a setting.
func (f *nodeFlags) given(name string) bool { return f.flags != nil && f.flags.Changed(name) }

// open returns the nodes that the flags name, else those of the settings, else
// the file of this machine.
func (f *nodeFlags) open() ([]redlatch.Node, error) {
	addresses := split(f.nodes...)
	if len(f.nodes) > 0 && len(addresses) == 0 {
		return nil, usageError(errors.New("--nodes is empty"), "give it "+addressForms)
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

// openAll returns a node for each address, in their order, with the password that
// the flags name where an address has none.
func (f *nodeFlags) openAll(addresses []string) (nodes []redlatch.Node, err error) {
	for i, a := range addresses {
		if a == localNodes {
			path, err := sqlite.DefaultPath()
			if err != nil {
				return nil, &outcome{code: exitNoQuorum, event: "no_quorum", err: err, hint: "try --nodes sqlite:FILE"}
			}
			addresses[i] = "sqlite:" + path
		}
	}
	password, err := f.password()
	if err == nil {
		err = checkAddresses(addresses)
	}
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, a := range addresses {
		if kindOf(a) == "redis" {
			servers = append(servers, withPassword(a, password))
		}
	}
	if _, err := redis.ParseAddresses(servers); err != nil { // one of them twice
		return nil, outcomeOf(err)
	}
	for _, a := range addresses {
		n, err := openNode(withPassword(a, password))
		if err != nil {
			closeAll(nodes)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
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

// openNode returns the node of an address.
func openNode(address string) (n redlatch.Node, err error) {
	hint := "see redlatch help nodes"
	switch registry.Scheme(address) {
	case "redis", "rediss":
		n, err = direct.Open(address, nil)
	case "sqlite":
		hint = "try --nodes sqlite:FILE with a file that can be written"
		fallthrough
	default:
		n, err = registry.Open(address)
	}
	switch {
	case errors.Is(err, redlatch.ErrConfig):
		return nil, outcomeOf(err)
	case err != nil:
		return nil, &outcome{code: exitNoQuorum, event: "no_quorum", err: err, hint: hint}
	}
	return n, nil
}

// kinds are the kinds of nodes by the schemes of their addresses.
var kinds = map[string]string{
	"redis": "redis", "rediss": "redis", "sqlite": "sqlite",
	"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql",
	"etcd": "etcd", "etcds": "etcd", "zookeeper": "zookeeper", "zookeepers": "zookeeper",
}

// kindOf returns the kind of node that an address is for; "" for none.
func kindOf(address string) string {
	transport, _, _ := strings.Cut(registry.Scheme(address), "+")
	return kinds[transport]
}

func closeAll(nodes []redlatch.Node) {
	for _, n := range nodes {
		n.Close()
	}
}

// passwordVariable holds the password for addresses that have none.
const passwordVariable = "REDLATCH_PASSWORD"

// password returns the password for addresses that have none: from a file, or
// from the environment; empty for none.
func (f *nodeFlags) password() (string, error) {
	if f.passwordFile == "" {
		return os.Getenv(passwordVariable), nil
	}
	const hint = "give a file whose first line is the password"
	line, err := firstLine(f.passwordFile)
	switch {
	case err != nil:
		return "", usageError(fmt.Errorf("--password-file cannot be read: %w", err), hint)
	case line == "":
		return "", usageError(fmt.Errorf("--password-file %s begins with an empty line", f.passwordFile), hint)
	}
	return line, nil
}

// firstLine returns the first line of a file.
func firstLine(path string) (string, error) {
	text, err := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

// withPassword puts a password into an address of a server that has none.
func withPassword(address, password string) string {
	scheme, user, hosts, rest := nodeaddress.Cut(address)
	// A password with a slash in it is left to the parser, which rejects it.
	if password == "" || !strings.Contains(address, "://") || kindOf(address) == "sqlite" || user == "" && strings.Contains(rest, "@") {
		return address
	}
	user = strings.TrimSuffix(user, "@")
	if kind := kindOf(address); strings.Contains(user, ":") || user == "" && (kind == "etcd" || kind == "zookeeper") {
		return address // they have no password without a user
	}
	return scheme + "://" + user + url.UserPassword("", password).String() + "@" + hosts + rest
}

// hasPassword reports whether one of several addresses holds a password.
func hasPassword(text string) bool {
	for part := range strings.SplitSeq(text, "://") {
		if i := strings.LastIndex(part, "@"); i >= 0 && strings.Contains(part[:i], ":") {
			return true
		}
	}
	return strings.Contains(text, "sentinel_password=")
}

// longestTTL is the longest TTL of a lock where no marker limits it: the
// maximum of the library.
const longestTTL = 30 * 24 * time.Hour

// client returns a client for the nodes that the flags name.
func (f *nodeFlags) client(opts redlatch.Options) (*redlatch.Client, error) {
	nodes, err := f.open()
	if err != nil {
		return nil, err
	}
	return f.clientOf(nodes, opts)
}

// clientOf is client for nodes that are open already. The client owns them from
// then on.
func (f *nodeFlags) clientOf(nodes []redlatch.Node, opts redlatch.Options) (*redlatch.Client, error) {
	f.apply(&opts)
	if opts.Logger == nil { // doctor says what endangers locks
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if !protocol.GuardIsOn(protocol.GuardMode(opts.Guard), nodes) {
		// No quarantine has to last as long as the longest lock.
		opts.MaxTTL = longestTTL
	}
	return redlatch.New(nodes, &opts)
}

// withClient calls do with a client, and with a context that ends with a signal
// that would end us; its cause says which. nodeTimeout is that of the verb; 0 for
// the library's.
func (f *nodeFlags) withClient(nodeTimeout time.Duration, do func(context.Context, *redlatch.Client) error) error {
	client, err := f.client(redlatch.Options{NodeTimeout: nodeTimeout})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	return do(ctx, client)
}

// operatorTimeout is how long verbs that look at all nodes wait for one.
const operatorTimeout = 2 * time.Second
