package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
)

// This file delivers wakes. Each process has an inbox: a znode with a child for each
// wake, whose name is the text. The child comes with the write of the row, in the same
// multi. It is ephemeral, so it ends at the latest with the session of its sender. The
// inbox has an ephemeral znode of its owner in it. Without that nothing is put into it,
// and the process that notices removes it.
//
// To whom a wake goes is in the row's book: which waiter has which inbox. A wake to all
// processes would have all of them read at each hand-over. Where the book does not know
// a waiter, the wake goes to all inboxes.

// book has the inboxes of waiters, those that came last at its end.
type book []entry

type entry struct {
	waiter uint64 // a hash
	inbox  uint64
}

// mostEntries is how many waiters a book has. Waiters that wait for longer are called
// by a wake to all.
const mostEntries = 1024

// with returns the book after a request of a waiter with this inbox; 0 for none.
func (b book) with(req node.Request, inbox uint64) book {
	waiter := waiterOf(encodeValue(req.Value))
	waits := (req.Wait || req.Op == node.OpYield) && inbox != 0
	if !waits && req.Op != node.OpRelease {
		return b
	}
	b = slices.DeleteFunc(slices.Clone(b), func(e entry) bool { return e.waiter == waiter })
	if waits {
		b = append(b, entry{waiter, inbox})
	}
	return b[max(0, len(b)-mostEntries):]
}

func (b book) inbox(waiter uint64) uint64 {
	for _, e := range b {
		if e.waiter == waiter {
			return e.inbox
		}
	}
	return 0
}

// encodeValue is a waiter as a wake names it, in the last of its words.
func encodeValue(value string) string { return base64.RawStdEncoding.EncodeToString([]byte(value)) }

func waiterOf(word string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(word))
	return h.Sum64()
}

func (s *store) inboxPath(id uint64) string {
	return s.root + wakesPath + "/" + strconv.FormatUint(id, 16)
}

// address returns the letters for wakes: the znodes to create, without their numbers.
func (s *store) address(ctx context.Context, conn *zk.Conn, b book, wakes []string) (mail []string, err error) {
	var everybody []string
	for _, text := range wakes {
		put := func(inbox string) {
			mail = append(mail, inbox+"/"+base64.RawURLEncoding.EncodeToString([]byte(text))+".")
		}
		if id := b.inbox(waiterOf(text[strings.LastIndexByte(text, ' ')+1:])); id != 0 {
			put(s.inboxPath(id))
			continue
		}
		if everybody == nil {
			s.inbox.broadcasts.Add(1)
			if everybody, err = within(ctx, func() ([]string, error) {
				ids, _, err := conn.Children(s.root + wakesPath)
				return ids, err
			}); err != nil {
				return nil, err
			}
		}
		for _, id := range everybody {
			put(s.root + wakesPath + "/" + id)
		}
	}
	return mail, nil
}

// inbox is that of this process.
type inbox struct {
	number     atomic.Uint64 // 0 for none
	broadcasts atomic.Int64  // wakes that went to all
}

func (i *inbox) id() uint64 { return i.number.Load() }

// owner is the znode that keeps an inbox.
const owner = "owner"

// Hear creates an inbox, and reads it whenever it changes.
func (s *store) Hear(ctx context.Context, ready func(), heard func(wake string)) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	id := binary.BigEndian.Uint64(random[:]) | 1
	path := s.inboxPath(id)
	_, err = within(ctx, func() (string, error) {
		s.clearAll(conn)
		_, err := conn.Multi(&zk.CreateRequest{Path: path, Acl: s.acl}, &zk.CreateRequest{Path: path + "/" + owner, Acl: s.acl, Flags: zk.FlagEphemeral})
		return "", err
	})
	defer s.closeInbox(conn, path)
	if err != nil {
		return explain(err)
	}
	s.inbox.number.Store(id)
	defer s.inbox.number.CompareAndSwap(id, 0)
	for known, first := map[string]bool{}, true; ; first = false {
		type children struct {
			names   []string
			changed <-chan zk.Event
		}
		c, err := within(ctx, func() (c children, err error) {
			c.names, _, c.changed, err = conn.ChildrenW(path)
			return c, err
		})
		switch {
		case errors.Is(err, zk.ErrConnectionClosed) && !s.isClosed() && ctx.Err() == nil:
			if _, err := s.session(ctx); err != nil {
				return err
			}
			continue // the session goes on, and with it the inbox
		case err != nil:
			return explain(err)
		case !slices.Contains(c.names, owner):
			return fmt.Errorf("the inbox is gone: %w", ErrExpired)
		}
		if first {
			ready()
		}
		var fresh []string
		for _, name := range c.names {
			if name != owner && !known[name] {
				fresh = append(fresh, name)
			}
		}
		slices.SortFunc(fresh, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		maps.DeleteFunc(known, func(name string, _ bool) bool { return !slices.Contains(c.names, name) })
		for _, name := range fresh {
			known[name] = true
			encoded, _, _ := strings.Cut(name, ".")
			if text, err := base64.RawURLEncoding.DecodeString(encoded); err == nil {
				heard(string(text))
			}
		}
		if len(fresh) > 0 {
			go remove(conn, path, fresh)
		}
		select {
		case e := <-c.changed:
			if e.Err != nil {
				return explain(e.Err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// number returns the number that the server gave to a letter.
func number(name string) string {
	_, number, _ := strings.Cut(name, ".")
	return number
}

// deletions are the operations that remove children.
func deletions(path string, names []string) (ops []any) {
	for _, name := range names {
		ops = append(ops, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
	}
	return ops
}

// remove removes letters that were read.
func remove(conn *zk.Conn, path string, names []string) {
	if _, err := conn.Multi(deletions(path, names)...); errors.Is(err, zk.ErrNoNode) {
		for _, name := range names { // a sender has gone, and its letters with it
			_ = conn.Delete(path+"/"+name, -1)
		}
	}
}

// closeInbox removes an inbox. What is left ends with the sessions.
func (s *store) closeInbox(conn *zk.Conn, path string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = within(ctx, func() (struct{}, error) {
		err := conn.Delete(path+"/"+owner, -1)
		clearInbox(conn, path)
		return struct{}{}, err
	})
}

// clearAll removes the inboxes of processes that have ended.
func (s *store) clearAll(conn *zk.Conn) {
	inboxes, _, _ := conn.Children(s.root + wakesPath)
	for _, id := range inboxes {
		clearInbox(conn, s.root+wakesPath+"/"+id)
	}
}

// clearInbox removes an inbox without an owner, and what is in it. If that fails,
// another one will.
func clearInbox(conn *zk.Conn, path string) {
	for range 3 { // somebody else may remove something, too
		names, _, err := conn.Children(path)
		if err != nil || slices.Contains(names, owner) {
			return
		}
		if _, err := conn.Multi(append(deletions(path, names), &zk.DeleteRequest{Path: path, Version: -1})...); err == nil {
			return
		}
	}
}
