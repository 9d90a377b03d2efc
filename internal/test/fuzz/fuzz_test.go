package fuzz_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// presentable reports whether an error can be shown: one row of text, short
// enough to read.
func presentable(err error) bool {
	text := err.Error()
	return len(text) < 2000 && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// badField returns which field a ConfigError is about.
func badField(err error) string {
	var bad *redlatch.ConfigError
	if !errors.As(err, &bad) {
		return ""
	}
	return bad.Field
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "0", "1", "-1", "+1", "00001794740038819640", "9007199254740991", "9007199254740992", "000000000000000000001", "1e3", "0x10", "1_000", " 1", "١"} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, n uint64) {
		if token, err := node.ParseToken(text); err != nil {
			if badField(err) != "token" || token != 0 || !presentable(err) {
				t.Errorf("%q is %d, %q", text, token, err)
			}
		} else if token < 1 || token > node.MaxToken || strings.TrimLeft(text, "0") != strconv.FormatUint(uint64(token), 10) || len(text) > 20 {
			t.Errorf("%q is %d", text, token)
		}
		token := redlatch.Token(n)
		again, err := node.ParseToken(token.String())
		if valid := n >= 1 && n <= uint64(node.MaxToken); valid != (err == nil) || valid && again != token {
			t.Errorf("%d is shown as %q, and that is %d, %v", n, token, again, err)
		}
		if s := token.String(); len(s) != 20 || strings.Trim(s, "0123456789") != "" {
			t.Errorf("%d is shown as %q", n, s)
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "job", "a}b", "{}", "日本", "\x00", "a\nb", "\xff", "\u0085", "\u202e", strings.Repeat("x", 512), strings.Repeat("é", 257)} {
		f.Add("", name)
	}
	f.Add(strings.Repeat("p", 511), "x")
	f.Add(strings.Repeat("p", 512), "x")
	f.Add("p\x7f", "x")
	f.Fuzz(func(t *testing.T, prefix, name string) {
		c, err := redlatch.New(memory.Nodes(1), &redlatch.Options{Prefix: prefix})
		if err != nil {
			if badField(err) != "Prefix" || !presentable(err) {
				t.Errorf("prefix %q: %q", prefix, err)
			}
			return
		}
		defer c.Close()
		l, err := c.TryLock(context.Background(), name, nil)
		if err != nil {
			if badField(err) != "name" || !presentable(err) {
				t.Errorf("prefix %q, name %q: %q", prefix, name, err)
			}
			return
		}
		if len(prefix+name) > 512 || name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("prefix %q, name %q was taken", prefix, name)
		}
		if l.Name() != name {
			t.Errorf("%q is called %q", name, l.Name())
		}
		list, err := admin.New(c).List(context.Background())
		if err != nil || len(list.Locks) != 1 || list.Locks[0].Name != name {
			t.Errorf("%q is listed as %+v, %v", name, list, err)
		}
		if _, err := c.TryLock(context.Background(), name, nil); !errors.Is(err, redlatch.ErrHeld) || !presentable(err) {
			t.Errorf("%q a second time: %q", name, err)
		}
		if err := l.Release(context.Background()); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	})
}

// FuzzHandles parses texts as handles, both as they are and in the form of a
// handle.
func FuzzHandles(f *testing.F) {
	value := strings.Repeat("0", 32) + ":host/1/x"
	for _, text := range []string{
		"", "redlatch1.", "redlatch1.!", "redlatch2.e30", "{}", "null", "[]", `{"name":"job"}`,
		`{"name":"job","key":"job","value":"` + value + `","token":"00001794740038819640","ttl_ns":10000000000}`,
		`{"name":"job","key":"job","value":"` + value + `","token":"0","ttl_ns":-1}`,
		`{"name":"job","key":"job","value":"` + value + `","token":"-5","ttl_ns":1}`,
		`{"name":"job","key":"j\u0000b","value":"` + value + `","token":"1","ttl_ns":1}`,
		`{"name":"job","key":"job","value":"x","token":"1","ttl_ns":9223372036854775807}`,
		`{"name":"job","key":"job","value":"` + value + `","token":"1","ttl_ns":9223372036854775807}`,
	} {
		f.Add(text, "job")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		ctx := context.Background()
		nodes := memory.Nodes(1)
		c, err := redlatch.New(nodes, &redlatch.Options{NodeTimeout: time.Second})
		check.Must(t, err)
		defer c.Close()
		for _, handle := range []string{text, "redlatch1." + base64.RawURLEncoding.EncodeToString([]byte(text))} {
			for _, use := range []func() error{
				func() error { _, err := c.Attach(ctx, handle); return err },
				func() error { return c.Release(ctx, handle) },
			} {
				err := use()
				if field := badField(err); field != "handle" && field != "TTL" && !errors.Is(err, redlatch.ErrLost) || !presentable(err) {
					t.Errorf("%q: %q", handle, err)
				}
				if err != nil && len(handle) > 20 && strings.Contains(err.Error(), handle) {
					t.Errorf("the error gives the handle away: %q", err)
				}
			}
		}
		l, err := c.TryLock(ctx, name, nil)
		if err != nil {
			return
		}
		handle, err := l.Detach()
		check.Must(t, err)
		again, err := c.Attach(ctx, handle)
		if err != nil {
			t.Fatalf("%q: its own handle %q is refused: %v", name, handle, err)
		}
		if again.Name() != l.Name() || again.Token() != l.Token() || again.TTL() != l.TTL() || again.Owner() != l.Owner() || again.Handle() != handle {
			t.Errorf("the lease of %q came back as that of %q, token %d for %d", name, again.Name(), again.Token(), l.Token())
		}
		if err := c.Release(ctx, handle); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	})
}

// FuzzHolders puts any value in the place of a lock, because other clients can
// write there. A client that is refused shows it.
func FuzzHolders(f *testing.F) {
	for _, value := range []string{
		"x", "", "\x1b[2J", "\xff", strings.Repeat("0", 32) + ":host/1/x", strings.Repeat("0", 32) + ":\x1b[2J\n",
		strings.Repeat("0", 32) + ":" + strings.Repeat("long", 1000), strings.Repeat("0", 32) + ":\u202egnol", strings.Repeat("long", 1000),
	} {
		f.Add(value, int64(1000))
	}
	f.Fuzz(func(t *testing.T, value string, ms int64) {
		if value == "" || ms <= 0 || ms > 1e9 {
			return
		}
		n := memory.New(nil)
		taken := node.Request{Op: node.OpAcquire, Name: "job", Value: value, TTL: time.Duration(ms) * time.Hour}
		if reply, err := n.Do(context.Background(), taken); err != nil || reply.Status != node.Granted {
			t.Fatal(reply, err)
		}
		c, err := redlatch.New([]redlatch.Node{n}, nil)
		check.Must(t, err)
		defer c.Close()
		_, err = c.TryLock(context.Background(), "job", nil)
		if !errors.Is(err, redlatch.ErrHeld) || !presentable(err) {
			t.Errorf("held by %q: %q", value, err)
		}
	})
}
