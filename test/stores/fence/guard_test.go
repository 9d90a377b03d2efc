//go:build unix

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

func TestLowerTokensAreRefusedAndEqualOnesAreNot(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(t *testing.T, s store) {
		if highest, err := s.highest("r"); err != nil || highest != 0 {
			t.Fatalf("before the first claim: highest %d, %v", highest, err)
		}
		for _, c := range []struct{ token, staleAgainst node.Token }{
			{5, 0}, {5, 0}, {4, 5}, {9, 0}, {5, 9}, {8, 9}, {9, 0}, {node.MaxToken, 0}, {node.MaxToken - 1, node.MaxToken},
		} {
			err := s.Check(ctx, "r", c.token)
			if c.staleAgainst != 0 {
				wantStale(t, err, c.token, c.staleAgainst)
			} else if err != nil {
				t.Fatalf("token %d: %v", uint64(c.token), err)
			}
		}
		if highest, err := s.highest("r"); err != nil || highest != node.MaxToken {
			t.Errorf("at the end: highest %d, %v", highest, err)
		}
		if err := s.Check(ctx, "another", 1); err != nil {
			t.Errorf("another resource: %v", err)
		}
	})
}

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

func TestBadInputIsAnErrorAndWritesNothing(t *testing.T) {
	ctx := context.Background()
	negative := int64(-1)
	eachStore(t, func(t *testing.T, s store) {
		for _, token := range []node.Token{0, node.MaxToken + 1, 1 << 63, node.Token(negative)} {
			err := s.Check(ctx, "r", token)
			var bad *node.ConfigError
			if !errors.As(err, &bad) || bad.Field != "token" || !strings.Contains(bad.Bound, "9007199254740991") {
				t.Errorf("token %d: got %v, want a ConfigError", uint64(token), err)
			}
			if highest, err := s.highest("r"); err != nil || highest != 0 {
				t.Errorf("token %d was written: highest %d, %v", uint64(token), highest, err)
			}
		}
		for _, resource := range []string{"", strings.Repeat("x", fence.MaxResourceLen+1)} {
			if err := s.Check(ctx, resource, 1); !errors.Is(err, node.ErrConfig) {
				t.Errorf("resource %q: got %v, want ErrConfig", resource, err)
			}
		}
		if _, column := s.ReadGuard.(columnGuard); column {
			return // other restrictions on the key depend on the table
		}
		for _, resource := range []string{"a\nb", "a\x00", "\x7f", "a\u0085", "\xff"} {
			if err := s.Check(ctx, resource, 1); !errors.Is(err, node.ErrConfig) {
				t.Errorf("resource %q: got %v, want ErrConfig", resource, err)
			}
		}
	})
}

func TestNegativeTokensAreShownAsSuch(t *testing.T) {
	gate, _ := fence.NewGate(nil)
	n := int64(-7)
	if err := gate.Check(context.Background(), "r", node.Token(n)); err == nil || !strings.Contains(err.Error(), "token is -7") {
		t.Errorf("got %v", err)
	}
}

// tokens draws tokens from ranges in which rounding would show: just below
// 2^53, and with 16 digits.
func tokens() *rapid.Generator[node.Token] {
	return rapid.Custom(func(t *rapid.T) node.Token {
		return node.Token(rapid.OneOf(
			rapid.Uint64Range(uint64(node.MaxToken)-1000, uint64(node.MaxToken)),
			rapid.Uint64Range(1_000_000_000_000_000, uint64(node.MaxToken)),
			rapid.Uint64Range(999_999_999_999_000, 1_000_000_000_001_000),
			rapid.Uint64Range(1, 1000),
		).Draw(t, "token"))
	})
}

// TestTokensSurviveEveryPathExactly compares each token with its neighbours: a
// path that rounds would confuse them.
func TestTokensSurviveEveryPathExactly(t *testing.T) {
	ctx := context.Background()
	eachStore(t, func(t *testing.T, s store) {
		var resources atomic.Int64
		rapid.Check(t, func(t *rapid.T) {
			token, resource := tokens().Draw(t, "token"), fmt.Sprint("r", resources.Add(1))
			must(t, s.Check(ctx, resource, token))
			if highest, err := s.highest(resource); err != nil || highest != token {
				t.Fatalf("%d came back as %d, %v", uint64(token), uint64(highest), err)
			}
			if token > 1 {
				var stale *fence.StaleError
				if err := s.Check(ctx, resource, token-1); !errors.As(err, &stale) || stale.Token != token-1 || stale.Highest != token {
					t.Fatalf("%d after %d: got %v", uint64(token-1), uint64(token), err)
				}
			}
			if token < node.MaxToken {
				must(t, s.Check(ctx, resource, token+1))
				if highest, err := s.highest(resource); err != nil || highest != token+1 {
					t.Fatalf("%d came back as %d, %v", uint64(token+1), uint64(highest), err)
				}
			}
		})
	})
}

// TestAcceptedTokensNeverGoBack has many claim one resource at once, from its
// first claim on.
func TestAcceptedTokensNeverGoBack(t *testing.T) {
	const workers, each, spread = 8, 25, 500
	ctx := context.Background()
	type claim struct {
		token, highest node.Token
		accepted       bool
		before, after  int64
	}
	eachStore(t, func(t *testing.T, s store) {
		var clock atomic.Int64
		var wg sync.WaitGroup
		claims := make([][]claim, workers)
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					// Rising overall, so that not only the first few are
					// accepted.
					c := claim{token: node.Token(1 + i*spread/2 + rand.IntN(spread))}
					c.before = clock.Add(1)
					err := s.Check(ctx, "r", c.token)
					c.after = clock.Add(1)
					var stale *fence.StaleError
					switch {
					case err == nil:
						c.accepted = true
					case errors.As(err, &stale):
						c.highest = stale.Highest
					default:
						t.Errorf("token %d: %v", c.token, err)
						return
					}
					claims[w] = append(claims[w], c)
				}
			})
		}
		wg.Wait()
		var all, accepted []claim
		for _, c := range claims {
			all = append(all, c...)
		}
		var top node.Token
		for _, c := range all {
			if c.accepted {
				accepted = append(accepted, c)
				top = max(top, c.token)
			}
		}
		for _, c := range accepted {
			for _, later := range accepted {
				if c.after < later.before && later.token < c.token {
					t.Fatalf("%d was accepted after %d", later.token, c.token)
				}
			}
		}
		for _, c := range all {
			if c.accepted {
				continue
			}
			because := false
			for _, a := range accepted {
				because = because || a.token == c.highest && a.token > c.token && a.before < c.after
			}
			if !because {
				t.Fatalf("%d was refused because of %d, which nobody had", c.token, c.highest)
			}
		}
		if len(accepted) == len(all) || len(accepted) < each/2 {
			t.Errorf("%d of %d accepted: this run shows nothing", len(accepted), len(all))
		}
		if highest, err := s.highest("r"); err != nil || highest != top {
			t.Errorf("highest is %d, %v; the highest accepted is %d", highest, err, top)
		}
	})
}

func TestAnEndedContextIsNoVerdict(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	eachStore(t, func(t *testing.T, s store) {
		if err := s.Check(ctx, "r", 7); !errors.Is(err, context.Canceled) || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v", err)
		}
		if highest, err := s.highest("r"); err != nil || highest != 0 {
			t.Errorf("the token was written: highest %d, %v", highest, err)
		}
	})
}
