package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion(say *reporter) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    `Print the version, the commit and its date, the Go release and the platform.`,
		Example: "  redlatch version\n  redlatch version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if say.json {
				return unwritten(writeJSON(cmd.OutOrStdout(), thisBuild()))
			}
			return writeVersion(cmd)
		},
	}
	say.registerJSON(cmd.Flags(), "write JSON to stdout instead of text")
	return cmd
}

func writeVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "redlatch %s\n", thisBuild())
	return unwritten(err)
}

// A release sets these by the linker's -X; see packaging/goreleaser.yaml. Other builds
// leave them empty, and what the Go tool stamped counts.
var (
	version string // such as v1.2.3
	commit  string // the whole hash
	date    string // of the commit, as RFC 3339: the build has none, so that it can be repeated
)

// build says from what the command was built.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // the whole hash; "" if it is not known
	Date     string `json:"date,omitempty"`     // of the commit; "" if it is not known
	Modified bool   `json:"modified,omitempty"` // files were changed since the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild returns the build of this program.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return stamped(info).released(version, commit, date)
}

// stamped returns what the Go tool wrote into the program; nil for nothing.
func stamped(info *debug.BuildInfo) build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version = info.Main.Version; b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	return b
}

// released returns the build with what a release set.
func (b build) released(version, commit, date string) build {
	if version == "" {
		return b
	}
	b.Version, b.Modified = version, false
	if commit != "" {
		b.Commit, b.Date = commit, date
	}
	return b
}

// text is the version, and what is known of the commit: v1.2.3 (4f0c2a91b7de,
// 2026-01-31T09:00:00Z).
func (b build) text() string {
	var known []string
	if b.Commit != "" {
		known = append(known, b.Commit[:min(len(b.Commit), 12)])
	}
	if b.Date != "" {
		known = append(known, b.Date)
	}
	if b.Modified {
		known = append(known, "modified")
	}
	if len(known) == 0 {
		return b.Version
	}
	return b.Version + " (" + strings.Join(known, ", ") + ")"
}

// String is what the command prints: version, commit, date, Go release and
// platform.
func (b build) String() string { return fmt.Sprintf("%s %s %s", b.text(), b.Go, b.Platform) }
