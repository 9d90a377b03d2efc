package zookeeper

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file delivers wakes. A letter is a znode that is created and removed in the multi
// of its row, below the inbox of its process, which the same multi creates and removes.
// Who watches the inbox with all below it is sent the path, and the path is the text. So
// a letter takes no write of its own, and no read. None is lost because another one comes
// at the same time, as the changes of a znode's data would be. Nothing is left behind,
// and where nobody listens no multi fails.
//
// The client knows no such watches, which servers have since 3.6. So the few messages
// that it takes are here, on a connection with a session of its own. Where a server has
// none, waiters poll.

func (s *store) inboxPath(process string) string { return s.root + wakesPath + "/" + process }

// A text as a part of a path, and back.
var (
	toPath   = strings.NewReplacer(" ", ".", "/", "-")
	fromPath = strings.NewReplacer(".", " ", "-", "/")
)

// inSight is how many places come with a wake at most.
const inSight = 8

// letter returns the path of a letter with a wake. The row comes with it, by its version
// and that of its znode, and the other places that are known.
func (s *store) letter(w casnode.Wake, version string, at int32, queue []ticket) string {
	letter := fmt.Sprintf("%s/%s,%d", s.inboxPath(w.Process), version, at)
	for _, t := range queue[:min(len(queue), inSight)] {
		if w.Waiter != "" && !t.of(w.Waiter) {
			letter += "," + t.child
		}
	}
	return letter + "," + toPath.Replace(w.Text)
}

// deliver returns the operations that deliver a letter.
func (s *store) deliver(letter string) []any {
	inbox := path.Dir(letter)
	return []any{
		&zk.CreateRequest{Path: inbox, Acl: s.acl}, &zk.CreateRequest{Path: letter, Acl: s.acl},
		&zk.DeleteRequest{Path: letter, Version: -1}, &zk.DeleteRequest{Path: inbox, Version: -1},
	}
}

// open returns the text of a letter, and notes where the row is that it came with: who
// is woken may write it without reading it.
func (s *store) open(letter string) (text string, ok bool) {
	parts := strings.Split(path.Base(letter), ",")
	if len(parts) < 3 {
		return "", false
	}
	at, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return "", false
	}
	s.remembered.Lock()
	defer s.remembered.Unlock()
	if len(s.heard) >= mostSights {
		clear(s.heard)
	}
	r, last := stored{at: int32(at), zxid: 1}, len(parts)-1
	r.children(parts[2:last])
	s.heard[parts[0]] = r
	return fromPath.Replace(parts[last]), true
}

// Numbers of ZooKeeper's protocol.
const (
	pingXid, eventXid        = -2, -1
	watchXid, goodbyeXid     = 1, 2
	opPing, opClose, opWatch = 11, -11, 106
	allBelow                 = 1 // what a watch is for
	createdEvent             = 1
)

// Hear watches the inbox of a process.
func (s *store) Hear(ctx context.Context, process string, ready func(), heard func(text string)) error {
	c, timeout, err := s.startSession(ctx, s.opts.Session)
	if err != nil {
		return explain(err)
	}
	defer c.Close()
	if err := s.login(c); err != nil {
		return explain(err)
	}
	var watch, goodbye, ping message
	watch.int(watchXid)
	watch.int(opWatch)
	watch.bytes([]byte(s.inboxPath(process)))
	watch.int(allBelow)
	goodbye.int(goodbyeXid)
	goodbye.int(opClose)
	ping.int(pingXid)
	ping.int(opPing)
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() {
		_ = goodbye.send(c) // else the session ends by itself, later
		c.Close()
	})()
	_ = c.SetDeadline(time.Time{})
	if err := watch.send(c); err != nil {
		return err
	}
	go func() {
		for tick := time.NewTicker(timeout / 2); ; {
			select {
			case <-tick.C:
				_ = ping.send(c) // if it fails, so does the reading
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	for in := bufio.NewReader(c); ; { // a letter comes with three other events
		_ = c.SetReadDeadline(time.Now().Add(timeout))
		answer, err := receive(in)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		switch xid := int32(binary.BigEndian.Uint32(answer)); {
		case xid == watchXid:
			if err := failure(answer); err != nil {
				return explain(err)
			}
			ready()
		case xid == eventXid && len(answer) > 28 && binary.BigEndian.Uint32(answer[16:]) == createdEvent:
			if text, ok := s.open(string(answer[28:])); ok {
				heard(text)
			}
		}
	}
}
