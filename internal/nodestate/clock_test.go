package nodestate

import (
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestMoveKnowsEveryTimeOfAnEntry sets every time in an entry, by reflection. Those
// of records stay on the wall clock; all others are moved. A new field of an Entry
// must be one or the other.
func TestMoveKnowsEveryTimeOfAnEntry(t *testing.T) {
	at, d := time.UnixMicro(1_700_000_000_000_000), -30*time.Hour
	e := Entry{Holders: make(Holders, 1), Ended: make([]Ended, 1), Queue: Queue{Waiters: make([]node.Waiter, 1)}, Records: Records{Completed: map[string]time.Time{"x": at}}}
	var paths []string
	eachTime(reflect.ValueOf(&e).Elem(), "", func(path string, v reflect.Value) {
		paths = append(paths, path)
		v.Set(reflect.ValueOf(at))
	})
	if len(paths) < 7 {
		t.Fatalf("an entry has the times %v only", paths)
	}
	e.Move(d)
	eachTime(reflect.ValueOf(&e).Elem(), "", func(path string, v reflect.Value) {
		want := at.Add(d)
		if len(path) > 8 && path[:8] == ".Records" {
			want = at
		}
		if got := v.Interface().(time.Time); !got.Equal(want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	})
	if !e.Records.Completed["x"].Equal(at) {
		t.Error("a record was moved")
	}
	var zero Entry
	if zero.Move(d); !reflect.DeepEqual(zero, Entry{}) {
		t.Errorf("times that are not set were moved: %+v", zero)
	}
}

// eachTime calls f for every time in a struct, and in its slices.
func eachTime(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		f(path, v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachTime(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), path+"[]", f)
		}
	}
}

func TestBoundFenceBindsUntilAHigherOneIsGranted(t *testing.T) {
	now := time.UnixMicro(1_700_000_000_000_000)
	token := node.Token(now.UnixMicro())
	ask := func(e *Entry, token node.Token) node.Status {
		e.Bind(100, now)
		r, _ := e.apply(now, node.Request{Op: node.OpAcquire, Name: "job", Value: "one", TTL: time.Second, Fencing: node.Fencing{Token: token, Window: time.Hour, Retention: time.Second}}, true)
		return r.Status
	}
	e := Entry{Fence: token, Floor: token, FenceUntil: now.Add(-time.Hour)}
	if got := ask(&e, token); got != node.Stale {
		t.Errorf("at the fence whose retention is over: %v", got)
	}
	if got := ask(&e, token+1); got != node.Granted || e.Fence != token+1 || !e.FenceUntil.Equal(now.Add(time.Second)) {
		t.Errorf("above it: %v, and the fence is %d until %v", got, e.Fence, e.FenceUntil)
	}
	var free Entry
	if free.Bind(0, now); !free.Dead() {
		t.Errorf("a floor of 0 leaves %+v", free)
	}
	if free.Bind(token+5, now); ask(&free, token+5) != node.Stale {
		t.Error("a name without a fence does not have the floor")
	}
}
