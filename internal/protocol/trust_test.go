package protocol

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// TestNodeKeepsItsLineageOnlyIfThatIsNoted marks some of the nodes. The others that
// show no lineage are away.
func TestNodeKeepsItsLineageOnlyIfThatIsNoted(t *testing.T) {
	type seen struct {
		lineage string
		epoch   uint64
	}
	for name, c := range map[string]struct {
		nodes []seen
		mark  Set
		known node.Epochs
		want  []string
		notes node.Epochs
	}{
		"all are new": {[]seen{{"", 0}, {"", 0}, {"", 0}}, All(3), "",
			[]string{"n1", "n2", "n3"}, "0:1,n1:1,n2:1,n3:1"},
		"one restarted": {[]seen{{"a", 1}, {"b", 1}, {"", 0}}, Of(1), "0:1,a:1,b:1,c:1",
			[]string{"a", "b", ""}, "0:1,a:1,b:2,c:1"},
		"one is empty": {[]seen{{"a", 1}, {"", 1}, {"c", 1}}, Of(1), "0:1,a:1,b:1,c:1",
			[]string{"a", "n1", "c"}, "0:2,a:1,c:1,n1:2"},
		"its data comes back": {[]seen{{"a", 1}, {"b", 1}, {"c", 1}}, Of(1), "0:2,a:1,c:1,x:2",
			[]string{"a", "n1", "c"}, "0:3,a:1,c:1,n1:3"},
		"the data of a copy comes back": {[]seen{{"a", 1}, {"b", 1}, {"c", 1}}, Of(1), "0:1,a:1,b:2,c:1",
			[]string{"a", "b", "c"}, "0:1,a:1,b:3,c:1"},
		"one is empty, another one away": {[]seen{{"a", 1}, {"b", 2}, {"c", 1}, {"", 0}, {"", 0}}, Of(3), "0:1,a:1,b:2,c:1,d:3,e:1",
			[]string{"a", "b", "c", "n1", ""}, "0:4,a:1,b:2,c:1,n1:4"},
		"two are empty": {[]seen{{"a", 1}, {"b", 1}, {"c", 1}, {"", 0}, {"", 0}}, Of(3) | Of(4), "0:1,a:1,b:1,c:1,d:1,e:1",
			[]string{"a", "b", "c", "n1", "n2"}, "0:2,a:1,b:1,c:1,n1:2,n2:2"},
		"one has a copy of another's data": {[]seen{{"a", 1}, {"a", 1}, {"c", 1}}, Of(1), "0:1,a:1,b:1,c:1",
			[]string{"a", "n1", "c"}, "0:2,a:1,c:1,n1:2"},
		"the others have noted nothing": {[]seen{{"", 0}, {"b", 7}}, Of(0), "",
			[]string{"n1", "b"}, "0:8,b:7,n1:8"},
	} {
		drawn := 0
		var nodes []Seen
		for _, s := range c.nodes {
			nodes = append(nodes, Seen{Lineage: s.lineage, Epoch: s.epoch})
		}
		got, notes := Lineages(nodes, c.mark, c.known, func() string { drawn++; return fmt.Sprint("n", drawn) })
		if fmt.Sprint(got) != fmt.Sprint(c.want) || notes != c.notes {
			t.Errorf("%s: lineages %q, notes %q, want %q, %q", name, got, notes, c.want, c.notes)
		}
	}
}

// TestMembershipIsBackWhenAQuorumIsMarkedForIt has nodes that are marked for this
// membership in some generation, 0 for none. Another one was seen in the third.
func TestMembershipIsBackWhenAQuorumIsMarkedForIt(t *testing.T) {
	for _, c := range []struct {
		generations []uint64
		back        bool
	}{
		{[]uint64{4, 4, 0}, true}, {[]uint64{5, 4, 3}, true},
		{[]uint64{4, 0, 0}, false}, // a change to it that was not finished
		{[]uint64{4, 3, 3}, false}, // the others have missed that change, and the one before
	} {
		var nodes []Seen
		for _, g := range c.generations {
			nodes = append(nodes, Seen{Marked: g > 0, Generation: g})
		}
		if got := Returned(nodes, 4); got != c.back {
			t.Errorf("marked in the generations %d: back is %v, want %v", c.generations, got, c.back)
		}
	}
}
