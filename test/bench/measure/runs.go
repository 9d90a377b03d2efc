package measure

import (
	"context"
	"errors"
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
	program := filepath.Join(dir, "redlatch")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/redlatch/redlatch/cmd/redlatch").CombinedOutput(); err != nil {
		return fmt.Errorf("building redlatch: %w: %s", err, out)
	}
	url, name := contender.URL(e.Server, e.backend.Addresses()), newName()
	var all sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for range e.Count {
		all.Go(func() {
			err := exec.CommandContext(ctx, program, "run", "--nodes", url, name, "--", "true").Run()
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 69 {
				e.NoQuorum++
			} else {
				e.Other++
			}
		})
	}
	all.Wait()
	e.Took = time.Since(began)
	return nil
}
