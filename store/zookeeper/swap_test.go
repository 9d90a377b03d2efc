//go:build unix

package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// pair opens a store twice, prepared.
func pair(t *testing.T) (a, b *store) {
	t.Helper()
	address := fresh(t)
	a, b = open(t, address).store, open(t, address).store
	check.Must(t, a.Prepare(t.Context()))
	check.Must(t, b.Prepare(t.Context()))
	return a, b
}

func (s *store) mustRead(t *testing.T, name string) casnode.Snapshot {
	t.Helper()
	seen, err := s.Read(t.Context(), name)
	check.Must(t, err)
	return seen
}

func version(name, state string) casnode.Row {
	return casnode.Row{Name: name, Version: rand.Text(), State: []byte(state)}
}

func (s *store) mustSwap(t *testing.T, seen casnode.Snapshot, row casnode.Row, more ...casnode.Write) casnode.Snapshot {
	t.Helper()
	w := append(more, casnode.Write{})[0]
	w.Row = row
	done, present, err := s.Swap(t.Context(), seen, w)
	if !done || err != nil {
		t.Fatalf("the Swap of %q: %v, %v", row.Name, done, err)
	}
	return present
}

// TestMultiChecksAllThatWasRead changes each part between the read and the swap of a
// store, which remembers where it has read. Its multi is all that can notice.
func TestMultiChecksAllThatWasRead(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, b *store){
		"the row": func(t *testing.T, b *store) { b.mustSwap(t, b.mustRead(t, "job"), version("job", "two")) },
		"the marker": func(t *testing.T, b *store) {
			b.mustSwap(t, b.mustRead(t, casnode.MarkerName), version(casnode.MarkerName, string(casnode.Unmarked())))
		},
		// The znode has the same version as before.
		"the row, which was removed and written anew": func(t *testing.T, b *store) {
			seen := b.mustRead(t, "job")
			check.Must(t, b.Remove(t.Context(), seen, []casnode.Row{seen.Row}))
			b.mustSwap(t, b.mustRead(t, "job"), version("job", "two"))
		},
		"the identity": func(t *testing.T, b *store) {
			path := b.root + identityPath + "/"
			_, err := b.conn.Multi(&zk.DeleteRequest{Path: path + b.mustRead(t, "job").Server, Version: -1}, &zk.CreateRequest{Path: path + "another", Acl: b.acl})
			check.Must(t, err)
		},
		// They begin at version 0 again.
		"marker and floor, which were removed and created anew": func(t *testing.T, b *store) {
			_, err := b.conn.Multi(&zk.DeleteRequest{Path: b.root + markerPath, Version: -1}, &zk.DeleteRequest{Path: b.root + floorPath, Version: -1})
			check.Must(t, err)
			check.Must(t, b.Prepare(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			a.mustSwap(t, a.mustRead(t, "job"), version("job", "one"))
			_, err := a.Put(t.Context(), casnode.Place{Name: "waited for", Waiter: "w", Process: "p"}, false)
			check.Must(t, err)
			seen, missing, waited := a.mustRead(t, "job"), a.mustRead(t, "other"), a.mustRead(t, "waited for")
			change(t, b)
			now := b.mustRead(t, "job").Row
			if done, _, err := a.Swap(t.Context(), seen, casnode.Write{Row: version("job", "late")}); done || err != nil {
				t.Errorf("the Swap was done: %v, %v", done, err)
			}
			if after := b.mustRead(t, "job").Row; after.Version != now.Version {
				t.Errorf("the row has changed")
			}
			for _, none := range []casnode.Snapshot{missing, waited} {
				if done, _, err := a.Swap(t.Context(), none, casnode.Write{Row: version(none.Row.Name, "late")}); name != "the row" && (done || err != nil) {
					t.Errorf("the insertion of %q was done: %v, %v", none.Row.Name, done, err)
				}
			}
		})
	}
}

// TestMissingZnodesComeWithANewIdentity has an operator remove each of them.
func TestMissingZnodesComeWithANewIdentity(t *testing.T) {
	a, _ := pair(t)
	for _, below := range []string{markerPath, floorPath, rowsPath, wakesPath, identityPath} {
		before := a.mustRead(t, "job").Server
		if below == identityPath {
			check.Must(t, a.conn.Delete(a.root+below+"/"+before, -1))
		}
		check.Must(t, a.conn.Delete(a.root+below, -1))
		_, err1 := a.Read(t.Context(), "job")
		_, err2 := a.Scan(t.Context(), "", 1)
		if !errors.Is(err1, casnode.ErrUnprepared) && !errors.Is(err2, casnode.ErrUnprepared) {
			t.Errorf("without %s: Read returned %v, Scan %v", below, err1, err2)
		}
		check.Must(t, a.Prepare(t.Context()))
		if after := a.mustRead(t, "job").Server; after == before {
			t.Errorf("%s was created anew under the same identity", below)
		}
	}
}

