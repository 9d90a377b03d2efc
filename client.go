package redlatch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// MaxNodes is the highest number of nodes a client takes.
const MaxNodes = 15

// A Client takes locks on one node, or on a majority of several. It is safe
// for use by many goroutines; a process needs one for each set of nodes.
type Client struct {
	opts       Options
	limitSet   bool // opts.NodeTimeout holds for locks with any TTL
	clock      Clock
	log        *slog.Logger
	members    []*member
	owner      string
	ids        identities
	proposer   proposer
	chance     chance
	keeper     keeper
	dropped    dropped
	guard      guard
	marking    marking
	inbox      inbox
	lines      lines
	background *background
	closed     chan struct{} // closed when Close is done
	closeErr   error         // what it returned; set before that
}

// New returns a client for the given nodes. It takes them over, also when it
// returns an error: Close closes them, and if New is refused it has closed them
// itself. Nodes that can be reached are asked for their identity, so that a
// server listed twice is found out; nodes that are down are no error here.
func New(nodes []Node, opts Options) (*Client, error) {
	c, err := assemble(nodes, opts)
	if err == nil {
		err = c.identify()
	}
	if err != nil {
		for _, n := range nodes {
			if n != nil {
				n.Close() // err says what went wrong
			}
		}
		return nil, err
	}
	c.inbox.listen(c)
	return c, nil
}

// assemble makes a client without asking the nodes anything.
func assemble(nodes []Node, opts Options) (*Client, error) {
	given := opts
	for _, n := range nodes {
		if slow, ok := n.(node.Slow); ok && given.NodeTimeout == 0 {
			opts.NodeTimeout = max(opts.NodeTimeout, slow.TimeLimit())
		}
	}
	limitSet := opts.NodeTimeout != 0
	if !limitSet && opts.TTL > 0 {
		opts.NodeTimeout = limitFor(opts.TTL)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(nodes) < 1 || len(nodes) > MaxNodes {
		return nil, &ConfigError{Field: "nodes", Value: fmt.Sprintf("a list of %d", len(nodes)), Bound: fmt.Sprintf("a list of 1 to %d", MaxNodes)}
	}
	c := &Client{
		opts:       opts,
		limitSet:   limitSet,
		clock:      opts.Clock,
		log:        opts.Logger,
		owner:      ownerName(opts.Label),
		ids:        identities{owner: map[string]*member{}},
		proposer:   proposer{clock: opts.Clock},
		chance:     newChance(opts.Clock),
		background: newBackground(),
		closed:     make(chan struct{}),
	}
	c.keeper.init(c)
	seen := map[string]int{}
	for i, n := range nodes {
		field := fmt.Sprintf("nodes[%d]", i)
		if n == nil {
			return nil, &ConfigError{Field: field, Value: nil, Bound: "a node"}
		}
		name := n.String()
		if j, twice := seen[name]; twice {
			return nil, &ConfigError{Field: field, Value: name, Bound: fmt.Sprintf("another node than nodes[%d]", j)}
		}
		seen[name] = i
		p, ok := n.(node.Prompt)
		c.members = append(c.members, &member{node: n, name: name, index: i, client: c, prompt: ok && p.ReturnsByDeadline()})
	}
	if err := c.guard.init(c, given); err != nil {
		return nil, err
	}
	if opts.TTL != 0 && !c.guard.on { // otherwise the markers say, at the first lock
		if err := checkDuration("TTL", opts.TTL, MinTTL, opts.MaxTTL); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// identify asks every node at once who it is. Only a server that is found
// twice is an error: a node that does not answer now is asked again before its
// first request.
func (c *Client) identify() error {
	// No longer than a frozen minority may hold us up.
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	errs := make(chan error, len(c.members))
	for _, m := range c.members {
		go func() { errs <- c.ids.check(ctx, m) }()
	}
	late := time.After(c.patience()) // a driver need not heed ctx
	for range c.members {
		select {
		case err := <-errs:
			if errors.Is(err, ErrConfig) {
				return err
			}
		case <-late:
			return nil
		}
	}
	return nil
}

// Close releases the leases that are still held, all at once, waits for requests
// in flight, and closes the nodes. With nodes that do not answer it takes two
// node time limits and a tenth of a second. The leases' contexts end with
// ErrReleased, and callers that wait for a lock get ErrClosed.
//
// Close can be called again, and from several goroutines: each call returns when
// the client is closed, with the same error. It must not be called from an
// Observer.
func (c *Client) Close() error {
	if !c.background.close() {
		<-c.closed
		return c.closeErr
	}
	patience := time.NewTimer(2*c.opts.NodeTimeout + 100*time.Millisecond)
	defer patience.Stop()
	c.keeper.close()
	c.background.wait(patience.C)
	c.inbox.close()
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.node.Close())
	}
	c.closeErr = errors.Join(errs...)
	close(c.closed)
	return c.closeErr
}

// isClosed reports that Close has begun.
func (c *Client) isClosed() bool {
	select {
	case <-c.background.closing:
		return true
	default:
		return false
	}
}

// isDone reports that Close has returned: the nodes are closed.
func (c *Client) isDone() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// key returns the key of a lock, or an error if the name cannot be one.
func (c *Client) key(name string) (string, error) {
	if name == "" {
		return "", &ConfigError{Field: "name", Value: name, Bound: fmt.Sprintf("1 to %d bytes of UTF-8 with no control characters", MaxNameLen-len(c.opts.Prefix))}
	}
	if err := checkText("name", name, 1, MaxNameLen-len(c.opts.Prefix)); err != nil {
		return "", err
	}
	return c.opts.Prefix + name, nil
}

// A value is 32 hexadecimal digits, random, then the owner.
const valueDigits = 32

func (c *Client) newValue() string {
	var random [valueDigits / 2]byte
	c.chance.value(&random)
	b := make([]byte, 0, valueDigits+1+len(c.owner))
	b = hex.AppendEncode(b, random[:])
	b = append(b, ':')
	return string(append(b, c.owner...))
}

// maxOwnerLen is more than host, process id and label have.
const maxOwnerLen = 400

// ownerOf returns the owner that a value names, and whether it is a value of
// ours at all. Anybody may have set it, and it is shown to users: an owner that
// cannot be is none of ours.
func ownerOf(value string) (string, bool) {
	if len(value) <= valueDigits || value[valueDigits] != ':' || checkText("owner", value[valueDigits+1:], 0, maxOwnerLen) != nil {
		return "", false
	}
	if _, err := hex.DecodeString(value[:valueDigits]); err != nil {
		return "", false
	}
	return value[valueDigits+1:], true
}

// ownerName returns host/pid/label.
func ownerName(label string) string {
	host, err := os.Hostname()
	if err != nil || checkText("host", host, 1, 255) != nil {
		host = "unknown"
	}
	if label == "" {
		label = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
		if checkText("label", label, 1, MaxLabelLen) != nil {
			label = "unknown"
		}
	}
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + label
}
