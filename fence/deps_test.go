package fence_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestFenceBringsNoDriver(t *testing.T) {
	const format = `{{if and (not .Standard) .Module (not .Module.Main)}}{{.ImportPath}}{{end}}`
	out, err := exec.Command("go", "list", "-deps", "-f", format, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		t.Errorf("it brings %s", text)
	}
}
