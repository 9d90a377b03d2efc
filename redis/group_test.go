package redis

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestGroupsAreRead(t *testing.T) {
	now := time.UnixMicro(1794740065009426) // the first has just expired
	all, ok := parseGroup(groupOfTwo, now.Add(-time.Microsecond))
	want := []node.Holder{
		{Value: "v", Token: 1794740038819640, Until: now, Share: node.Share{Mode: node.Slotted, Slots: 2, Slot: 1}},
		{Value: "w", Until: now.Add(time.Microsecond), Share: node.Share{Mode: node.Slotted, Slots: 2}},
	}
	if !ok || len(all) != 2 || all[0] != want[0] || all[1] != want[1] {
		t.Errorf("the group is read as %+v, %v", all, ok)
	}
	if all, ok := parseGroup(groupOfTwo, now); !ok || len(all) != 1 || all[0] != want[1] {
		t.Errorf("when the first has expired it is read as %+v, %v", all, ok)
	}
	if all, ok := parseGroup(groupOfTwo, now.Add(time.Second)); !ok || len(all) != 0 {
		t.Errorf("when all have expired it is read as %+v, %v", all, ok)
	}
	head := groupMark + "1794740065009426" + "00001794740038819640"
	for _, text := range []string{
		"", "v", "redlatch-group-2 ", groupMark + "x", groupOfTwo[:len(groupOfTwo)-1], groupOfTwo + "x",
		head + "r--" + "01" + "00001" + "v", head + "s02" + "02" + "00001" + "v", head + "s00" + "00" + "00001" + "v",
		head + "---" + "00" + "00001" + "v", head + "r--" + "00" + "-0001" + "v", head + "r--" + "00" + "00002" + "v",
	} {
		if all, ok := parseGroup(text, now); ok {
			t.Errorf("%q is read as the group %+v", text, all)
		}
	}
}

// TestWakesOfFormerScriptsAreUnderstood: a script that knows no kinds takes one
// for a part of the value.
func TestWakesOfFormerScriptsAreUnderstood(t *testing.T) {
	for text, value := range map[string]string{"v": "v", "r\x00v": "v", "s02\x00v": "v", "s99\x00v": "s99\x00v", "x\x00v": "x\x00v", "r": "r"} {
		if w, ok := parseWake("t00000000000000000007" + text); !ok || w.Value != value || w.Fence != 7 || w.Kind != node.WakeTurn {
			t.Errorf("%q is read as %+v, %v", text, w, ok)
		}
	}
}
