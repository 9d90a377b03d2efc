package casnode

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// message is a wake as a text without quotes: its kind, the fence, the name and
// the waiter.
func message(name string, w node.Wake) string {
	encode := base64.RawStdEncoding.EncodeToString
	return strconv.Itoa(int(w.Kind)) + " " + w.Fence.String() + " " + encode([]byte(name)) + " " + encode([]byte(w.Value))
}

// parseMessage reads what message returns.
func parseMessage(text string) (w waiter, wake node.Wake, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return w, wake, false
	}
	kind, err1 := strconv.Atoi(parts[0])
	fence, err2 := strconv.ParseUint(parts[1], 10, 64)
	name, err3 := base64.RawStdEncoding.DecodeString(parts[2])
	value, err4 := base64.RawStdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || kind < int(node.WakeTurn) || kind > int(node.WakeCall) {
		return w, wake, false
	}
	w = waiter{string(name), string(value)}
	return w, node.Wake{Kind: node.WakeKind(kind), Value: w.value, Fence: node.Token(fence)}, true
}
