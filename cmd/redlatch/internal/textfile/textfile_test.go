package textfile

import (
	"errors"
	"github.com/redlatch/redlatch/internal/test/check"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var must = check.Must

// names are names of locks that break careless formats.
var names = []string{
	"backup", "a b", `quote " and \ backslash`, `\n`, `ends in \`, "a\nb", `x",y="z`, `{} 7`, "\u202etxt.exe", "\xff", "é 日本", strings.Repeat("n", 512), strings.Repeat(`"`, 512),
}

func TestSeriesAreReadAsTheyWereWritten(t *testing.T) {
	text := Gauge("redlatch_run_x", "Help.")
	want := map[string]string{}
	for i, name := range names {
		series := Series("redlatch_run_x", "name", name, "node", "n")
		if strings.Contains(series, "\n") || want[series] != "" {
			t.Errorf("%q is %s, of two lines or twice", name, series)
		}
		value := strings.Repeat("1", i+1)
		want[series] = value
		text += series + " " + value + "\n"
	}
	path := filepath.Join(t.TempDir(), "x.prom")
	must(t, Write(path, text))
	got, err := Read(path, "redlatch_run_")
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if plain := Series("m"); plain != "m" {
		t.Errorf("without labels %q", plain)
	}
}

func TestFileOfOthersIsNotRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"script": "#!/bin/sh\n", "others": "# HELP node_load1 x\n# TYPE node_load1 gauge\nnode_load1 1\n", "zeros": "\x00\x00",
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Read(path, "redlatch_run_"); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(dir, "redlatch_run_"); !errors.Is(err, ErrForeign) {
		t.Errorf("a folder: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	must(t, os.WriteFile(empty, nil, 0o600))
	for _, path := range []string{empty, filepath.Join(dir, "none")} {
		if got, err := Read(path, "redlatch_run_"); err != nil || len(got) > 0 {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}

// TestReaderSeesWholeFiles reads without a pause while a file is replaced by
// others of two lengths.
func TestReaderSeesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.prom")
	texts := []string{strings.Repeat("short\n", 10), strings.Repeat("longer\n", 5000)}
	must(t, Write(path, texts[0]))
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 100 {
			if err := Write(path, texts[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	over := make(chan struct{})
	go func() { writer.Wait(); close(over) }()
	for reading := true; reading; {
		select {
		case <-over:
			reading = false
		default:
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != texts[0] && string(text) != texts[1] {
			t.Fatalf("read %d bytes, %v", len(text), err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "x.prom"), 0o700))
	if err := Write(filepath.Join(dir, "x.prom"), "text"); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
