//go:build unix

package redis_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestPairAllocatesNoMoreThanItNeeds counts the allocations of a pair with package
// direct on one server: the attempt, the claim, its mutex, its value, the lease,
// and the keys and the reply of each request; for Lock also the local queue. On five
// servers it is more by the keys and replies of four, 16.
func TestPairAllocatesNoMoreThanItNeeds(t *testing.T) {
	servers := servertest.Redis(t, 6)
	program := filepath.Join(t.TempDir(), "allocations")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/allocations").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, most := range []struct{ servers, lock, try int }{{1, 10, 9}, {5, 26, 25}} {
		out, err := exec.Command(program, strings.Join(servertest.Addresses(servers[:most.servers]), ",")).CombinedOutput()
		servers = servers[most.servers:]
		var lock, try int
		if _, scan := fmt.Sscan(string(out), &lock, &try); err != nil || scan != nil {
			t.Fatalf("%v, %v\n%s", err, scan, out)
		}
		if lock > most.lock || try > most.try {
			t.Errorf("on %d servers Lock and Release take %d allocations, TryLock and Release %d, want at most %d and %d", most.servers, lock, try, most.lock, most.try)
		}
	}
}
