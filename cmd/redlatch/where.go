package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/sqlite"
)

// localNodes is the address that names the default: the file of this user.
const localNodes = "local"

// fileOfUser returns the address of the file that holds this user's locks.
func fileOfUser() (string, error) {
	path, err := sqlite.DefaultPath()
	if err != nil {
		return "", &outcome{code: exitNoQuorum, event: "no_quorum", err: err, hint: "try --state FILE"}
	}
	return "sqlite:" + path, nil
}

// byDefault handles locks that are local though nobody asked for that. It
// reports it, or rejects it with --require-nodes. If a variable is missing, as
// in a cron job, each machine would otherwise have a lock of its own without
// notice.
func (f *nodeFlags) byDefault() error {
	if f.requireNodes {
		return usageError(errors.New("no nodes are configured, and --require-nodes asks for them"),
			"set --nodes or "+nodesVariable+", or --nodes local for locks of this machine only")
	}
	if path, err := sqlite.DefaultPath(); err == nil && f.say != nil && !f.say.quiet {
		f.say.warn("", "without --nodes locks are in %s and hold on this machine only; give --nodes redis://… to share them between machines, or --nodes local to hide this line", path)
	}
	return nil
}

// requireNodes is the pflag.Value of --require-nodes. It also leads from a
// command's flags to the struct that they fill.
type requireNodes struct{ *nodeFlags }

func (r requireNodes) String() string {
	return strconv.FormatBool(r.nodeFlags != nil && r.requireNodes)
}
func (r requireNodes) Type() string { return "bool" }
func (r requireNodes) Set(s string) (err error) {
	r.requireNodes, err = strconv.ParseBool(s)
	return err
}

// reportWhere makes a command report where its locks are, unless it uses a
// handle.
func reportWhere(cmd *cobra.Command, say *reporter) {
	if _, ok := cmd.Annotations[byHandle]; !ok {
		cmd.Flags().Lookup("require-nodes").Value.(requireNodes).say = say
	}
}

// byHandle marks the verbs that use a lock by its handle. Its place was
// reported when the lock was taken, and other nodes report it as lost.
const byHandle = "byHandle"

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
		for former, now := range renamed {
			if name == variable(former) {
				return usageError(fmt.Errorf("the environment variable %s is %s now", name, variable(now)), "see redlatch run --help for what it does")
			}
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