// TestRowsAreOnlyAsLongAsTheServerAllows writes rows around jute.maxbuffer. A longer
// one is refused before the server could close the connection.
func TestRowsAreOnlyAsLongAsTheServerAllows(t *testing.T) {
	_, address := start(t, 1, "-Djute.maxbuffer=100000")
	n, err := Open(address, &Options{MaxBuffer: 100_000})
	check.Must(t, err)
	t.Cleanup(func() { n.Close() })
	s := n.store
	check.Must(t, s.Prepare(t.Context()))
	session := s.conn.SessionID()
	for size := 97_000; size < 101_000; size += 100 {
		_, _, err := s.Swap(t.Context(), s.mustRead(t, "job"), casnode.Write{Row: version("job", strings.Repeat("x", size))})
		if tooLong := size > 99_000; tooLong != errors.Is(err, ErrTooLarge) && (size < 98_800 || size > 99_100) || err != nil && (!errors.Is(err, ErrTooLarge) || !errors.Is(err, node.ErrUnsent)) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if s.conn.SessionID() != session || s.conn.State() != zk.StateHasSession {
		t.Error("the connection was lost")
	}
}

// TestDamagedZnodesAreReported has an operator write to a row by hand.
func TestDamagedZnodesAreReported(t *testing.T) {
	n := open(t, fresh(t))
	request := node.Request{Op: node.OpAcquire, Name: "job", Value: "one", TTL: time.Minute, Fencing: node.Fencing{Retention: time.Hour, Window: 10 * time.Second, Token: node.Token(time.Now().UnixMicro())}}
	reply, err := n.Do(t.Context(), request)
	check.Must(t, err)
	for _, data := range []string{"", "x", "\x01", "\x02\x00", "\x02\x05ab", "\x02\x01a\xff\x7f", "\x02\x01a", "\x01\x01a", "\x01\x01a\xff\x7f", "\x01\x01a\x00"} {
		_, err = n.store.conn.Set(n.store.row("job"), []byte(data), -1)
		check.Must(t, err)
		if reply, err = n.Do(t.Context(), request); err != nil || reply.Status != node.Foreign {
			t.Errorf("%q: %v, %v", data, reply.Status, err)
		}
	}
}

// TestReadIsOfOneMoment changes two znodes between the readings of a Read whose answer
// counts.
func TestReadIsOfOneMoment(t *testing.T) {
	a, b := pair(t)
	for range 3 {
		a.mustSwap(t, a.mustRead(t, "job"), version("job", "one"))
		marker := version(casnode.MarkerName, string(casnode.Unmarked()))
		b.between = func() {
			b.between = nil
			a.mustSwap(t, a.mustRead(t, casnode.MarkerName), marker)
			a.mustSwap(t, a.mustRead(t, "job"), version("job", "two"))
		}
		if seen := b.mustRead(t, "job"); string(seen.Row.State) == "two" && seen.Marker.Version != marker.Version {
			t.Error("a row with a marker that had been replaced before it was written")
		}
		b.between = func() {
			b.between = nil
			seen := a.mustRead(t, "job")
			seen.Floor += 1000
			check.Must(t, a.Remove(t.Context(), seen, []casnode.Row{seen.Row}))
		}
		before := a.mustRead(t, "job").Floor
		if seen := b.mustRead(t, "job"); seen.Row.Version == "" && seen.Floor == before {
			t.Error("a row that was removed, without the floor that was raised with it")
		}
	}
}

// TestTimersAreNotOlderThanTheRow leaves a timer, and has the row refer to it, between
// the readings of a Read. A timer that is said not to run would free the lock.
func TestTimersAreNotOlderThanTheRow(t *testing.T) {
	a, b := pair(t)
	for _, ctx := range []context.Context{t.Context(), (&call{probe: true}).in(t.Context())} {
		a.mustSwap(t, a.mustRead(t, "job"), version("job", "no timer"))
		id := rand.Text()[:12]
		b.between = func() {
			b.between = nil
			if done, err := a.StartTimer(t.Context(), "job", id, 30*time.Second); !done || err != nil {
				t.Errorf("StartTimer: %v, %v", done, err)
			}
			a.mustSwap(t, a.mustRead(t, "job"), version("job", id))
		}
		seen, err := b.Read(ctx, "job")
		check.Must(t, err)
		if string(seen.Row.State) != id || !slices.Contains(seen.Row.Timers, id) {
			t.Errorf("the row refers to %s, and %q run", seen.Row.State, seen.Row.Timers)
		}
	}
}

// TestWakesLeaveNothing wakes a process that listens, and one that does not. Who is woken
// writes the row without reading it, or the places: they have gone.
func TestWakesLeaveNothing(t *testing.T) {
	a, b := pair(t)
	ready, heard := make(chan bool, 1), make(chan string, 1)
	go b.Hear(t.Context(), "B", func() { ready <- true }, func(text string) { heard <- text })
	<-ready
	own, next := casnode.Place{Name: "job", Waiter: "0-0-0-A", Process: "B"}, casnode.Place{Name: "job", Waiter: "0-0-0-B", Process: "P", Ticket: 1}
	for _, p := range []casnode.Place{own, next} {
		_, err := b.Put(t.Context(), p, false)
		check.Must(t, err)
	}
	seen, text := b.mustRead(t, "job"), "1 12 am9i/+ dGV4dA "+strings.Repeat("x/+9", 450)
	row := version("job", "one")
	a.mustSwap(t, a.mustRead(t, "job"), row, casnode.Write{Wakes: []casnode.Wake{{Process: "nobody", Text: "1"}, {Process: "B", Text: text, Waiter: own.Waiter}}})
	if got := <-heard; got != text {
		t.Errorf("it heard %q", got)
	}
	if left, _, err := a.conn.Children(a.root + wakesPath); err != nil || len(left) > 0 {
		t.Errorf("%q are left: %v", left, err)
	}
	check.Must(t, a.Evict(t.Context(), "job", "P"))
	b.between = func() { t.Error("it reads before it writes") }
	seen.Row = row
	if now := b.mustSwap(t, seen, version("job", "two"), casnode.Write{Drop: &own, Look: true, Near: true}); !slices.Equal(now.Places, []casnode.Place{next}) {
		t.Errorf("the places are %v", now.Places)
	}
}

// TestPlacesNeedNoRow has a waiter come and leave where there is no row.
func TestPlacesNeedNoRow(t *testing.T) {
	a, _ := pair(t)
	place := casnode.Place{Name: "job", Waiter: "w", Process: "p", Ticket: 7}
	_, err := a.Put(t.Context(), place, false)
	check.Must(t, err)
	scan := func() (there bool) {
		rows, err := a.Scan(t.Context(), "", 10)
		if err != nil || len(rows) > 0 {
			t.Fatalf("Scan returns %v, %v", rows, err)
		}
		there, _, err = a.conn.Exists(a.row("job"))
		check.Must(t, err)
		return there
	}
	if !scan() {
		t.Error("the place has gone")
	}
	seen, err := a.Drop(t.Context(), place)
	if check.Must(t, err); seen.Row.Version != "" || len(seen.Places) > 0 {
		t.Errorf("after the waiter has left: %+v", seen)
	}
	poll.Until(t, "what it was below is removed", func() bool { return !scan() })
}

func TestRowsOfTheFormerFormatAreRead(t *testing.T) {
	for book, size := range map[string]int{"\x00": 0, "\x02": 2 * bookSize} {
		if version, state := decode([]byte("\x01\x02V1" + book + strings.Repeat("x", size) + "state")); version != "V1" || string(state) != "state" {
			t.Errorf("version %q, state %q", version, state)
		}
	}
}

func TestPlacesAreInTheOrderOfTheirNumbers(t *testing.T) {
	var r stored
	r.children([]string{"w.p.0.-2147483648", "timer1", "by.hand", "w2.p.-9.2147483646", "w1.p.a.2147483647", "by.hand.?.2147483645"})
	want := []casnode.Place{{Waiter: "w2", Process: "p", Ticket: -9}, {Waiter: "w1", Process: "p", Ticket: 10}, {Waiter: "w", Process: "p"}}
	if got := r.places(9); !slices.Equal(got, want) || !slices.Equal(r.Timers, []string{"timer1"}) || r.rank("w") != 4 || r.rank("w3") != 0 {
		t.Errorf("the places are %v, the timers %v", got, r.Timers)
	}
}
