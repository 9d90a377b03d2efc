package redis

import (
	"strconv"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// reserved begins the names of this package's own keys. The number is the
// version of their format.
const reserved = "redlatch:1:"

// sideKey returns the key of the given kind that belongs to the lock name. In a
// cluster it is in the same slot as the name, for every possible name.
func sideKey(kind, name string) string {
	before, after := around(name)
	return reserved + kind + before + name + after
}

// around returns what a side key has before and after the name.
func around(name string) (before, after string) {
	if _, ok := hashTag(name); ok {
		// The name's own tag is the first in the key, and so decides the slot.
		// The second colon distinguishes {a} from a.
		return "::", ""
	}
	if !strings.Contains(name, "}") {
		return ":{", "}"
	}
	// Braces around such a name would end too early ("a}b", "{}x"): use a tag
	// that is known to be in the name's slot.
	return ":{" + slotTag(slotOf(name)) + "}", ""
}

// requestTexts are the texts that differ from request to request: the side keys
// of its name, if they are declared, its token, its ticket, and its item in a batch
// if it waits. They are parts of one text, which takes
// one allocation.
type requestTexts struct{ fence, turn, queue, group, ended, token, item, ticket string }

func textsOf(req *node.Request, declared bool) (t requestTexts) {
	var buf [512]byte
	var ends [7]int
	b := buf[:0]
	if declared {
		before, after := around(req.Name)
		for i, kind := range [...]string{"fence", "turn", "queue", "group", "ended"} {
			b = append(append(append(append(append(b, reserved...), kind...), before...), req.Name...), after...)
			ends[i] = len(b)
		}
	}
	if req.Token != 0 {
		b = append(b, req.Token.String()...)
	}
	ends[5] = len(b)
	b = strconv.AppendInt(append(b, 'a'), req.Ticket, 10)
	ends[6] = len(b)
	all, start := string(b), 0
	for i, part := range [...]*string{&t.fence, &t.turn, &t.queue, &t.group, &t.ended, &t.token, &t.item} {
		*part = all[start:ends[i]]
		start = ends[i]
	}
	t.ticket = t.item[1:]
	return t
}

// nameOf is the inverse of sideKey: it returns the kind of a side key, and the
// name it belongs to; false for a key that sideKey did not make.
func nameOf(key string) (kind, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, reserved)
	if !ok {
		return "", "", false
	}
	kind, rest, ok = strings.Cut(rest, ":")
	if !ok {
		return "", "", false
	}
	if tagged, ok := strings.CutPrefix(rest, ":"); ok {
		name = tagged
	} else if i := strings.Index(rest, "}"); i == len(rest)-1 && strings.HasPrefix(rest, "{") {
		name = rest[1:i]
	} else {
		name = rest[i+1:]
	}
	return kind, name, sideKey(kind, name) == key
}

// hashTag returns the part of a key that alone decides its slot, if it has one:
// the text between the first { and the next }, unless that is empty.
func hashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

const slots = 16384

// slotOf returns the Redis Cluster slot of a key.
func slotOf(key string) int {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	var crc uint16
	for i := 0; i < len(key); i++ {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// slotTag returns a short text that falls into the given slot.
func slotTag(slot int) string { return slotTags()[slot] }

var slotTags = sync.OnceValue(func() *[slots]string {
	var tags [slots]string
	for i, missing := 0, slots; missing > 0; i++ {
		tag := strconv.FormatInt(int64(i), 36)
		if s := slotOf(tag); tags[s] == "" {
			tags[s] = tag
			missing--
		}
	}
	return &tags
})
