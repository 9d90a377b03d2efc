package contend_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/examples/migrate/contend"
)

func under(mu *sync.Mutex) contend.Side {
	return func(ctx context.Context, work func(context.Context) error) error {
		mu.Lock()
		defer mu.Unlock()
		return work(ctx)
	}
}

func TestTwoInsideAreSeen(t *testing.T) {
	var one, other sync.Mutex
	if err := contend.Run(t.Context(), map[string]contend.Side{"a": under(&one), "b": under(&one)}, 5, time.Minute); err != nil {
		t.Errorf("with one lock: %v", err)
	}
	err := contend.Run(t.Context(), map[string]contend.Side{"a": under(&one), "b": under(&other)}, 50, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "two were inside") {
		t.Errorf("with two locks: %v", err)
	}
}

func TestSideThatGetsNoTurnIsSeen(t *testing.T) {
	var one, other sync.Mutex
	other.Lock()
	time.AfterFunc(time.Second, other.Unlock)
	err := contend.Run(t.Context(), map[string]contend.Side{"a": under(&one), "b": under(&other)}, 1, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "b had 0 of 1 turns") {
		t.Errorf("a side without turns: %v", err)
	}
}
