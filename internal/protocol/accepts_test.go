package protocol

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestClaimExpectsWhatNodesAccept(t *testing.T) {
	base := time.UnixMicro(1_700_000_000_000_000)
	for _, now := range []time.Time{base, base.Add(999), time.Unix(1, 0), time.Unix(0, 0), time.Unix(-60, 0)} {
		for _, window := range []time.Duration{0, time.Microsecond, 1500, time.Second, 10 * time.Second} {
			clock := max(now.UnixMicro(), 1)
			for _, ahead := range []time.Duration{-time.Hour, -window, 0, window, time.Hour} {
				for _, fence := range []node.Token{0, node.Token(max(clock+ahead.Microseconds(), 1))} {
					least, most := accepts(fence, now, window)
					if least > most {
						t.Fatalf("fence %d at %v, window %v: from %d to %d", fence, now, window, least, most)
					}
					for _, edge := range []node.Token{1, fence, least, most, node.Token(clock)} {
						for token := max(edge, 3) - 2; token <= edge+2; token++ {
							granted := node.Judge(token, fence, now, window) == node.Granted
							if accepted := least <= token && token <= most; granted != accepted {
								t.Errorf("token %d, fence %d at %v, window %v: granted is %v, from %d to %d", token, fence, now, window, granted, least, most)
							}
						}
					}
				}
			}
		}
	}
}
