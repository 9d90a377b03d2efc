package sqlite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/redlatch/redlatch/node"
)

// FuzzFiles opens files of any content. A file that is not ours must not be
// changed. One of ours that is damaged must not crash the process.
func FuzzFiles(f *testing.F) {
	path := filepath.Join(f.TempDir(), "locks.db")
	n, err := Open(path, nil)
	must(f, err)
	if _, err := n.Do(context.Background(), request(node.OpAcquire, "name", "one")); err != nil {
		f.Fatal(err)
	}
	n.Close() // folds the log in
	ours, err := os.ReadFile(path)
	must(f, err)
	f.Add([]byte{})
	f.Add([]byte("hello"))
	f.Add(ours)
	f.Add(ours[:len(ours)/2])
	f.Add(ours[:100])
	f.Add(append(bytes.Clone(ours[:60]), bytes.Repeat([]byte{0xff}, 40)...))
	for _, at := range []int{18, 24, 28, 60, 68, 100, 105, 4096, len(ours) - 10} { // versions, sizes, ids, pages
		broken := bytes.Clone(ours)
		broken[at] ^= 0x55
		f.Add(broken)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<20 {
			return
		}
		path := filepath.Join(t.TempDir(), "locks.db")
		must(t, os.WriteFile(path, content, 0o600))
		n, err := Open(path, nil)
		if err != nil {
			text := err.Error()
			if !strings.HasPrefix(text, "redlatch: ") || !strings.Contains(text, path) || strings.ContainsFunc(text, unicode.IsControl) || len(text) > 1000+len(path) {
				t.Errorf("it is refused with %q", text)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Errorf("a file that was refused was changed, or cannot be read: %v", err)
			}
			return
		}
		defer n.Close()
		if reply, err := n.Do(context.Background(), request(node.OpAcquire, "name", "two")); err == nil && reply.Status.String() == "unknown status" {
			t.Errorf("got %+v", reply)
		}
		n.List(context.Background(), "", func(node.Listing) {})
		n.Look(context.Background(), "name")
	})
}
