package fence

import (
	"context"
	"sync"
)

// turns admits one caller at a time for each name. The zero value is ready.
type turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

// turn belongs to one name. It exists while a caller has it or waits for it.
type turn struct {
	free  chan struct{} // holds one when nobody has the turn
	users int           // under the mutex of turns
}

// take waits until the name is free, or ctx ends. done frees it.
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
