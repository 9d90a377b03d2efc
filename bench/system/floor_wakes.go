package system

import (
	"context"
	"fmt"
)

// wakeFloor is the raw wake-up: one token in a list of the first server, for
// which Redis has those who block wait in order. Who has it takes one raw round
// trip to all servers, so that a majority knows. It promises nothing: a holder
// that dies takes the token with it.
type wakeFloor struct {
	*wire
	round1 []string
	begun  map[string]bool
}

const putToken = `if redis.call('SET', KEYS[1] .. '/begun', '1', 'NX') then redis.call('LPUSH', KEYS[1], 'token') end return 1`

func openWakeFloor(_ context.Context, addresses []string) (Locker, error) {
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	script, err := w.load("return 1")
	if err != nil {
		w.Close()
		return nil, err
	}
	return &wakeFloor{wire: w, round1: []string{"EVALSHA", script, "0"}, begun: map[string]bool{}}, nil
}

func (f *wakeFloor) Lock(ctx context.Context, name string) (Held, error) {
	// What is owed to the last round is read first.
	if err := f.round(0, nil, nil); err != nil {
		return nil, err
	}
	first := f.conns[0]
	if !f.begun[name] {
		if _, err := first.Do("EVAL", putToken, "1", name); err != nil {
			return nil, err
		}
		f.begun[name] = true
	}
	stop := context.AfterFunc(ctx, func() { first.Close() })
	_, err := first.Do("BLPOP", name, "0")
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for the token: %w", err)
	}
	if len(f.conns) > 1 {
		if err := f.round(1, says("1"), func(int, int) []string { return f.round1 }); err != nil {
			return nil, err
		}
	}
	return floorHeld(func() error {
		if err := f.round(0, nil, nil); err != nil {
			return err
		}
		_, err := first.Do("RPUSH", name, "token")
		return err
	}), nil
}
