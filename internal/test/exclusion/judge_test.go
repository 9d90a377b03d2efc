package exclusion

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// reader and slot are shares; the zero value is a writer's.
var reader = node.Share{Mode: node.Shared}

func slot(n int) node.Share { return node.Share{Mode: node.Slotted, Slots: 3, Slot: uint8(n)} }

// had is a lease that was asked for, granted and over at these moments.
func had(share node.Share, token uint64, asked, got, until int64) *Lease {
	return &Lease{Who: "somebody", Share: share, Token: token, Asked: asked, Got: got, Until: until}
}

// writer is had for a writer.
func writer(token uint64, asked, got, until int64) *Lease {
	return had(node.Share{}, token, asked, got, until)
}

// kept has the lock stay taken after the lease.
func (l *Lease) kept(until int64) *Lease { l.Kept = until; return l }

// down has a writer become a reader.
func (l *Lease) down(at int64) *Lease { l.Down = at; return l }

// TestJudgeFindsEveryOffence judges the leases of one name, all at once and as each is
// granted.
func TestJudgeFindsEveryOffence(t *testing.T) {
	for _, c := range []struct {
		what   string
		want   Rule // "" for none
		leases []*Lease
	}{
		{"one after the other", "", []*Lease{writer(1, 0, 10, 50), writer(2, 20, 51, 150), writer(3, 60, 151, 200)}},
		{"asked for early and given late", "", []*Lease{writer(5, 0, 200, 250), writer(3, 0, 10, 50)}},
		{"two at once", Overlap, []*Lease{writer(1, 0, 10, 100), writer(2, 20, 99, 140)}},
		{"a token that goes back", TokenOrder, []*Lease{writer(2, 0, 10, 50), writer(1, 60, 70, 140)}},
		{"the same token twice", TokenOrder, []*Lease{writer(2, 0, 10, 50), writer(2, 60, 70, 140)}},
		{"a token that goes back after many", TokenOrder, []*Lease{
			writer(10, 0, 1, 50), writer(11, 100, 101, 150), writer(12, 200, 201, 250), writer(10, 300, 301, 350)}},
		{"a token that goes back, of one that was asked for before the other came", TokenOrder, []*Lease{
			writer(2, 0, 10, 50), writer(1, 5, 60, 140)}}, // it came after the other had ended

		{"readers together, in any order of tokens, and writers before and after", "", []*Lease{writer(1, 0, 10, 20),
			had(reader, 5, 21, 30, 100), had(reader, 3, 40, 50, 120), had(reader, 5, 60, 70, 110), writer(6, 45, 121, 200)}},
		{"three slots together, and a writer after them", "", []*Lease{had(slot(0), 1, 0, 10, 100), had(slot(1), 2, 0, 11, 150),
			had(slot(2), 3, 0, 12, 160), had(slot(0), 4, 20, 101, 160), writer(5, 20, 161, 200)}},
		{"slots that were asked for at once, in another order than they came", "", []*Lease{had(slot(1), 2, 0, 10, 150), had(slot(0), 1, 0, 30, 100)}},
		{"a slot that was still held when a request for it left, and another slot meanwhile", "", []*Lease{had(slot(0), 1, 0, 10, 50), had(slot(1), 3, 0, 20, 90), had(slot(0), 2, 0, 60, 90)}},
		{"a reader beside a writer", Overlap, []*Lease{writer(1, 0, 10, 80), had(reader, 2, 20, 50, 140)}},
		{"a writer beside a reader", Overlap, []*Lease{had(reader, 1, 0, 10, 80), writer(2, 20, 50, 140)}},
		{"a writer beside the first of two readers", Overlap, []*Lease{
			had(reader, 1, 0, 10, 100), had(reader, 2, 0, 11, 40), writer(3, 20, 50, 140)}},
		{"a reader beside a slot", Overlap, []*Lease{had(slot(0), 1, 0, 10, 80), had(reader, 2, 20, 50, 140)}},
		{"a slot beside a writer", Overlap, []*Lease{writer(1, 0, 10, 80), had(slot(2), 2, 20, 50, 140)}},
		{"a slot twice", Overlap, []*Lease{had(slot(1), 1, 0, 10, 80), had(slot(1), 2, 20, 50, 140)}},
		{"a slot that there is not", Overlap, []*Lease{had(slot(3), 1, 0, 10, 80)}},
		{"slots of another number beside three", Overlap, []*Lease{
			had(slot(0), 1, 0, 10, 80), had(node.Share{Mode: node.Slotted, Slots: 4, Slot: 3}, 2, 20, 50, 140)}},
		{"a reader's token below an earlier writer's", TokenOrder, []*Lease{writer(5, 0, 10, 20), had(reader, 4, 30, 40, 50)}},
		{"a reader's token that is an earlier writer's", TokenOrder, []*Lease{writer(5, 0, 10, 20), had(reader, 5, 30, 40, 50)}},
		{"a reader's token below that of a writer before other readers", TokenOrder, []*Lease{
			writer(5, 0, 10, 20), had(reader, 6, 30, 40, 50), had(reader, 4, 60, 70, 90)}},
		{"a writer's token below an earlier reader's", TokenOrder, []*Lease{had(reader, 5, 0, 10, 20), writer(4, 30, 40, 50)}},
		{"a slot's token below that of another slot", TokenOrder, []*Lease{had(slot(0), 5, 0, 10, 90), had(slot(1), 4, 30, 40, 50)}},
		{"a slot's token below that of the one before it", TokenOrder, []*Lease{had(slot(0), 2, 0, 10, 50), had(slot(0), 1, 0, 60, 90)}},
		{"the same token for two slots that were asked for at once", TokenOrder, []*Lease{
			had(slot(0), 1, 0, 10, 50), had(slot(1), 1, 0, 20, 90)}},
		{"a slot's token below an earlier reader's", TokenOrder, []*Lease{had(reader, 5, 0, 10, 20), had(slot(1), 4, 30, 40, 50)}},
		{"a reader's token below an earlier slot's", TokenOrder, []*Lease{had(slot(1), 5, 0, 10, 20), had(reader, 4, 30, 40, 50)}},

		{"readers beside a writer that was downgraded", "", []*Lease{
			writer(1, 0, 10, 150).down(50), had(reader, 2, 20, 51, 100), writer(3, 60, 151, 200)}},
		{"a reader beside a writer, before it was downgraded", Overlap, []*Lease{
			writer(1, 0, 10, 150).down(50), had(reader, 2, 20, 49, 100)}},
		{"a writer beside one that was downgraded", Overlap, []*Lease{writer(1, 0, 10, 150).down(50), writer(2, 20, 60, 100)}},
		{"a slot beside a writer that was downgraded", Overlap, []*Lease{
			writer(1, 0, 10, 150).down(50), had(slot(0), 2, 20, 60, 100)}},
		{"a reader's token below that of a writer that was downgraded", TokenOrder, []*Lease{
			writer(5, 0, 10, 150).down(50), had(reader, 4, 60, 70, 100)}},

		{"a lock that is kept, and others beside and after it", "", []*Lease{had(slot(0), 1, 0, 10, 20).kept(198),
			had(slot(1), 2, 20, 40, 50), had(slot(0), 3, 20, 198, 250)}},
		{"a lock that is given to another while it is kept", Keep, []*Lease{writer(1, 0, 10, 20).kept(198), writer(2, 20, 197, 250)}},
		{"a writer while the lock is kept for a reader", Keep, []*Lease{
			had(reader, 1, 0, 10, 20).kept(198), had(reader, 2, 20, 40, 50), writer(3, 20, 60, 250)}},
	} {
		found := Judge(c.leases)
		if wrong := func(f Fault) bool { return f.Rule != c.want }; slices.ContainsFunc(found, wrong) || (len(found) > 0) != (c.want != "") {
			t.Errorf("%s: found %v, want %q", c.what, found, c.want)
		}
		var granted []Fault
		for i, l := range c.leases {
			granted = append(granted, l.Grant(c.leases[:i], true)...)
		}
		if !slices.Equal(granted, found) {
			t.Errorf("%s: found %v as each was granted, and %v afterwards", c.what, granted, found)
		}
	}
}
