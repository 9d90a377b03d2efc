package sim

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// live makes one caller's calls, and then as many more as the history needs to
// be long enough. The additional ones come when nothing breaks any longer, and
// every caller must be served.
func (w *World) live(c *client, caller int) {
	mine := uint64(c.number)<<8 | uint64(caller)
	time.Sleep(w.jitter(mine ^ 0x11fe))
	for i, call := range w.plan.Calls {
		if call.Client != c.number || call.Caller != caller {
			continue
		}
		time.Sleep(call.Gap + w.jitter(uint64(i)))
		if c.isDead() || w.ctx.Err() != nil {
			return
		}
		w.call(c, call)
	}
	if rest := w.plan.Mend - w.now(); rest > 0 {
		time.Sleep(rest + w.jitter(mine))
	}
	for n := uint64(0); n == 0 || w.ops.Load() < Operations; n++ {
		time.Sleep(w.jitter(n ^ mine<<16))
		if c.isDead() || w.ctx.Err() != nil {
			return
		}
		call := Call{Client: c.number, Caller: caller, Name: int(n) % w.plan.Names, Hold: time.Millisecond + w.jitter(n^mine<<8), Wait: 2 * time.Minute}
		w.call(c, w.plan.asKind(&stream{dice: dice(w.dice.roll(mine, n, 0x6b696e64))}, call))
	}
}

// call uses a lock as the plan says.
func (w *World) call(c *client, call Call) {
	life := c.lives[call.Caller]
	ctx, cancel := context.WithCancel(life)
	if call.Cancel > 0 {
		ctx, cancel = context.WithTimeout(ctx, call.Cancel)
	}
	lock := c.Lock
	if call.Try {
		lock = c.TryLock
	}
	w.ops.Add(1)
	began := w.now()
	l, err := lock(ctx, nameOf(call.Name), &redlatch.LockOptions{
		Wait: call.Wait, NoKeepAlive: call.Alone,
		Shared: call.Share.Mode == node.Shared, Slots: int(call.Share.Slots),
	})
	cancel()
	w.note("client %d: lock of %d (%s): %v", call.Client, call.Name, call.Share.Text(), err)
	if err != nil {
		return
	}
	h := w.judge.acquired(l, call, began)
	for n := range call.Extend + 1 {
		part := call.Hold / time.Duration(call.Extend+1)
		if call.Downgrade && n == call.Extend/2 {
			time.Sleep(part / 2)
			part -= part / 2
			w.downgrade(h, life)
		}
		time.Sleep(part + w.jitter(uint64(began)+uint64(n)))
		if n < call.Extend {
			w.ops.Add(1)
			err := l.Extend(life)
			w.note("client %d: extension of %d: %v", call.Client, call.Name, err)
			w.judge.look(h)
		}
	}
	time.Sleep(call.Stay)
	w.judge.look(h)
	if call.Drop {
		w.judge.dropped(h)
		return
	}
	w.ops.Add(1)
	w.judge.releasing(h)
	err = l.Release(context.Background())
	w.note("client %d: release of %d: %v", call.Client, call.Name, err)
}

// downgrade makes a writer a reader. From the moment of the call it must not
// write any more, whatever the nodes answer.
func (w *World) downgrade(h *held, life context.Context) {
	w.ops.Add(1)
	w.judge.downgrading(h)
	err := h.Downgrade(life)
	w.note("client %d: downgrade of %d: %v", h.client, h.name, err)
	w.judge.downgraded(h, err)
	w.judge.look(h)
}
