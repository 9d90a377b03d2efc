package exclusion

import (
	"testing"

	"github.com/redlatch/redlatch/node"
)

func TestOnlyReadersAndDifferentSlotsFitTogether(t *testing.T) {
	writer, otherNumber := node.Share{}, node.Share{Mode: node.Slotted, Slot: 1, Slots: 2}
	for _, c := range []struct {
		a, b node.Share
		want bool
	}{
		{writer, writer, true}, {writer, reader, true},
		{reader, reader, false}, {reader, slot(0), true}, {writer, slot(0), true},
		{slot(0), slot(0), true}, {slot(0), slot(1), false}, {slot(0), otherNumber, true},
	} {
		if Conflict(c.a, c.b) != c.want || Conflict(c.b, c.a) != c.want {
			t.Errorf("%v and %v conflict: %v, want %v", c.a, c.b, !c.want, c.want)
		}
	}
}
