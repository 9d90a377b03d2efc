//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// holdJob has somebody hold the lock "job" in a state folder, until the returned
// function is called.
func holdJob(t testing.TB) (dir string, release func()) {
	t.Helper()
	dir = t.TempDir()
	return dir, hold(t, dir, "redlatch", "run", "--label", "night-shift")
}

// hold is holdJob with the folder, and with the command that takes the lock.
func hold(t testing.TB, dir string, args ...string) (release func()) {
	t.Helper()
	cmd := exec.Command(args[0], append(args[1:], "job", "--", "sh", "-c", "echo >held; exec cat")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+dir)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() { cmd.Process.Kill() })
	appears(t, filepath.Join(dir, "held"))
	return func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
