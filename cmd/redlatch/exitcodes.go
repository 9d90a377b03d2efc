package main

import (
	"fmt"
	"slices"
	"strings"
)

// exitCodes are all exit codes, what they mean, and which verbs have them; if
// none is named, all do. docs/command.md has the same table.
var exitCodes = []struct {
	code, means string
	verbs       []string
}{
	{"0", "success; or CMD did not run because another client holds the lock (--on-held skip) or its occurrence is completed (--once)", nil},
	{"1", "doctor found what endangers the locks, or a node does not answer; or the demo saw a broken promise", []string{"doctor", "demo"}},
	{"64", "the command line, a setting or a handle is wrong; the nodes have another membership; or this command runs under the lock that it would wait for", nil},
	{"69", "too few nodes answered or are in service; or an address, a file or a server cannot be used", []string{"run", "lead", "lock", "extend", "unlock", "ls", "show", "ui", "break", "doctor", "demo", "dev", "init"}},
	{"73", "a file cannot be written: that of --metrics, and CMD did not run, or the program that install copies", []string{"run", "lead", "install"}},
	{"74", "stdout cannot be written; lock has released its lock again", []string{"lock", "extend", "unlock", "ls", "show", "watch", "ui", "break", "doctor", "demo", "init", "version"}},
	{"75", "another client holds the lock, or the wait is over; -E sets another code", []string{"run", "lock", "break"}},
	{"77", "the servers refuse the user or the password", []string{"run", "lead", "lock", "extend", "unlock", "ls", "show", "break", "init"}},
	{"79", "the lock was lost while CMD ran, or is no longer held; or --once could not record that CMD succeeded", []string{"run", "lead", "lock", "extend", "unlock"}},
	{"126", "CMD cannot be run", []string{"run", "lead", "dev"}},
	{"127", "CMD, or a server for dev, is not found", []string{"run", "lead", "dev"}},
	{"128+N", "signal N ended CMD, or the wait for the lock; 130 also if the answer to a question was no", []string{"run", "lead", "lock", "break", "init"}},
	{"other", "CMD's own", []string{"run", "lead", "dev"}},
}

// exitStatus is the part of the help of a verb that says which exit codes it has;
// of all verbs if it is empty.
func exitStatus(verb string) string {
	var b strings.Builder
	b.WriteString("Exit status:")
	for _, e := range exitCodes {
		if verb == "" || e.verbs == nil || slices.Contains(e.verbs, verb) {
			b.WriteString(exitLine(e.code, e.means))
		}
	}
	return b.String()
}

// helpWidth is how wide help is where the terminal does not say.
const helpWidth = 84

// exitLine is a code with its meaning, on as many lines as it needs.
func exitLine(code, means string) string {
	line := fmt.Sprintf("\n%7s ", code)
	var b strings.Builder
	for word := range strings.SplitSeq(means, " ") {
		if len(line)+1+len(word) > helpWidth {
			b.WriteString(line)
			line = fmt.Sprintf("\n%7s ", "")
		}
		line += " " + word
	}
	return b.String() + line
}
