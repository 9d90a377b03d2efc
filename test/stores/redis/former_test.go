//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestClockOfOneNodeDoesNotMakeAllSitOut changes the membership when one node
// was marked while its clock was a day ahead.
func TestClockOfOneNodeDoesNotMakeAllSitOut(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	a := servertest.Addresses(servers)
	old := newClient(t, open(t, a[:3]...), quick)
	must(t, cycle(old))
	if _, err := admin.New(old).Init(context.Background(), &admin.InitOptions{Former: open(t, a[:3]...)}); err != nil {
		t.Fatal(err)
	}
	marker := strings.SplitN(servers[2].Do("GET", "redlatch:1:marker"), " ", 16)
	marker[9] = fmt.Sprintf("%016d", time.Now().Add(24*time.Hour).UnixMicro())
	servers[2].Do("SET", "redlatch:1:marker", strings.Join(marker, " "))

	changed := laterClient(t, quick, a[0], a[1], a[3])
	change := func() error {
		_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a[:3]...)})
		return err
	}
	err := change()
	wantErr(t, err, redlatch.ErrConfig)
	if !strings.Contains(err.Error(), a[2]) || !strings.Contains(err.Error(), "DEL redlatch:1:marker") {
		t.Errorf("which node it is and what to do is not said: %v", err)
	}
	eventually(t, patience, func() error { return cycle(old) })
	servers[2].Do("DEL", "redlatch:1:marker")
	must(t, change())
	eventually(t, patience, func() error { return cycle(changed) })
}

// TestFormerMembershipThatIsNotTheOneInServiceIsRefused omits three nodes of five,
// which would continue as a quorum. If the membership has a name, the marker has
// their number.
func TestFormerMembershipThatIsNotTheOneInServiceIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("addresses", func(t *testing.T) { refusesPartOfTheFormerMembership(t, "", "") })
	t.Run("names", func(t *testing.T) { refusesPartOfTheFormerMembership(t, "prod-1", "prod-2") })
}

func refusesPartOfTheFormerMembership(t *testing.T, before, after string) {
	t.Parallel()
	a := servertest.Addresses(servertest.Redis(t, 6))
	opts := quick
	opts.Membership = before
	old := newClient(t, open(t, a[:5]...), opts)
	must(t, cycle(old))
	opts.Membership = after
	changed := laterClient(t, opts, a[0], a[1], a[5])
	_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a[0], a[1])})
	wantErr(t, err, redlatch.ErrConfig)
	missing := a[4]
	if before != "" {
		missing = before + " (nodes: 5)"
	}
	if !strings.Contains(err.Error(), missing) {
		t.Errorf("what is missing is not said: %v", err)
	}
	if err := cycle(old); err != nil {
		t.Errorf("the list that was in service is not any more: %v", err)
	}
}
