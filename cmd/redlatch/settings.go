package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/sqlite"
)

// settings are the flags that the environment and the file may set, by their
// long names. Flags that say what to do, such as --yes, are none.
var settings = []string{
	"nodes", "require-nodes", "membership", "guard", "any-membership", "node-timeout", "password-file",
	"ttl", "on-held", "wait", "max-hold", "keep", "grace", "on-lost", "conflict-exit-code", "label",
}

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
	var seen []string // flags that show a password
	for _, name := range []string{"nodes", "former"} {
		if flags.Changed(name) && hasPassword(flags.Lookup(name).Value.String()) {
			seen = append(seen, name)
		}
	}
	file, err := readSettings()
	if err != nil {
		return err
	}
	set := map[string]bool{} // by something nearer to the user
	environment := map[string]setting{}
	for _, name := range settings {
		set[name] = flags.Changed(name)
		if value := os.Getenv(variable(name)); value != "" {
			environment[name] = setting{value: value, from: "$" + variable(name)}
		}
	}
	if flags.Changed("nonblock") { // it excludes these
		set["wait"], set["on-held"] = true, true
	}
	for _, level := range []map[string]setting{environment, file.values} {
		for _, name := range settings {
			if s, ok := level[name]; ok && !set[name] {
				if err := s.apply(flags, name); err != nil {
					return err
				}
				set[name] = true
			}
		}
		// The password itself is nearer than what the file names.
		set["password-file"] = set["password-file"] || os.Getenv(passwordVariable) != ""
	}
	for _, name := range seen {
		say.warn("", "the password in --%s can be seen by everyone on this machine (ps shows it); set %s, --password-file, or %s", name, passwordVariable, nodesVariable)
	}
	if s, ok := file.values["nodes"]; ok && file.open && hasPassword(s.value) {
		say.warn("", "others can read the password in %s; chmod 600 %s", file.path, file.path)
	}
	return nil
}

// setting is a value and where it is from, for errors.
type setting struct{ value, from string }

// apply sets a flag, if the command has it.
func (s setting) apply(flags *pflag.FlagSet, name string) error {
	if flags.Lookup(name) == nil {
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

// settingsPath returns the file of settings, and whether it was named
// explicitly and so must exist.
func settingsPath() (path string, must bool) {
	if path := os.Getenv(configVariable); path != "" {
		return path, true
	}
	// By the XDG specification relative paths are ignored.
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "redlatch", "config"), false
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "redlatch", "config"), false
	}
	return "", false
}

// maxSettings limits what is read: a larger file is not one of settings.
const maxSettings = 1 << 20

// readSettings reads the file of settings, if there is one: lines of key =
// value, empty ones, and comments after #.
func readSettings() (*settingsFile, error) {
	path, must := settingsPath()
	f := &settingsFile{path: path, values: map[string]setting{}}
	if path == "" {
		return f, nil
	}
	file, err := os.Open(path)
	if _, link := os.Readlink(path); link == nil {
		must = true // also if it leads nowhere
	}
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

// localNodes is the address that names the default: the file of this user.
const localNodes = "local"

// byDefault handles locks that are local though nobody asked for that. It
// reports it, with --quiet too, or rejects it with --require-nodes. If a variable
// is missing, as in a cron job, each machine would otherwise have a lock of its own
// without notice.
func (f *nodeFlags) byDefault() error {
	if f.requireNodes {
		return usageError(errors.New("no nodes are configured, and --require-nodes asks for them"),
			"set --nodes or "+nodesVariable+", or --nodes local for locks of this machine only")
	}
	if path, err := sqlite.DefaultPath(); err == nil && f.say != nil {
		f.say.warn("", "without --nodes locks are in %s and hold on this machine only; give --nodes redis://… to share them between machines, or --nodes local to hide this line", path)
	}
	return nil
}

// nodeNames are the nodes as errors and logs name them, for JSON.
func nodeNames(nodes []redlatch.Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.String()
	}
	return names
}

// knownVariables are the environment variables with our prefix: settings, what
// else we read, and what we set for CMD and for scripts.
func knownVariables() []string {
	known := []string{configVariable, passwordVariable, "REDLATCH_STATE_DIR", handleVariable, heldVariable,
		"REDLATCH_NAME", "REDLATCH_TOKEN", "REDLATCH_OWNER", "REDLATCH_DEADLINE", slotVariable}
	for _, name := range settings {
		known = append(known, variable(name))
	}
	return known
}

// serviceVariable matches the variables that Kubernetes and Docker set in every
// container for a service or a link whose name begins with redlatch.
var serviceVariable = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)$`)

// checkVariables rejects environment variables that begin like ours and are
// unknown: a misspelt REDLATCH_NODES would lock on this machine alone. Empty
// variables are ignored.
func checkVariables(environ []string) error {
	known := knownVariables()
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "REDLATCH_") || value == "" || slices.Contains(known, name) || serviceVariable.MatchString(name) {
			continue
		}
		near, _ := nearest(name, known)
		return usageError(fmt.Errorf("the environment variable %s is unknown", name),
			"the nearest that is known is "+near+": rename it, or unset it")
	}
	return nil
}

// nearest returns the candidate that is the fewest edits away from a word, and
// their number.
func nearest(word string, candidates []string) (best string, edits int) {
	for _, c := range candidates {
		if d := distance(word, c); best == "" || d < edits {
			best, edits = c, d
		}
	}
	return best, edits
}

// distance is how many letters must be inserted, removed, replaced or swapped
// with the next to turn one word into the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			exchange := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				exchange++
			}
			rows[i][j] = min(exchange, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
