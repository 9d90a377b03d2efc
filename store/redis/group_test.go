package redis

import (
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestGroupsAreRead(t *testing.T) {
	first := time.UnixMicro(1794740065009426)
	last := first.Add(time.Microsecond)
	want := []node.Holder{ // in the order of their tokens
		{Value: "w", Until: last, Share: node.Share{Mode: node.Slotted, Slots: 2}},
		{Value: "v", Token: 1794740038819640, Until: first, Share: node.Share{Mode: node.Slotted, Slots: 2, Slot: 1}},
	}
	g, ok := parseGroup(groupOfTwo)
	if !ok || g.count != 2 || !g.first.Equal(first) || !g.last.Equal(last) || !slices.Equal(g.holders, want) {
		t.Errorf("the group is read as %+v, %v", g, ok)
	}
	head := groupMark + "00001" + "1794740065009426" + "1794740065009426" + "1794740065009426" + "00001794740038819640"
	for _, text := range []string{
		"", "v", groupMark, groupMark + "x", groupMark + "r id", groupOfTwo[:len(groupOfTwo)-1], groupOfTwo + "x",
		head + "r--" + "01" + "00001" + "v", head + "s02" + "02" + "00001" + "v", head + "s00" + "00" + "00001" + "v",
		head + "---" + "00" + "00001" + "v", head + "r--" + "00" + "-0001" + "v", head + "r--" + "00" + "00002" + "v",
	} {
		if g, ok := parseGroup(text); ok {
			t.Errorf("%q is read as the group %+v", text, g)
		}
	}
}
