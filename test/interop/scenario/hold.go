//go:build unix

package scenario

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// excludes: the foreign client holds, and redlatch is refused with an error
// that describes the holder. One that waits gets the lock when the foreign client has
// released it, though nothing notifies it.
func excludes(s *Stage) Cell {
	before := s.take(s.it, long)
	h := s.refused()
	s.weMust(untouched(before, s.look()) == "", "%s while it was refused", untouched(before, s.look()))
	var remark string
	key := first(before)
	switch {
	case h.Kind == redlatch.KindForeign:
		remark = "as a foreign format, a " + h.Owner
		s.weMust(h.Owner == key.kind, "calls a %s a %s", key.kind, h.Owner)
	case h.Kind != redlatch.KindPlain:
		s.weMust(false, "takes it for a %s", h.Kind)
	}
	s.weMust(h.Left > 0 && h.Left <= key.left+time.Second, "says that it has %v left, the server %v", h.Left, key.left)
	s.handedOver()
	return yes(remark)
}

// excluded: redlatch holds, and the foreign client is refused. On several
// servers two of them have lost the key, so that the refused client gets a
// minority, and must undo that.
func excluded(s *Stage) Cell {
	lease := s.ours(redlatch.LockOptions{TTL: long})
	// A lease does not wait for all servers; a request in flight must not
	// arrive after the deletion.
	s.weMust(poll.Holds(soon, func() bool { return there(s.look()) == len(s.servers) }), "has its key on %d servers only", there(s.look()))
	for _, server := range s.servers[s.quorum():] {
		s.do(server, "DEL", s.key())
	}
	before := s.look()
	a := s.it.Acquire(s.name, long)
	if harm := untouched(before, s.look()); a.OK() || harm != "" {
		s.must(harm != "", "has it too, under another key")
		stolen := s.stolen(lease, harm)
		s.must(!a.OK(), "takes it from redlatch. %s", stolen)
		s.must(false, "is refused, and %s. %s", harm, stolen)
	}
	var remarks []string
	if a.Word == "error" {
		remarks = append(remarks, "gets an error, "+brief(a.Text))
	}
	// Some undo it in the background.
	for end := time.Now().Add(time.Second); s.strangers(before) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			remarks = append(remarks, "leaves behind what a failed try was granted")
			break
		}
	}
	s.free(lease)
	s.take(s.it, long) // our release frees the lock
	s.it.Release()
	return yes(remarks...)
}

// strangers counts the servers whose key is not the one that most had before.
func (s *Stage) strangers(before []state) int {
	n, owner := 0, ownerOf(before)
	for _, x := range s.look() {
		if x.kind != "none" && x.content != owner {
			n++
		}
	}
	return n
}

// handedOver: redlatch waits for what the foreign client holds, and that one releases it.
func (s *Stage) handedOver() {
	type got struct {
		lease *redlatch.Lease
		err   error
	}
	waiting := make(chan got, 1)
	go func() {
		lease, err := s.locks.Lock(s.ctx, s.name, &redlatch.LockOptions{TTL: long, Wait: 2 * soon})
		waiting <- got{lease, err}
	}()
	s.weMust(poll.Holds(soon, func() bool {
		state, err := admin.New(s.other).Show(s.ctx, s.name)
		return err == nil && state.Waiting > 0
	}), "does not wait for it")
	a := s.it.Release()
	s.must(a.OK(), "cannot release what it holds: %s", a)
	select {
	case g := <-waiting:
		s.weMust(g.err == nil, "waits in vain: %v", g.err)
		s.free(g.lease)
	case <-time.After(long * 3 / 4): // before it expires by itself
		s.must(there(s.look()) == 0, "has released, and its key is still there")
		s.weMust(false, "waits on, though the lock is free")
	}
}

// brief is the essential part of a foreign error, without what changes from run
// to run.
func brief(text string) string {
	if m := regexp.MustCompile(`\b(WRONGTYPE|NOSCRIPT|READONLY)\b`).FindString(text); m != "" {
		return m
	}
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return fmt.Sprintf("%q", strings.TrimSpace(text))
}
