package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those of a release. A program has other modules on each.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// licenceFile matches the files that must come with a copy of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// licencesOf returns the licences of Go and of all modules, but our own, that a
// package is built from.
func licencesOf(pkg string) ([]byte, error) {
	modules, err := modulesOf(pkg)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "The program is built from the modules below. Each comes with its licence.\n")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	if err := appendLicences(&b, "The Go standard library", strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	for _, m := range modules {
		name, dir, _ := strings.Cut(m, "\t")
		if err := appendLicences(&b, name, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// modulesOf returns the modules of a package on all platforms, each with its
// folder after a tab.
func modulesOf(pkg string) ([]string, error) {
	var all []string
	for _, p := range platforms {
		system, processor, _ := strings.Cut(p, "/")
		cmd := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", pkg)
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", p, err)
		}
		for line := range strings.Lines(string(out)) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// appendLicences adds the licences of a folder. One without is an error: it must
// not be given away.
func appendLicences(b *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n%s\n\n%s\n", strings.Repeat("=", 78), name, e.Name(), strings.Repeat("=", 78), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return nil
}
