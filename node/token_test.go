package node

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestTokenTextComparesLikeTheNumber(t *testing.T) {
	near := []uint64{1, 999_999_999_999_999, 1_763_000_000_000_000, 9_999_999_999_999_999 / 2, uint64(MaxToken) - 1000}
	draw := func() Token { return Token(near[rand.IntN(len(near))] + rand.Uint64N(1001)) }
	for range 1000 {
		a, b := draw(), draw()
		if (a < b) != (a.String() < b.String()) || (a == b) != (a.String() == b.String()) {
			t.Fatalf("%d and %d compare otherwise as %q and %q", a, b, a, b)
		}
		for _, text := range []string{a.String(), strconv.FormatUint(uint64(a), 10)} {
			back, err := ParseToken(text)
			if err != nil || back != a {
				t.Fatalf("%d came back from %q as %d, %v", a, text, back, err)
			}
		}
		if uint64(float64(a)) != uint64(a) {
			t.Fatalf("%d is not exact as a double", a)
		}
	}
}

func TestBadTokensAreRefused(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "+1", "9007199254740992", "1e3", "0x10", "1 ", "000000000000000000001", "18446744073709551616"} {
		_, err := ParseToken(text)
		if bad, ok := errors.AsType[*ConfigError](err); !ok || bad.Field != "token" || !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v, want a ConfigError about the token", text, err)
		}
	}
}

func TestATokenIsJudgedByTheFenceAndTheClock(t *testing.T) {
	const window = 10 * time.Second
	now := time.UnixMicro(1_700_000_000_000_000)
	at := func(d time.Duration) Token { return Token(now.Add(d).UnixMicro()) }
	for _, c := range []struct {
		what         string
		token, fence Token
		now          time.Time
		want         Status
	}{
		{"now, no fence", at(0), 0, now, Granted},
		{"at the edges of the window", at(-window), 0, now, Granted},
		{"at the edges of the window", at(window), 0, now, Granted},
		{"beyond them", at(-window) - 1, 0, now, Behind},
		{"beyond them", at(window) + 1, 0, now, Ahead},
		{"at the fence", at(0), at(0), now, Stale},
		{"below the fence", at(0) - 1, at(0), now, Stale},
		{"above the fence", at(0) + 1, at(0), now, Granted},
		{"stale comes before behind", at(-time.Hour), at(0), now, Stale},
		{"above the fence and behind the window", at(-window) - 1, at(-time.Hour), now, Behind},
		{"a leap above a fence that is ahead of the clock", at(time.Hour) + TokenLeap, at(time.Hour), now, Granted},
		{"more than a leap", at(time.Hour) + TokenLeap + 1, at(time.Hour), now, Ahead},
		{"a leap above a fence that is behind the window", at(-time.Hour) + TokenLeap, at(-time.Hour), now, Behind},
		{"a window that reaches back beyond 1970", 1, 0, time.Unix(1, 0), Granted},
		{"no token", 0, at(0), now, Granted},
		{"the largest", MaxToken, 0, now, Ahead},
		{"the largest, above a fence just below it", MaxToken, MaxToken - 1, now, Granted},
	} {
		if got := Judge(c.token, c.fence, c.now, window); got != c.want {
			t.Errorf("%s: %d with the fence %d is %v, want %v", c.what, c.token, c.fence, got, c.want)
		}
	}
}
