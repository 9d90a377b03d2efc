//go:build unix

// Package packaging has what a release is made with. These tests are quick: they
// check that what packaging/goreleaser.yaml names is there, and that a build with its
// flags is what it should be. packaging/test.sh tests the packages themselves.
package packaging

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// config returns packaging/goreleaser.yaml without its comments.
func config(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("goreleaser.yaml")
	must(t, err)
	return regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(text), "")
}

// fields returns the values of a key, wherever it is.
func fields(text, key string) (values []string) {
	for _, m := range regexp.MustCompile(`(?m)^[\s-]*`+key+`: *(.+)$`).FindAllStringSubmatch(text, -1) {
		values = append(values, strings.Trim(m[1], `"`))
	}
	return values
}

// generated is the folder that packaging/files.sh writes.
const generated = "build/packaging/"

func TestFilesOfTheReleaseAreThere(t *testing.T) {
	text := config(t)
	script, err := os.ReadFile("files.sh")
	must(t, err)
	sources := append(fields(text, "src"), fields(text, "main")...)
	for _, src := range sources {
		if made, ok := strings.CutPrefix(src, generated); ok {
			// A name that the script writes, or a folder that it fills.
			if !strings.Contains(string(script), `"$dir/`+strings.TrimSuffix(made, "/*")) {
				t.Errorf("%s is in the release, and files.sh does not write it", src)
			}
			continue
		}
		if found, _ := filepath.Glob(filepath.Join("..", src)); len(found) == 0 {
			t.Errorf("%s is in the release, and is not there", src)
		}
	}
	if len(sources) < 10 || !slices.Contains(sources, "LICENSE") {
		t.Errorf("the release has the files %q: not all were read", sources)
	}
	if hook := "packaging/files.sh " + strings.TrimSuffix(generated, "/"); !strings.Contains(text, hook) {
		t.Errorf("the release does not run %s", hook)
	}
	if !strings.Contains(text, "github.com/redlatch/redlatch/packaging/sbom") {
		t.Error("the release does not run packaging/sbom")
	}
}

// linkerFlags returns the flags of the release for the linker, with values.
func linkerFlags(t *testing.T, values ...string) string {
	t.Helper()
	_, after, ok := strings.Cut(config(t), "    ldflags:\n")
	if !ok {
		t.Fatal("no ldflags")
	}
	var flags []string
	for line := range strings.SplitSeq(after, "\n") {
		flag, is := strings.CutPrefix(line, "      - ")
		if !is {
			break
		}
		flags = append(flags, flag)
	}
	all := strings.NewReplacer(values...).Replace(strings.Join(flags, " "))
	if strings.Contains(all, "{{") || !strings.Contains(all, "-s -w") {
		t.Fatalf("the linker's flags are %s", all)
	}
	return all
}

// releaseTags returns the build tags of the release.
func releaseTags(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer("[", "", "]", "", " ", "").Replace(strings.Join(fields(config(t), "tags"), ","))
}

const (
	commit = "4f0c2a91b7de4f0c2a91b7de4f0c2a91b7de4f0c"
	date   = "2026-01-31T09:00:00Z"

	// mostBytes is how large the command may be in a release. It has 22
	// million, 5 of them for etcd's client: what makes it much larger should be
	// known.
	mostBytes = 24_000_000
)

// TestReleaseIsWhatItShouldBe builds the command as a release does, but for
// -trimpath and CGO_ENABLED=0: with them everything would be compiled once more.
// make packages builds it with both.
func TestReleaseIsWhatItShouldBe(t *testing.T) {
	t.Parallel()
	flags := linkerFlags(t, "{{.Version}}", "1.2.3", "{{.FullCommit}}", commit, "{{.CommitDate}}", date)
	program := filepath.Join(t.TempDir(), "redlatch")
	build := exec.Command("go", "build", "-tags", releaseTags(t), "-ldflags", flags, "-o", program, "../cmd/redlatch")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Run("it names its commit", func(t *testing.T) { namesItsCommit(t, program) })
	t.Run("it is small", func(t *testing.T) {
		if info, err := os.Stat(program); err != nil {
			t.Error(err)
		} else if info.Size() > mostBytes {
			t.Errorf("the command has %d bytes, want at most %d: packaging/sizes.sh shows of what", info.Size(), mostBytes)
		}
	})
	t.Run("it has the modules that go install takes", func(t *testing.T) { hasTheModulesOfGoMod(t, program) })
	t.Run("it knows the types of PostgreSQL that it uses", func(t *testing.T) { locksInPostgreSQL(t, program) })
}

