package nodestate

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func request(op node.Op, name, value string) node.Request {
	return node.Request{
		Op: op, Name: name, Value: value,
		TTL: time.Minute, Window: 10 * time.Second, Retention: time.Hour,
	}
}

func TestNamesUsedOnceDoNotFillTheMemory(t *testing.T) {
	now := time.Now()
	var s Server
	const names, alive = 10_000, 60
	for i := range names {
		req := request(node.OpAcquire, fmt.Sprint("name ", i), "one")
		req.Token = node.Token(now.UnixMicro())
		req.TTL, req.Retention = alive*time.Second, alive*time.Second
		s.Apply(now, req)
		req.Value, req.Wait = "two", true
		s.Apply(now, req)
		now = now.Add(time.Second)
	}
	if most := 3*alive + leastSweep; s.Len() > most {
		t.Errorf("%d names are kept of which %d are alive, want at most %d", s.Len(), alive, most)
	}
}

func TestALockWithoutATokenLeavesNothingBehind(t *testing.T) {
	var s Server
	now := time.Now()
	s.Apply(now, request(node.OpAcquire, "name", "one"))
	s.Apply(now, request(node.OpRelease, "name", "one"))
	s.Apply(now, request(node.OpInspect, "another", ""))
	if s.Len() != 0 {
		t.Errorf("%d names are kept", s.Len())
	}
}

// TestACloneSharesNothing copies a name that is waited for and whose waiters
// were called, and changes the original. The copy must not change.
func TestACloneSharesNothing(t *testing.T) {
	now := time.Now()
	s := Server{ID: "1"}
	ask := func(op node.Op, value string, ticket int64) {
		req := request(op, "name", value)
		req.Token, req.Wait, req.Ticket = node.Token(now.UnixMicro()), op == node.OpAcquire, ticket
		s.Apply(now, req)
	}
	ask(node.OpAcquire, "one", 1)
	for i := range int64(5) {
		ask(node.OpAcquire, fmt.Sprint("waiter ", i), 10+i)
	}
	now = now.Add(time.Second)
	ask(node.OpRelease, "one", 0) // the head's place has lapsed: the others are called
	before := s.Clone()
	again := before.Clone()
	if !reflect.DeepEqual(before, s) {
		t.Fatalf("the copy is %+v, want %+v", before, s)
	}
	if len(s.names["name"].Queue.Called) == 0 {
		t.Fatal("nobody was called: this test shows less than it should")
	}
	ask(node.OpAcquire, "waiter 3", 13)
	ask(node.OpAcquire, "waiter 1", 11)
	ask(node.OpAcquire, "another", 2)
	s.Apply(now, node.Request{Op: node.OpMark, Mark: node.MarkWrite, Guard: &node.Guard{List: "list", Quarantine: time.Second}})
	if reflect.DeepEqual(before, s) {
		t.Fatal("nothing has changed: this test shows nothing")
	}
	if !reflect.DeepEqual(before, again) {
		t.Errorf("the copy has become %+v, want %+v", before, again)
	}
}
