package fence

import (
	"cmp"
	"context"
	_ "embed" // for the scripts
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// RedisCheck is the bare check for scripts of one's own: Lua that defines the
// function redlatch_fence(key, token, retention). Put it at the head of a
// script, call it before anything is written, with a token in the form of
// Token.String, and write nothing unless it returns false:
//
//	script := fence.RedisCheck + `
//	if redlatch_fence(KEYS[1], ARGV[1]) then return 0 end
//	redis.call('LPUSH', KEYS[2], ARGV[2])
//	return 1`
//
// A reader's script, which writes nothing else, calls redlatch_fence_read(key,
// readers, token, retention) instead, with another key for what readers leave.
// The text itself says more.
//
//go:embed lua/fence.lua
var RedisCheck string

//go:embed lua/check.lua
var checkSource string

//go:embed lua/read.lua
var readSource string

//go:embed lua/set.lua
var setSource string

//go:embed lua/delete.lua
var deleteSource string

//go:embed lua/get.lua
var getSource string

var (
	checkScript  = redis.NewScript("fence check", RedisCheck+checkSource)
	readScript   = redis.NewScript("fence check of a reader", RedisCheck+readSource)
	setScript    = redis.NewScript("fence set", RedisCheck+setSource)
	deleteScript = redis.NewScript("fence delete", RedisCheck+deleteSource)
	getScript    = redis.NewScript("fence get", getSource)
)

// RedisOptions are the settings of a Redis guard. The zero value works.
type RedisOptions struct {
	// Prefix begins the names of the keys, so that a resource can have the
	// name of the lock that protects it. It has no braces. Defaults to
	// "fence:".
	Prefix string

	// Retention is how long a token is remembered after it was last used. A
	// stale writer that comes later is not recognized. Defaults to for ever.
	Retention time.Duration
}

// Redis is a guard in a Redis server, with values that are set under it. For
// the resource name it has up to three keys, in one cluster slot:
// fence:{name}:token has the highest token as 20 digits, fence:{name}:value the
// value as it is, for other clients to read, and fence:{name}:readers what
// readers need to know of writers. In the keys % and } are written as %25 and
// %7D.
//
// Writers know the first key alone. If the third key is lost, the highest token
// counts as a writer's.
//
// Use a server that neither evicts keys nor loses writes: see the package
// comment.
type Redis struct {
	driver    redis.Driver
	prefix    string
	retention string // ms; 0 for ever
}

// NewRedis returns a guard in a Redis server. It sends nothing. Packages
// store/redis/rueidis and store/redis/goredis make drivers of clients.
func NewRedis(driver redis.Driver, opts *RedisOptions) (*Redis, error) {
	o := optional.Value(opts)
	if driver == nil {
		return nil, &node.ConfigError{Field: "driver", Value: nil, Bound: "a driver"}
	}
	o.Prefix = cmp.Or(o.Prefix, "fence:")
	if len(o.Prefix) > MaxResourceLen || !utf8.ValidString(o.Prefix) || strings.ContainsFunc(o.Prefix, unicode.IsControl) ||
		strings.ContainsAny(o.Prefix, "{}") {
		return nil, &node.ConfigError{Field: "Prefix", Value: o.Prefix, Bound: "at most 255 bytes of UTF-8 without control characters and braces"}
	}
	retention, err := milliseconds("Retention", o.Retention)
	if err != nil {
		return nil, err
	}
	return &Redis{driver: driver, prefix: o.Prefix, retention: retention}, nil
}

// milliseconds rounds up: a token may be kept longer than asked for, never
// shorter.
func milliseconds(field string, d time.Duration) (string, error) {
	if d < 0 {
		return "", &node.ConfigError{Field: field, Value: d, Bound: "positive, or 0 for ever"}
	}
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10), nil
}

// escape keeps a name from ending the hash tag that contains it.
var escape = strings.NewReplacer("%", "%25", "}", "%7D")

