package system

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/redis"
	redlatchrueidis "github.com/redlatch/redlatch/redis/rueidis"
)

// scriptFloor sends over raw sockets what redlatch sends: the same scripts with
// the same arguments, but with a value and a token of its own for each pair.
type scriptFloor struct {
	*wire
	locks            int // that are taken at once
	acquire, release exchange

	lastToken int64
	// took is how long the last acquire took: the round trip with which a
	// hand-over is compared.
	took time.Duration
}

// exchange is what redlatch sends to each server.
type exchange []command

// command is a command with the places of what is new in each pair.
type command struct {
	args          []string
	value, tokens []int // which arguments begin with the value, and which are the token
}

// floorName is the lock that is learned from and taken. It is the floor's own:
// a name cannot be put into keys that are not understood.
const floorName = "bench/floor"

func openScriptFloor(locks int, options func() redlatch.Options) func(context.Context, []string) (Locker, error) {
	return func(ctx context.Context, addresses []string) (Locker, error) {
		f := &scriptFloor{locks: locks}
		var err error
		// On a busy machine a server may be late, and be asked again: such a pair
		// is no model.
		for range 10 {
			if f.acquire, f.release, err = learn(ctx, addresses, options()); !errors.Is(err, errDisturbed) {
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("floor of redlatch's scripts: %w", err)
		}
		f.wire, err = dialAll(addresses)
		return f, err
	}
}

func (f *scriptFloor) Lock(context.Context, string) (Held, error) {
	values := make([]string, f.locks)
	for i := range values {
		values[i] = newValue()
	}
	// Tokens grow, and are about the time in microseconds.
	f.lastToken = max(f.lastToken+1, time.Now().UnixMicro())
	token := fmt.Sprintf("%020d", f.lastToken)
	start := time.Now()
	if err := f.exchange(f.acquire, values, token); err != nil {
		return nil, err
	}
	f.took = time.Since(start)
	return floorHeld(func() error { return f.exchange(f.release, values, token) }), nil
}

func (f *scriptFloor) exchange(e exchange, values []string, token string) error {
	return f.round(f.locks, number, func(server, n int) []string {
		c := &e[server]
		value := values[n]
		for _, i := range c.value {
			c.args[i] = value + c.args[i][len(value):]
		}
		for _, i := range c.tokens {
			c.args[i] = token
		}
		if n == 0 {
			return c.args
		}
		// A name that begins with the one that was learned is in every key in its
		// place.
		args := slices.Clone(c.args)
		for i := range args {
			if i >= 3 && strings.Contains(args[i], floorName) {
				args[i] = strings.Replace(args[i], floorName, numbered(floorName, n), 1)
			}
		}
		return args
	})
}

// number reports whether a reply is a number, as that of a script which did what
// it was asked, and not a list with a status.
func number(r resp.Reply) bool { return r.Items == nil && !r.Nil }

// LastAcquire returns how long the acquire of the last lock took, if this is
// the floor that sends redlatch's scripts.
func LastAcquire(l Locker) (time.Duration, bool) {
	f, ok := l.(*scriptFloor)
	if !ok {
		return 0, false
	}
	return f.took, true
}

// recorder is a driver that writes down what redlatch has it send about
// floorName.
type recorder struct {
	redis.Subscriber
	mu     sync.Mutex // guards what follows
	sent   [][]string
	others []string // the replies that are no numbers
}

func (r *recorder) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	reply, err := r.Subscriber.Eval(ctx, call)
	if err == nil && len(call.Keys) > 0 && call.Keys[0] == floorName {
		args := []string{"EVALSHA", call.Script.SHA1, strconv.Itoa(len(call.Keys))}
		r.mu.Lock()
		r.sent = append(r.sent, append(append(args, call.Keys...), call.Args...))
		if len(reply) != 1 {
			r.others = append(r.others, reply[0])
		}
		r.mu.Unlock()
	}
	return reply, err
}

var (
	value = regexp.MustCompile(`^[0-9a-f]{32}`)
	token = regexp.MustCompile(`^[0-9]{20}$`)
)

var errDisturbed = errors.New("not the commands of an undisturbed pair")

// learn has redlatch take and release the lock three times. From the first grants
// the nodes learn which server they ask, and so the first pair is no model.
// Nothing is assumed of the arguments but that those which differ are the value,
// as 32 hexadecimal digits and a rest, and the token, as 20 digits.
func learn(ctx context.Context, addresses []string, options redlatch.Options) (acquire, release exchange, err error) {
	var nodes []redlatch.Node
	var recorders []*recorder
	for _, a := range addresses {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{a}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			return acquire, release, err
		}
		defer client.Close()
		driver, err := redlatchrueidis.Driver(client)
		if err != nil {
			return acquire, release, err
		}
		r := &recorder{Subscriber: driver.(redis.Subscriber)}
		nodes, recorders = append(nodes, redis.New(r, "redis://"+a)), append(recorders, r)
	}
	client, err := redlatch.New(nodes, options)
	if err != nil {
		return acquire, release, err
	}
	defer client.Close()
	settle := func() { time.Sleep(30 * time.Millisecond) } // a majority was waited for
	for pair := range 3 {
		if pair == 1 {
			for _, r := range recorders {
				r.mu.Lock()
				r.sent, r.others = nil, nil
				r.mu.Unlock()
			}
		}
		lease, err := client.Lock(ctx, floorName, redlatch.LockOptions{})
		if err != nil {
			return acquire, release, err
		}
		settle()
		if err := lease.Release(ctx); err != nil {
			return acquire, release, err
		}
		settle()
	}
	if acquire, err = compare(recorders, 0); err == nil {
		release, err = compare(recorders, 1)
	}
	return acquire, release, err
}

// compare makes an exchange of command at and the one two later: what differs
// is new in each pair.
func compare(recorders []*recorder, at int) (exchange, error) {
	var e exchange
	for _, r := range recorders {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.sent) != 4 || len(r.sent[at]) != len(r.sent[at+2]) || len(r.others) > 0 {
			return e, fmt.Errorf("%w: %q, answered %q", errDisturbed, r.sent, r.others)
		}
		c := command{args: r.sent[at+2]}
		for i, arg := range r.sent[at] {
			switch other := c.args[i]; {
			case arg == other:
			case token.MatchString(arg) && token.MatchString(other):
				c.tokens = append(c.tokens, i)
			case value.MatchString(arg) && value.MatchString(other) && arg[32:] == other[32:]:
				c.value = append(c.value, i)
			default:
				return e, fmt.Errorf("argument %d of %q is %q in one pair and %q in the next: neither a value nor a token", i, c.args, arg, other)
			}
		}
		e = append(e, c)
	}
	return e, nil
}
