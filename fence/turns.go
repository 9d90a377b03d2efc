package fence

import (
	"context"
	"sync"
)

// turns lets one at a time through for each name. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

// turn is one name's. It is there for as long as somebody has it or waits.
type turn struct {
	free  chan struct{} // holds one when nobody has the turn
	users int           // under the mutex of turns
}

// take waits for the name's turn until ctx ends. done gives it back.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	at := t.names[name]
	if at == nil {
		at = &turn{free: make(chan struct{}, 1)}
		at.free <- struct{}{}
		if t.names == nil {
			t.names = map[string]*turn{}
		}
		t.names[name] = at
	}
	at.users++
	t.mu.Unlock()
	select {
	case <-at.free:
		return func() {
			at.free <- struct{}{}
			t.leave(name, at)
		}, nil
	case <-ctx.Done():
		t.leave(name, at)
		return nil, ctx.Err()
	}
}

func (t *turns) leave(name string, at *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.users--; at.users == 0 {
		delete(t.names, name)
	}
}
