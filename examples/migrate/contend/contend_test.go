package contend

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

func under(mu *sync.Mutex) Side {
	return func(ctx context.Context, work func(context.Context) error) error {
		mu.Lock()
		defer mu.Unlock()
		return work(ctx)
	}
}

func TestTwoInsideAndASideWithoutTurnsAreSeen(t *testing.T) {
	var one, other sync.Mutex
	Run(t, map[string]Side{"a": under(&one), "b": under(&one)})
	err := run(t.Context(), map[string]Side{"a": under(&one), "b": under(&other)}, 50, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "two were inside") {
		t.Errorf("with two locks: %v", err)
	}
	other.Lock()
	time.AfterFunc(time.Second, other.Unlock)
	err = run(t.Context(), map[string]Side{"a": under(&one), "b": under(&other)}, 1, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "b had 0 of 1 turns") {
		t.Errorf("a side without turns: %v", err)
	}
}
