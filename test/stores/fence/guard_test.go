//go:build unix

package fence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

func TestResourcesAreToldApartByEveryByte(t *testing.T) {
	ctx := context.Background()
	names := []string{"a", "A", "a ", " a", "á", "a\u0301", "ß", "ss", "a}b", "a{b", "{a}", "{}", "a%7Db", "a%b", "'", `"`, "`", "\\", "a/b", "$1", "?", ";--",
		"日本", strings.Repeat("x", fence.MaxResourceLen), strings.Repeat("x", fence.MaxResourceLen-1), strings.Repeat("é", fence.MaxResourceLen/2)}
	eachStore(t, func(t *testing.T, s store) {
		for i, name := range names {
			if err := s.Check(ctx, name, node.Token(100+i)); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
		for i, name := range names {
			if highest, err := s.highest(name); err != nil || highest != node.Token(100+i) {
				t.Errorf("%q: highest is %d, %v, want %d", name, highest, err, 100+i)
			}
		}
	})
}

// TestCallsThatAreRefusedWriteNothing is about writers and readers: what they ask for
// is not valid, or their context has ended.
func TestCallsThatAreRefusedWriteNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	eachStore(t, func(t *testing.T, s store) {
		for who, check := range map[string]func(context.Context, string, node.Token) error{"writer": s.Check, "reader": s.CheckRead} {
			for _, token := range []node.Token{0, node.MaxToken + 1, 1 << 63} {
				var bad *node.ConfigError
				if err := check(context.Background(), "r", token); !errors.As(err, &bad) || bad.Field != "token" || !strings.Contains(bad.Bound, "9007199254740991") {
					t.Errorf("%s with token %d: got %v, want a ConfigError", who, uint64(token), err)
				}
			}
			names := []string{"", strings.Repeat("x", fence.MaxResourceLen+1)}
			if _, column := s.ReadGuard.(columnGuard); !column { // other restrictions on its key depend on the table
				names = append(names, "a\nb", "a\x00", "\x7f", "a\u0085", "\xff")
			}
			for _, resource := range names {
				if err := check(context.Background(), resource, 1); !errors.Is(err, node.ErrConfig) {
					t.Errorf("%s of resource %q: got %v, want ErrConfig", who, resource, err)
				}
			}
			if err := check(ctx, "r", 7); !errors.Is(err, context.Canceled) || errors.Is(err, fence.ErrStale) {
				t.Errorf("%s with an ended context: %v", who, err)
			}
		}
		if highest, err := s.highest("r"); err != nil || highest != 0 {
			t.Errorf("something was written: highest %d, %v", highest, err)
		}
	})
}
