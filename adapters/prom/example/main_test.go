//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestLeaderShowsThatItLeadsInItsMetrics(t *testing.T) {
	addresses := servertest.Addresses(servertest.Redis(t, 3))
	declareNew(t, addresses)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, addresses, listener) }()
	want := []string{`redlatch_lock_held{name="leader/scheduler"} 1`, `redlatch_node_up{node="` + addresses[2] + `"} 1`}
	var text string
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text = scrape(listener.Addr().String())
		if strings.Contains(text, want[0]) && strings.Contains(text, want[1]) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%q are not in\n%s", want, text)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func declareNew(t *testing.T, addresses []string) {
	t.Helper()
	locks, err := redlatch.Open(strings.Join(addresses, ","), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	if err := fresh.Declare(t.Context(), locks); err != nil {
		t.Fatal(err)
	}
}

// scrape returns the metrics; nothing if they are not served yet.
func scrape(address string) string {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
