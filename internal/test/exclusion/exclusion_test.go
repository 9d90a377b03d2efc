package exclusion_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

func TestOnlyReadersAndDifferentSlotsFitTogether(t *testing.T) {
	writer, reader := node.Share{}, node.Share{Mode: node.Shared}
	slot := func(n, of uint8) node.Share { return node.Share{Mode: node.Slotted, Slot: n, Slots: of} }
	for _, c := range []struct {
		a, b node.Share
		want bool
	}{
		{writer, writer, true}, {writer, reader, true}, {writer, slot(0, 3), true},
		{reader, reader, false}, {reader, slot(0, 3), true},
		{slot(0, 3), slot(0, 3), true}, {slot(0, 3), slot(1, 3), false}, {slot(0, 3), slot(1, 2), true},
	} {
		if exclusion.Conflict(c.a, c.b) != c.want || exclusion.Conflict(c.b, c.a) != c.want {
			t.Errorf("%v and %v conflict: %v, want %v", c.a, c.b, !c.want, c.want)
		}
	}
}
