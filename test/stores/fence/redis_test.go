//go:build unix

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// eachRedis runs a test with both drivers and both protocols.
func eachRedis(t *testing.T, test func(t *testing.T, server *servertest.Server, driver redis.Driver)) {
	server := servertest.Redis(t, 1)[0]
	for name, open := range redisClients {
		t.Run(name, func(t *testing.T) {
			server.Do("FLUSHALL")
			test(t, server, open(t, server.Addr()))
		})
	}
}

func wantValue(t *testing.T, guard *fence.Redis, resource string, want fence.Value) {
	t.Helper()
	got, err := guard.Get(context.Background(), resource)
	must(t, err)
	if got != want {
		t.Fatalf("%q has %+v, want %+v", resource, got, want)
	}
}

func TestStaleSetLeavesTheValue(t *testing.T) {
	ctx := context.Background()
	eachRedis(t, func(t *testing.T, server *servertest.Server, driver redis.Driver) {
		guard := newRedis(t, driver)
		wantValue(t, guard, "r", fence.Value{})
		binary := "\x00\xff\r\n'"
		must(t, guard.Set(ctx, "r", binary, 6, 0))
		wantStale(t, guard.Set(ctx, "r", "stale", 5, 0), 5, 6)
		wantStale(t, guard.Delete(ctx, "r", 5), 5, 6)
		wantStale(t, guard.Check(ctx, "r", 5), 5, 6)
		wantValue(t, guard, "r", fence.Value{Text: binary, Exists: true, Highest: 6})
		must(t, guard.Set(ctx, "r", "", 6, 0))
		wantValue(t, guard, "r", fence.Value{Text: "", Exists: true, Highest: 6})
		// A claim alone is enough to shut the older holder out.
		must(t, guard.Check(ctx, "r", 8))
		wantStale(t, guard.Set(ctx, "r", "stale", 7, 0), 7, 8)
		wantValue(t, guard, "r", fence.Value{Text: "", Exists: true, Highest: 8})
		// Other clients read the value as it is.
		must(t, guard.Set(ctx, "r", "plain", 8, 0))
		if got := server.Do("GET", "fence:{r}:value"); got != "plain" {
			t.Errorf("GET says %q", got)
		}
	})
}

func TestDeletedAndExpiredValuesKeepTheirToken(t *testing.T) {
	ctx := context.Background()
	eachRedis(t, func(t *testing.T, server *servertest.Server, driver redis.Driver) {
		guard := newRedis(t, driver)
		must(t, guard.Set(ctx, "deleted", "v", 5, 0))
		must(t, guard.Delete(ctx, "deleted", 6))
		must(t, guard.Set(ctx, "expired", "v", 6, time.Hour))
		if left, _ := strconv.Atoi(server.Do("PTTL", "fence:{expired}:value")); left < 3_500_000 || left > 3_600_000 {
			t.Errorf("the value lives for %d ms", left)
		}
		server.Do("PEXPIRE", "fence:{expired}:value", "0") // its time is up
		for _, resource := range []string{"deleted", "expired"} {
			wantValue(t, guard, resource, fence.Value{Highest: 6})
			wantStale(t, guard.Set(ctx, resource, "back again", 5, 0), 5, 6)
			wantValue(t, guard, resource, fence.Value{Highest: 6})
			if left := server.Do("PTTL", "fence:{"+resource+"}:token"); left != "-1" {
				t.Errorf("the token of %s lives for %s ms", resource, left)
			}
		}
		// A value without expiry replaces one with an hour to live.
		for _, ttl := range []time.Duration{time.Hour, 0} {
			must(t, guard.Set(ctx, "both", "v", 6, ttl))
		}
		if left := server.Do("PTTL", "fence:{both}:value"); left != "-1" {
			t.Errorf("the value lives for %s ms", left)
		}
	})
}

