package protocol

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// TestClaimIsAPlainValue checks that no field of a claim shares anything with a
// copy, so that a claim can be copied and compared, and does not grow while its
// caller waits.
func TestClaimIsAPlainValue(t *testing.T) {
	var look func(path string, x reflect.Type)
	look = func(path string, x reflect.Type) {
		switch x.Kind() {
		case reflect.Struct:
			for i := range x.NumField() {
				look(path+"."+x.Field(i).Name, x.Field(i).Type)
			}
		case reflect.Array:
			look(path+"[]", x.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
			t.Errorf("%s is a %v", path, x.Kind())
		}
	}
	look("Claim", reflect.TypeFor[Claim]())
	if a, b := (Claim{value: "a"}), (Claim{value: "b"}); a == b {
		t.Error("two claims cannot be distinguished")
	}
}

// TestReleaseIsAboveEveryProposalThatANodeWouldGrant compares what is kept of
// earlier proposals with all of them, for a clock that is corrected at some
// time.
func TestReleaseIsAboveEveryProposalThatANodeWouldGrant(t *testing.T) {
	for range 10_000 {
		const half = 5_000 // of the window
		var p proposals
		var all []node.Token
		now, wrong := node.Token(1_000_000), rand.N(node.Token(20_000))
		right := rand.N(21) // from this proposal on, the clock is right
		for i := range 20 {
			now += 1 + rand.N(node.Token(500))
			token, most := now+wrong, now+wrong+half
			if i >= right {
				token, most = now, now+half
			}
			want := node.Token(0)
			for _, t := range all {
				if t <= most {
					want = max(want, t)
				}
			}
			switch got := p.upTo(most); {
			case got < want || got > most:
				t.Fatalf("of %d, with %d the most that is granted, a release has %d, want at least %d", all, most, got, want)
			case (right == 0 || right == 20 || want == 0) && got != want:
				t.Fatalf("of %d, with %d the most that is granted, a release has %d, want no more than %d", all, most, got, want)
			}
			p.add(token)
			all = append(all, token)
		}
	}
}

// TestSuccessorNumbersItsRequestsOn: the runner keeps the last answer of each
// node by the number of the request, across values.
func TestSuccessorNumbersItsRequestsOn(t *testing.T) {
	c := Claim{seq: 40, successor: Waiting}
	if s := c.Successor("next"); s.seq != c.seq || s.state != Waiting || s.value != "next" {
		t.Errorf("the successor of a claim with 40 requests has number %d, is %v and has the value %q", s.seq, s.state, s.value)
	}
}
