//go:build unix

package packaging

import (
	"archive/zip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/snippets"
)

// rehearsal says that every module is compiled, which takes minutes: make rehearsal.
// The command refuses variables that it does not know, so it is not given this one.
var rehearsal = func() bool {
	defer os.Unsetenv("REDLATCH_REHEARSAL")
	return os.Getenv("REDLATCH_REHEARSAL") != ""
}()

var must = check.Must

// TestReleaseCanBeInstalledAndImported rehearses a release: this tree, as the
// next version of each of its modules, is served as a module proxy serves it, to
// somebody who has nothing of ours. What go.work joins must fit together without
// it.
func TestReleaseCanBeInstalledAndImported(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the release")
	}
	t.Parallel()
	proxy, modules, version := publish(t)
	home := t.TempDir()
	// Modules of others are in the cache already: they were needed to build this.
	// Of some an older version is needed, without what go.work joins.
	// Without cgo and paths most of them are compiled already, for the test of the
	// release.
	env := append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+goEnv(t, "GOMODCACHE")+"/cache/download,"+goEnv(t, "GOPROXY"),
		"GOMODCACHE="+filepath.Join(home, "mod"), "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOWORK=", "CGO_ENABLED=0",
		"GOBIN="+filepath.Join(home, "bin"), "HOME="+home, "GOCACHE="+goEnv(t, "GOCACHE"),
		"PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "REDLATCH_NODES=")
	// do runs a command in a folder.
	do := func(t *testing.T, dir, command string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}

	t.Run("the command", func(t *testing.T) {
		dir := t.TempDir()
		do(t, dir, "go install -trimpath github.com/redlatch/redlatch/cmd/redlatch@"+version)
		if out := do(t, dir, "redlatch version"); !strings.HasPrefix(out, "redlatch "+version+" ") {
			t.Errorf("its version is %q", out)
		}
		write(t, dir, "report.sh", "#!/bin/sh\necho it ran\n")
		line := strings.TrimSpace(readme(t, "sh", "redlatch run nightly -- ./report.sh").Text)
		if out := do(t, dir, line); !strings.Contains(out, "it ran") {
			t.Errorf("%s printed %q", line, out)
		}
	})
	t.Run("the library", func(t *testing.T) {
		dir := t.TempDir()
		program := readme(t, "go", "redlatch.Open(").Text
		if n := strings.Count(strings.ReplaceAll(program, "\n\n", "\n"), "\n"); n > 19 {
			t.Errorf("the program for a new user has %d lines, and empty ones; want at most 19", n)
		}
		const address, store = `"sqlite:"`, "\t_ \"github.com/redlatch/redlatch/store/sqlite\"\n"
		if !strings.Contains(program, address) || !strings.Contains(program, store) {
			t.Fatalf("the program of the README does not use %s:\n%s", address, program)
		}
		do(t, dir, "go mod init example.com/new && go get github.com/redlatch/redlatch@"+version)
		redis := strings.NewReplacer(address, `"redis://`+servertest.Redis(t, 1)[0].Addr()+`"`, store, "")
		for _, program := range []string{redis.Replace(program), program} { // with Redis it needs neither import nor module
			write(t, dir, "main.go", program)
			if out := do(t, dir, "go run -trimpath ."); !strings.Contains(out, "under the lock, with token ") || !strings.Contains(out, "error: <nil>") {
				t.Errorf("the program printed\n%s", out)
			}
			do(t, dir, "go get github.com/redlatch/redlatch/store/sqlite@"+version)
		}
	})
	verb := "go list -deps"
	if rehearsal {
		verb = "go build -trimpath"
	}
	for _, module := range modules {
		t.Run(module, func(t *testing.T) {
			dir := t.TempDir()
			do(t, dir, "go mod init example.com/new && go get "+module+"/...@"+version)
			do(t, dir, verb+" "+module+"/...")
		})
	}
	if len(modules) < 10 {
		t.Errorf("the modules that are published are %q: some are missing", modules)
	}
}

// TestReleaseHasOneVersion compares the version of go.work with all others.
func TestReleaseHasOneVersion(t *testing.T) {
	_, version := work(t)
	out, err := exec.Command("git", "-C", "..", "-c", "safe.directory=*", "ls-files", "*go.mod").Output()
	must(t, err)
	ours := regexp.MustCompile(`(?m)^\s*(?:require )?(github\.com/redlatch/redlatch\S*) (v\S+)`)
	count := 0
	for path := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", path))
		must(t, err)
		for _, m := range ours.FindAllStringSubmatch(string(text), -1) {
			if count++; m[2] != version {
				t.Errorf("%s requires %s %s, and go.work has %s", path, m[1], m[2], version)
			}
		}
	}
	if count < 10 {
		t.Errorf("found %d requirements of our modules: this looked in the wrong place", count)
	}
	changelog, err := os.ReadFile("../CHANGELOG.md")
	must(t, err)
	if released := regexp.MustCompile(`(?m)^## \[(\d\S*)\]`).FindStringSubmatch(string(changelog)); released == nil || "v"+released[1] != version {
		t.Errorf("the newest release in CHANGELOG.md is %q, and go.work has %s", released, version)
	}
}

