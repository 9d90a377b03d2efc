//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// TestTokensSurviveTheShellExactly has the shell calculate with tokens of 16
// digits and around 2^53, where a tool that keeps numbers as doubles would
// round.
func TestTokensSurviveTheShellExactly(t *testing.T) {
	t.Parallel()
	for _, base := range []node.Token{1_763_000_000_123_535, 999_999_999_999_998, node.MaxToken - 3} {
		for token := base; token < base+4 && token <= node.MaxToken; token++ {
			cmd := exec.Command("sh", "-c", `echo "$REDLATCH_TOKEN" "$((REDLATCH_TOKEN))" "$((REDLATCH_TOKEN - 1 + 1))"`)
			cmd.Env = []string{"REDLATCH_TOKEN=" + strconv.FormatUint(uint64(token), 10)}
			out, err := cmd.Output()
			must(t, err)
			for _, text := range strings.Fields(string(out)) {
				if back, err := node.ParseToken(text); err != nil || back != token {
					t.Errorf("%d came back as %q, %v", token, text, err)
				}
			}
		}
	}
	// And from a lock, through the environment, to an exit code.
	code, _, stderr := command(t, "run", "--nodes", "sqlite:"+t.TempDir()+"/locks.db", "job", "--", "sh", "-c",
		`[ "$((REDLATCH_TOKEN))" = "$REDLATCH_TOKEN" ] && [ "${#REDLATCH_TOKEN}" = 16 ]`)
	if code != 0 {
		t.Errorf("a lock's token in the shell: exit %d, %s", code, stderr)
	}
}