// hasTheModulesOfGoMod compares the program, which go.work builds with the
// highest version that any of our modules requires, with the requirements of the
// command.
func hasTheModulesOfGoMod(t *testing.T, program string) {
	out, err := exec.Command("go", "mod", "edit", "-json", "../cmd/go.mod").Output()
	must(t, err)
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []any
	}
	must(t, json.Unmarshal(out, &mod))
	if len(mod.Replace) > 0 {
		t.Error("cmd/go.mod has a replace: go install refuses it")
	}
	required := map[string]string{}
	for _, r := range mod.Require {
		required[r.Path] = r.Version
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil || len(info.Deps) < 5 {
		t.Fatalf("the program has the modules %v: %v", info, err)
	}
	for _, m := range info.Deps {
		if m.Version != required[m.Path] && m.Version != "(devel)" {
			t.Errorf("%s is %s, and cmd/go.mod requires %s: require the higher one there", m.Path, m.Version, required[m.Path])
		}
	}
}

func namesItsCommit(t *testing.T, program string) {
	out, err := exec.Command(program, "version").Output()
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if want := "redlatch v1.2.3 (" + commit[:12] + ", " + date + ") " + platform + "\n"; err != nil || string(out) != want {
		t.Errorf("version printed %q, %v, want %q", out, err, want)
	}
	out, err = exec.Command(program, "version", "--json").Output()
	var got struct{ Version, Commit, Date string }
	if err != nil || json.Unmarshal(out, &got) != nil || got.Version != "v1.2.3" || got.Commit != commit || got.Date != date {
		t.Errorf("version --json printed %q, %v", out, err)
	}
}

// locksInPostgreSQL runs what uses every statement: with and without a pooler,
// which has them sent in another way.
func locksInPostgreSQL(t *testing.T, program string) {
	for name, address := range map[string]string{"direct": servertest.PostgreSQL(t), "through a pooler": servertest.PgBouncer(t)} {
		nodes := address + "&table=released_" + name[:6]
		for _, c := range []struct {
			args []string
			says string
		}{
			{[]string{"init", "--assume-fresh", "--yes", "--nodes", nodes}, "postgres://"},
			{[]string{"run", "--nodes", nodes, "job", "--", program, "ls", "--nodes", nodes}, "job"},
			{[]string{"run", "--nodes", nodes, "--once", "monday", "job", "--", "echo", "it ran"}, "it ran"},
			{[]string{"show", "--nodes", nodes, "job"}, "monday"},
		} {
			out, err := exec.Command(program, c.args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%s: %s: %v, %q is not in:\n%s", name, c.args[0], err, c.says, out)
			}
		}
	}
}

// TestCommandLinksNoMoreThanItNeeds: packages that are large, and that users of
// the command have no use for.
func TestCommandLinksNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-tags", releaseTags(t), "../cmd/redlatch").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	packages := strings.Fields(string(out))
	for _, never := range []string{"testing", "net/http/pprof", "html/template", "expvar",
		"github.com/redis/go-redis/v9", "github.com/spf13/cobra/doc", "github.com/cpuguy83/go-md2man/v2/md2man", "go.yaml.in/yaml/v3"} {
		if slices.Contains(packages, never) {
			t.Errorf("redlatch links %s", never)
		}
	}
	if !slices.Contains(packages, "github.com/spf13/cobra") {
		t.Error("redlatch does not link cobra: the list is not that of its packages")
	}
}
