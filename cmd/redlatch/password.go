package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// passwordVariable holds the password for addresses that have none.
const passwordVariable = "REDLATCH_PASSWORD"

// password returns the password for addresses that have none: from a file, or
// from the environment; empty for none.
func (f *nodeFlags) password() (string, error) {
	if f.passwordFile == "" {
		return os.Getenv(passwordVariable), nil
	}
	text, err := os.ReadFile(f.passwordFile)
	if err != nil {
		return "", usageError(fmt.Errorf("--password-file cannot be read: %w", err), "give a file whose first line is the password")
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usageError(fmt.Errorf("--password-file %s begins with an empty line", f.passwordFile), "give a file whose first line is the password")
	}
	return line, nil
}

// withPassword puts a password into an address of a server that has none.
func withPassword(address, password string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if password == "" || !ok || kindOf(address) == sqliteKind {
		return address
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, hosts = authority[:i], authority[i+1:]
	} else if strings.Contains(tail, "@") {
		return address // a password with a slash in it: the parser rejects it
	}
	if strings.Contains(user, ":") {
		return address
	}
	return scheme + "://" + user + url.UserPassword("", password).String() + "@" + hosts + tail
}

// hasPassword reports whether one of several addresses holds a password.
func hasPassword(text string) bool {
	for part := range strings.SplitSeq(text, "://") {
		if i := strings.LastIndex(part, "@"); i >= 0 && strings.Contains(part[:i], ":") {
			return true
		}
	}
	return strings.Contains(text, "sentinel_password=")
}
