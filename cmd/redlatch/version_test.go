package main

import (
	"runtime/debug"
	"testing"
)

func info(version string, settings ...string) *debug.BuildInfo {
	i := &debug.BuildInfo{Main: debug.Module{Version: version}}
	for n := 0; n < len(settings); n += 2 {
		i.Settings = append(i.Settings, debug.BuildSetting{Key: settings[n], Value: settings[n+1]})
	}
	return i
}

func TestVersionSaysWhatIsKnown(t *testing.T) {
	const hash, day = "17a997c85da6f00d", "2026-01-31T09:00:00Z"
	commit := []string{"vcs.revision", hash, "vcs.time", day}
	for _, c := range []struct {
		name                  string
		info                  *debug.BuildInfo
		version, commit, date string // set by the linker
		want                  string
	}{
		{name: "nothing", want: "unknown"},
		{name: "a build without history", info: info("(devel)"), want: "devel"},
		{name: "a build of a clone", info: info("(devel)", commit...), want: "devel (17a997c85da6, " + day + ")"},
		{name: "with changes", info: info("v0.1.0+dirty", append(commit, "vcs.modified", "true")...),
			want: "v0.1.0+dirty (17a997c85da6, " + day + ", modified)"},
		{name: "without changes", info: info("v0.1.0", append(commit, "vcs.modified", "false")...),
			want: "v0.1.0 (17a997c85da6, " + day + ")"},
		{name: "go install of a version", info: info("v1.2.3"), want: "v1.2.3"},
		{name: "a release", info: info("(devel)", append(commit, "vcs.modified", "true")...),
			version: "v1.2.3", commit: "beef", date: "2026-02-01T00:00:00Z", want: "v1.2.3 (beef, 2026-02-01T00:00:00Z)"},
		{name: "a release that names no commit", info: info("(devel)", commit...),
			version: "v1.2.3", want: "v1.2.3 (17a997c85da6, " + day + ")"},
	} {
		if got := stamped(c.info).released(c.version, c.commit, c.date).text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
