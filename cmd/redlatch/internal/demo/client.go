package demo

import (
	"context"
	"errors"
	"net/http"
	"path"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// lockName is the lock that protects the account.
const lockName = "balance"

// order is what a client does.
type order struct {
	Name    string
	Nodes   []string // addresses
	Account string   // its URL
	TTL     time.Duration
	Amount  int  // what it adds to the balance
	Times   int  // how often
	Looks   bool // it says who holds the lock, before it waits
	Pauses  bool // it says what it is about to write, before it writes
	Once    bool // it asks for the lock once
}

// nodeTimeout is long, for busy machines. A node that is dead refuses at once.
const nodeTimeout = time.Second

// runClient adds to the balance under the lock, as any program would.
func runClient(o order, say func(event) error) error {
	var nodes []redlatch.Node
	for _, address := range o.Nodes {
		nodes = append(nodes, &remoteNode{address: address})
	}
	locks, err := redlatch.New(nodes, &redlatch.Options{Label: o.Name, TTL: o.TTL, NodeTimeout: nodeTimeout})
	if err != nil {
		return err
	}
	defer locks.Close()
	var opts redlatch.LockOptions
	if o.Once {
		opts.Wait = redlatch.NoWait
	}
	for range o.Times {
		if o.Looks {
			if err := lookAt(locks, say); err != nil {
				return err
			}
		}
		err := locks.Do(context.Background(), lockName, &opts, func(_ context.Context, lease *redlatch.Lease) error {
			return o.add(lease, answering(locks), say)
		})
		if err := say(ending(err)); err != nil {
			return err
		}
	}
	return nil
}

// add reads the balance and writes the new one. It does not look at its context
// before it writes: a process can always be stopped after its last look.
func (o order) add(lease *redlatch.Lease, nodes int, say func(event) error) error {
	account := &remoteAccount{o.Account, http.Client{Transport: &fence.Transport{Token: lease.Token()}}}
	was, err := account.read()
	if err != nil {
		return err
	}
	e := event{What: about, Token: lease.Token(), Answered: nodes, Was: was, Is: was + o.Amount}
	if o.Pauses {
		if err := say(e); err != nil {
			return err
		}
	}
	err = account.write(e.Is)
	e.What = written
	if stale, ok := errors.AsType[*fence.StaleError](err); ok {
		e.What, e.Highest = refused, stale.Highest
	} else if err != nil {
		return err
	}
	return errors.Join(say(e), err)
}

// answering returns how many nodes answered when they were last asked.
func answering(locks *redlatch.Client) (n int) {
	for _, node := range locks.Nodes() {
		if node.Up {
			n++
		}
	}
	return n
}

// lookAt says who holds the lock, if anybody does.
func lookAt(locks *redlatch.Client, say func(event) error) error {
	lease, err := locks.TryLock(context.Background(), lockName, nil)
	var held *redlatch.HeldError
	switch {
	case err == nil:
		return lease.Release(context.Background())
	case errors.As(err, &held):
		return say(event{What: waits, Holder: path.Base(held.Holders[0].Owner), Left: held.Holders[0].Left})
	}
	return err
}

// ending is what came of a use of the lock.
func ending(err error) event {
	e := event{What: ended}
	if err != nil {
		e.Text = err.Error()
	}
	var quorum *redlatch.QuorumError
	switch {
	case errors.As(err, &quorum):
		e.What, e.Need = outage, quorum.Need
	case errors.Is(err, redlatch.ErrLost):
		e.What = lost
	}
	return e
}