// TestKeysOfAResourceShareASlot compares what decides the slot of a key in a cluster: the
// text from the first { to the next }, if there is some between them.
func TestKeysOfAResourceShareASlot(t *testing.T) {
	for _, name := range []string{"a", "a}b", "{}x", "{}", "}{", "{a}", "{a}{b}", "a{b", "a{b}c}", "{{a}}", "}", "{", "a}b{c}", "%7D", "日本{}"} {
		var keys []string
		guard := newRedis(t, fakeDriver{err: errors.New("not sent"), keys: &keys})
		guard.Set(t.Context(), name, "", 6, 0)
		guard.CheckRead(t.Context(), name, 6)
		_, rest, _ := strings.Cut(keys[0], "{")
		tag, _, _ := strings.Cut(rest, "}")
		for _, key := range keys {
			if tag == "" || !strings.HasPrefix(key, "fence:{"+tag+"}:") {
				t.Errorf("%q: the key %q does not begin with that of %q", name, key, keys[0])
			}
		}
	}
}

func TestTheBareCheckRefusesWhatIsNoToken(t *testing.T) {
	ctx := context.Background()
	write := redis.NewScript("write", fence.RedisCheck+`
		if redlatch_fence(KEYS[1], ARGV[1]) then return {'stale'} end
		redis.call('SET', KEYS[2], 'written')
		return {'written'}`)
	eachRedis(t, func(t *testing.T, server *servertest.Server, driver redis.Driver) {
		call := func(token string) ([]string, error) {
			return driver.Eval(ctx, redis.Call{Script: write, Keys: []string{"highest", "value"}, Args: []string{token}})
		}
		for _, token := range []string{"", "6", "1763000000123456", fmt.Sprintf("%020d", 0), fmt.Sprintf("%020d", node.MaxToken+1),
			fmt.Sprintf("%021d", 6), "-0000000000000000006", "0000000000000000000x", "1.7630000001235e+150"} {
			if reply, err := call(token); err == nil || !strings.Contains(err.Error(), "20 digits") {
				t.Errorf("%q: %q, %v", token, reply, err)
			}
		}
		if keys := server.Do("KEYS", "*"); keys != "" {
			t.Errorf("something was written: %s", keys)
		}
		// A token key with an invalid value shuts all writers out.
		for _, wrong := range []string{"5", "", "~", "0000000000000000000x"} {
			server.Do("SET", "highest", wrong)
			if reply, err := call(node.Token(6).String()); err == nil || !strings.Contains(err.Error(), "holds something else") {
				t.Errorf("%q: %q, %v", wrong, reply, err)
			}
		}
		server.Do("DEL", "highest")
		server.Do("HSET", "highest", "a", "b")
		if reply, err := call(node.Token(6).String()); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("a hash: %q, %v", reply, err)
		}
		if got := server.Do("EXISTS", "value"); got != "0" {
			t.Error("the value was written")
		}
	})
}

// fakeDriver replies with what no script of ours returns, or fails as some clients do
// when a deadline passes: with an error of its own.
type fakeDriver struct {
	redis.Driver
	reply []string
	err   error
	keys  *[]string // of all calls; nil if they do not matter
}

func (d fakeDriver) Eval(_ context.Context, call redis.Call) ([]string, error) {
	if d.keys != nil {
		*d.keys = append(*d.keys, call.Keys...)
	}
	return d.reply, d.err
}

func TestRedisRefusesBadOptions(t *testing.T) {
	driver := fakeDriver{err: errors.New("something was sent")}
	guard := newRedis(t, driver)
	_, prefix := fence.NewRedis(driver, &fence.RedisOptions{Prefix: "{a}"})
	_, retention := fence.NewRedis(driver, &fence.RedisOptions{Retention: -1})
	_, missing := fence.NewRedis(nil, nil)
	for field, err := range map[string]error{
		"Prefix": prefix, "Retention": retention, "driver": missing,
		"ttl":      guard.Set(t.Context(), "r", "v", 6, -time.Second),
		"token":    guard.Set(t.Context(), "r", "v", 0, 0),
		"resource": guard.Delete(t.Context(), "", 6),
	} {
		if bad, ok := errors.AsType[*node.ConfigError](err); !ok || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestErrorsOfAnEndedContextSaySo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	guard := newRedis(t, fakeDriver{err: errors.New("i/o timeout")})
	_, err := guard.Get(ctx, "r")
	for _, err := range []error{guard.Check(ctx, "r", 6), err} {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "i/o timeout") {
			t.Errorf("got %v", err)
		}
	}
	if err := guard.Check(context.Background(), "r", 6); err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fence.ErrStale) {
		t.Errorf("got %v", err)
	}
}

