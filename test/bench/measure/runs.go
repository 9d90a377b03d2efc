package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/redlatch/redlatch/test/bench/contender"
)

// runs starts redlatch run as often as Count says, at once and with default flags,
// and counts how they exit.
func (e *entrant) runs(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "redlatch-bench-runs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", dir, "github.com/redlatch/redlatch/cmd/redlatch").CombinedOutput(); err != nil {
		return fmt.Errorf("building redlatch: %w: %s", err, out)
	}
	url, name := contender.URL(e.Server, e.backend.Addresses), newName()
	list := make([]*exec.Cmd, e.Count)
	var all sync.WaitGroup
	began := time.Now()
	for i := range list {
		list[i] = exec.CommandContext(ctx, filepath.Join(dir, "redlatch"), "run", "--nodes", url, name, "--", "true")
		all.Go(func() { _ = list[i].Run() })
	}
	all.Wait()
	e.Took = time.Since(began)
	for _, c := range list {
		switch c.ProcessState.ExitCode() {
		case 0:
		case 69:
			e.NoQuorum++
		default:
			e.Other++
		}
	}
	return nil
}