// TestWorkflowsRunTargetsThatExist compares the workflows with the Makefile.
func TestWorkflowsRunTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	must(t, err)
	files, _ := filepath.Glob("../.github/workflows/*.yml")
	count := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		must(t, err)
		var targets []string
		for _, m := range regexp.MustCompile(`(?m)run: (.*)$`).FindAllStringSubmatch(string(text), -1) {
			target, ok := strings.CutPrefix(m[1], "make ")
			if !ok {
				t.Errorf("%s runs %q, which is no target of make", path, m[1])
			}
			if name, _, sets := strings.Cut(target, "="); sets {
				target = strings.Fields(name)[0]
			}
			targets = append(targets, target)
		}
		if m := regexp.MustCompile(`target: \[(.*)\]`).FindStringSubmatch(string(text)); m != nil {
			targets = append(targets, strings.Split(m[1], ", ")...)
		}
		for _, target := range targets {
			if count++; target != "${{ matrix.target }}" && !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("%s makes %s, which the Makefile does not have", path, target)
			}
		}
	}
	if count < 5 {
		t.Errorf("found %d targets: this looked in the wrong place", count)
	}
}

// readme returns the first block of the README in a language that has a text.
func readme(t *testing.T, lang, text string) snippets.Block {
	t.Helper()
	source, err := os.ReadFile("../README.md")
	must(t, err)
	blocks, err := snippets.Parse("README.md", string(source))
	must(t, err)
	for _, b := range blocks {
		if b.Lang == lang && strings.Contains(b.Text, text) {
			return b
		}
	}
	t.Fatalf("README.md has no %s with %s", lang, text)
	return snippets.Block{}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
}

// work returns the folders of the modules in go.work, and the version in which
// they require each other.
func work(t *testing.T) (folders []string, version string) {
	t.Helper()
	out, err := exec.Command("go", "work", "edit", "-json", "../go.work").Output()
	must(t, err)
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct{ Old struct{ Version string } }
	}
	if err := json.Unmarshal(out, &work); err != nil || len(work.Replace) == 0 {
		t.Fatalf("go.work: %v\n%s", err, out)
	}
	for _, use := range work.Use {
		folders = append(folders, filepath.Clean(use.DiskPath))
	}
	return folders, work.Replace[0].Old.Version
}

// publish writes the modules of go.work as files that a module proxy serves. It
// returns their folder, the modules that users import, and their version.
func publish(t *testing.T) (folder string, modules []string, version string) {
	t.Helper()
	const path = "github.com/redlatch/redlatch"
	folders, version := work(t)
	out, err := exec.Command("git", "-C", "..", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	// A file belongs to the innermost module around it.
	inModule := map[string][]string{}
	for _, file := range files {
		in := "."
		for _, dir := range folders {
			if strings.HasPrefix(file, dir+"/") && len(dir) > len(in) {
				in = dir
			}
		}
		inModule[in] = append(inModule[in], file)
	}
	folder = t.TempDir()
	for in, files := range inModule {
		module := strings.TrimSuffix(path+"/"+in, "/.")
		if !strings.HasPrefix(in, "test/") && in != "examples" {
			modules = append(modules, module)
		}
		versions := filepath.Join(folder, module, "@v")
		mod, err := os.ReadFile(filepath.Join("..", in, "go.mod"))
		must(t, err)
		write(t, versions, "list", version+"\n")
		write(t, versions, version+".mod", string(mod))
		write(t, versions, version+".info", `{"Version":"`+version+`"}`)
		archive, err := os.Create(filepath.Join(versions, version+".zip"))
		must(t, err)
		z := zip.NewWriter(archive)
		for _, file := range files {
			inside, _ := filepath.Rel(in, file)
			text, err := os.ReadFile(filepath.Join("..", file))
			if os.IsNotExist(err) {
				continue // it was removed, but not from git's index
			}
			entry, err2 := z.Create(module + "@" + version + "/" + inside)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if _, err := entry.Write(text); err != nil {
				t.Fatal(err)
			}
		}
		must(t, z.Close())
		must(t, archive.Close())
	}
	slices.Sort(modules)
	return folder, modules, version
}