func TestOddRepliesAreNeverAYes(t *testing.T) {
	for _, reply := range [][]string{nil, {}, {"accepted"}, {"stale"}, {"stale", ""}, {"stale", "x"}, {"OK", "1"}, {"accepted", "1", "2"}, {"found", "x", "v"}} {
		guard := newRedis(t, fakeDriver{reply: reply})
		if err := guard.Check(context.Background(), "r", 6); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("Check, told %q: %v", reply, err)
		}
		if v, err := guard.Get(context.Background(), "r"); err == nil {
			t.Errorf("Get, told %q: %+v", reply, v)
		}
	}
}

func TestKeysAreRetainedForAsLongAsAskedAndThoseOfReadersMayBeLost(t *testing.T) {
	ctx := context.Background()
	eachRedis(t, func(t *testing.T, server *servertest.Server, driver redis.Driver) {
		guard, err := fence.NewRedis(driver, &fence.RedisOptions{Prefix: "p:", Retention: time.Hour + time.Microsecond})
		must(t, err)
		for i, write := range []func() error{
			func() error { return guard.Check(ctx, "r", 4) },
			func() error { return guard.Delete(ctx, "r", 4) },
			func() error { return guard.Set(ctx, "r", "v", 4, 0) },
			func() error { return guard.CheckRead(ctx, "r", 6) },
			func() error { return guard.CheckRead(ctx, "r", 5) },
		} {
			keys := []string{"p:{r}:token", "p:{r}:readers"}[:1+i/3] // a writer has one key
			for _, key := range keys {
				server.Do("PEXPIRE", key, "1000")
			}
			must(t, write())
			for _, key := range keys {
				if left, _ := strconv.Atoi(server.Do("PTTL", key)); left < 3_500_000 || left > 3_600_001 {
					t.Errorf("write %d: %s lives for %d ms", i, key, left)
				}
			}
		}
		wantValue(t, guard, "r", fence.Value{Text: "v", Exists: true, Highest: 6})
		// Without it the highest counts as a writer's: the safe side.
		server.Do("DEL", "p:{r}:readers")
		wantStale(t, guard.CheckRead(ctx, "r", 5), 5, 6)
		for _, wrong := range []string{"6", "", strings.Repeat("x", 40)} {
			server.Do("SET", "p:{r}:readers", wrong)
			if err := guard.CheckRead(ctx, "r", 7); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
	})
}

// TestScriptsOfOnesOwnAreFencedByTheBareCheck has scripts of a writer and of a reader,
// on the keys of a guard.
func TestScriptsOfOnesOwnAreFencedByTheBareCheck(t *testing.T) {
	ctx := context.Background()
	push := redis.NewScript("push", fence.RedisCheck+`
		local highest = redlatch_fence(KEYS[1], ARGV[1])
		if highest then return {'stale', highest} end
		redis.call('SET', KEYS[3], ARGV[1])
		return {'pushed'}`)
	get := redis.NewScript("get", fence.RedisCheck+`
		local highest = redlatch_fence_read(KEYS[1], KEYS[2], ARGV[1])
		if highest then return {'stale', highest} end
		return {redis.call('GET', KEYS[3]) or ''}`)
	eachRedis(t, func(t *testing.T, server *servertest.Server, driver redis.Driver) {
		guard := newRedis(t, driver)
		for _, c := range []struct {
			script *redis.Script
			token  node.Token
			want   string
		}{
			{push, 6, "[pushed]"}, {push, 5, "[stale 00000000000000000006]"}, {get, 5, "[stale 00000000000000000006]"},
			{get, 8, "[00000000000000000006]"}, {get, 7, "[00000000000000000006]"}, {push, 7, "[stale 00000000000000000008]"},
		} {
			reply, err := driver.Eval(ctx, redis.Call{Script: c.script, Args: []string{c.token.String()},
				Keys: []string{"fence:{r}:token", "fence:{r}:readers", "fence:{r}:value"}})
			if err != nil || fmt.Sprint(reply) != c.want {
				t.Errorf("%s with token %d: %q, %v, want %s", c.script.Name, c.token, reply, err, c.want)
			}
		}
		wantStale(t, guard.Set(ctx, "r", "late", 7, 0), 7, 8)
	})
}
