package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settings are the flags that the environment and the file may set, by their
// long names. Flags that say what to do, such as --yes, are none.
var settings = []string{
	"nodes", "state", "require-nodes", "membership", "guard", "any-membership", "node-timeout", "password-file",
	"ttl", "no-wait", "wait", "quarantine-wait", "max-hold", "keep", "grace", "on-lost", "conflict-exit-code", "label", "log-format",
}

// exclusive are settings that exclude each other: one that is set nearer to the
// user disables the others.
var exclusive = [][]string{{"nodes", "state"}, {"no-wait", "wait"}, {"log-format", "output"}}

// renamed are former settings, and what has replaced each.
var renamed = map[string]string{"min-hold": "keep"}

// ownMeaning annotates a flag that has the name of a setting and means
// something else.
const ownMeaning = "own-meaning"

// configVariable names the file of settings.
const configVariable = "REDLATCH_CONFIG"

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "REDLATCH_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// applySettings sets the flags that the command line does not set: from the
// environment, or else from the file.
func applySettings(cmd *cobra.Command, say *reporter) error {
	flags := cmd.Flags()
	if flags.Lookup("nodes") == nil {
		return nil // it uses no nodes, and must work with any file
	}
	if err := checkVariables(os.Environ()); err != nil {
		return err
	}
	onLine := func(name string) bool { f := flags.Lookup(name); return f != nil && f.Changed }
	var seen []string // flags that show a password
	for _, name := range []string{"nodes", "former"} {
		if onLine(name) && hasPassword(flags.Lookup(name).Value.String()) {
			seen = append(seen, name)
		}
	}
	file, err := readSettings()
	if err != nil {
		return err
	}
	set := map[string]bool{} // by something nearer to the user
	for _, name := range settings {
		set[name] = onLine(name)
	}
	if onLine("output") {
		_, set["output"] = flags.Lookup("output").Value.(*format) // that of stderr
	}
	environment := func(name string) (setting, bool) {
		value := os.Getenv(variable(name))
		if name == "password-file" && value == "" && os.Getenv(passwordVariable) != "" {
			set[name] = true // the password itself, nearer than what the file names
		}
		return setting{value: value, from: "$" + variable(name)}, value != ""
	}
	for _, level := range []func(string) (setting, bool){environment, file.get} {
		var here []string
		for _, name := range settings {
			if s, ok := level(name); ok && !overruled(name, set) {
				if err := s.apply(flags, name); err != nil {
					return err
				}
				here = append(here, name)
			}
		}
		for _, name := range here {
			set[name] = true
		}
	}
	// Not earlier: now it is known what form stderr has.
	for _, name := range seen {
		say.warn("", "the password in --%s can be seen by everyone on this machine (ps shows it); set %s, --password-file, or %s", name, passwordVariable, nodesVariable)
	}
	file.warn(say)
	reportWhere(cmd, say)
	return nil
}

// overruled reports whether a setting, or one that excludes it, has been set.
func overruled(name string, set map[string]bool) bool {
	if set[name] {
		return true
	}
	for _, group := range exclusive {
		if slices.Contains(group, name) && slices.ContainsFunc(group, func(other string) bool { return set[other] }) {
			return true
		}
	}
	return false
}

// setting is a value and where it is from, for errors.
type setting struct{ value, from string }

// apply sets a flag, if the command has it.
func (s setting) apply(flags *pflag.FlagSet, name string) error {
	if f := flags.Lookup(name); f == nil || f.Annotations[ownMeaning] != nil {
		return nil
	}
	if err := flags.Set(name, s.value); err != nil {
		// Not pflag's own message: it shows the value, which may contain a
		// password.
		cause := err
		if inner := errors.Unwrap(err); inner != nil {
			cause = inner
		}
		const most = 200 // it may show the value, at any length
		if text := cause.Error(); len(text) > most {
			cause = errors.New(strings.ToValidUTF8(text[:most], "") + "…")
		}
		return usageError(fmt.Errorf("%s of %s cannot be taken: %w", name, s.from, cause), "see redlatch run --help for its form")
	}
	return nil
}

// settingsFile is what was read from the file of settings.
type settingsFile struct {
	path   string
	values map[string]setting
	open   bool // others may read it
}

func (f *settingsFile) get(name string) (setting, bool) {
	s, ok := f.values[name]
	return s, ok
}

// warn reports if others can read a password.
func (f *settingsFile) warn(say *reporter) {
	if s, ok := f.values["nodes"]; ok && f.open && hasPassword(s.value) {
		say.warn("", "others can read the password in %s; chmod 600 %s", f.path, f.path)
	}
}

// settingsPath returns the file of settings, and whether it was named
// explicitly and so must exist.
func settingsPath(getenv func(string) string) (path string, must bool) {
	if path := getenv(configVariable); path != "" {
		return path, true
	}
	// By the XDG specification relative paths are ignored.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "redlatch", "config"), false
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "redlatch", "config"), false
	}
	return "", false
}

// maxSettings limits what is read: a larger file is not one of settings.
const maxSettings = 1 << 20

// readSettings reads the file of settings, if there is one: lines of key =
// value, empty ones, and comments after #.
func readSettings() (*settingsFile, error) {
	path, must := settingsPath(os.Getenv)
	f := &settingsFile{path: path, values: map[string]setting{}}
	if path == "" {
		return f, nil
	}
	file, err := os.Open(path)
	if !must && (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return f, nil // also with XDG_CONFIG_HOME=/dev/null
	}
	if err != nil {
		return f, usageError(fmt.Errorf("the settings file cannot be read: %w", err), "see "+configVariable+", or remove it")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.IsDir() || info.Size() > maxSettings {
		return f, usageError(fmt.Errorf("the settings file %s is a folder, or larger than %d bytes", path, maxSettings), "give a file of lines: key = value")
	}
	f.open = info.Mode().Perm()&0o044 != 0
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if err := f.line(strings.TrimSpace(lines.Text()), n); err != nil {
			return f, err
		}
	}
	if err := lines.Err(); err != nil {
		return f, usageError(fmt.Errorf("the settings file %s cannot be read: %w", path, err), "give a file of lines: key = value")
	}
	return f, nil
}

// line reads one line. Its errors never show the value.
func (f *settingsFile) line(text string, n int) error {
	where := fmt.Sprintf("%s, line %d", f.path, n)
	if text == "" || strings.HasPrefix(text, "#") {
		return nil
	}
	key, value, ok := strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok:
		return usageError(fmt.Errorf("%s: there is no = in it", where), "write key = value, or # before a comment")
	case renamed[key] != "":
		return usageError(fmt.Errorf("%s: the key %q is %s now", where, key, renamed[key]), "see redlatch run --help for what it does")
	case !slices.Contains(settings, key):
		return usageError(fmt.Errorf("%s: the key %q is unknown", where, key), "the keys are "+strings.Join(settings, ", "))
	case value == "":
		return usageError(fmt.Errorf("%s: %s has no value", where, key), "give it one, or put a # before the line")
	}
	if before, twice := f.values[key]; twice {
		return usageError(fmt.Errorf("%s: %s is set a second time, after %s", where, key, before.from), "remove one of the two")
	}
	f.values[key] = setting{value: value, from: where}
	return nil
}