// keys returns the key of the resource's token, and others. The text in braces
// alone decides the slot.
func (r *Redis) keys(resource string, others ...string) []string {
	stem := r.prefix + "{" + escape.Replace(resource) + "}:"
	keys := []string{stem + "token"}
	for _, other := range others {
		keys = append(keys, stem+other)
	}
	return keys
}

// Check claims the resource for the token, or returns a *StaleError.
func (r *Redis) Check(ctx context.Context, resource string, token node.Token) error {
	return r.claim(ctx, checkScript, r.keys(resource), resource, token)
}

// CheckRead claims the resource for a reader's token, or returns a *StaleError
// if a writer with a higher token has claimed it. Get may be called after it.
func (r *Redis) CheckRead(ctx context.Context, resource string, token node.Token) error {
	return r.claim(ctx, readScript, r.keys(resource, "readers"), resource, token)
}

// Set sets the resource's value for a time to live, 0 being for ever, or
// returns a *StaleError and leaves everything as it was. When the value
// expires, the token stays.
func (r *Redis) Set(ctx context.Context, resource, value string, token node.Token, ttl time.Duration) error {
	ms, err := milliseconds("ttl", ttl)
	if err != nil {
		return err
	}
	return r.claim(ctx, setScript, r.keys(resource, "value"), resource, token, value, ms)
}

// Delete deletes the resource's value, or returns a *StaleError and leaves
// everything as it was. The token stays.
func (r *Redis) Delete(ctx context.Context, resource string, token node.Token) error {
	return r.claim(ctx, deleteScript, r.keys(resource, "value"), resource, token)
}

// claim runs a script that begins with the check, on keys of the resource.
func (r *Redis) claim(ctx context.Context, script *redis.Script, keys []string, resource string, token node.Token, more ...string) error {
	if err := checkInput(resource, token); err != nil {
		return err
	}
	reply, err := r.driver.Eval(ctx, redis.Call{
		Script: script,
		Keys:   keys,
		Args:   append([]string{token.String(), r.retention}, more...),
	})
	if err != nil {
		return fmt.Errorf("redlatch: %s of %q: %w", script.Name, resource, ended(ctx, err))
	}
	if len(reply) == 2 && reply[0] == "accepted" {
		return nil
	}
	if len(reply) == 2 && reply[0] == "stale" {
		if highest, err := node.ParseToken(reply[1]); err == nil {
			return &StaleError{Resource: resource, Token: token, Highest: highest}
		}
	}
	return fmt.Errorf("redlatch: unexpected reply %.200q to %s of %q", reply, script.Name, resource)
}

// Value is what a resource has in Redis, as of one moment.
type Value struct {
	Text    string     // the value
	Exists  bool       // whether there is one
	Highest node.Token // the highest token seen; 0 if none
}

// Get returns the resource's value. It needs no token: a holder that writes
// based on the value claims the resource first.
func (r *Redis) Get(ctx context.Context, resource string) (Value, error) {
	if err := checkResource(resource); err != nil {
		return Value{}, err
	}
	reply, err := r.driver.Eval(ctx, redis.Call{Script: getScript, Keys: r.keys(resource, "value")})
	if err != nil {
		return Value{}, fmt.Errorf("redlatch: %s of %q: %w", getScript.Name, resource, ended(ctx, err))
	}
	if len(reply) != 3 || reply[0] != "found" && reply[0] != "absent" {
		return Value{}, fmt.Errorf("redlatch: unexpected reply %.200q to %s of %q", reply, getScript.Name, resource)
	}
	v := Value{Text: reply[2], Exists: reply[0] == "found"}
	if reply[1] != "" {
		if v.Highest, err = node.ParseToken(reply[1]); err != nil {
			return Value{}, fmt.Errorf("redlatch: the token of %q is kept wrongly: %w", resource, err)
		}
	}
	return v, nil
}
