package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/store/redis"
)

// alone hides this machine's own settings from the test.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range settings {
		t.Setenv(variable(name), "")
	}
	for _, name := range []string{configVariable, passwordVariable, handleVariable, "XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(name, "")
	}
}

// usage fails unless an error is about usage and can be shown, and returns what
// is shown.
func usage(t *testing.T, err error) string {
	t.Helper()
	if end, ok := errors.AsType[*outcome](err); !ok || end.code != exitUsage || end.err == nil || end.hint == "" {
		t.Fatalf("got %v, want an error about usage that says what to do", err)
	}
	text := message(err)
	if len(text) > 1000+2*len(os.TempDir()) || text == "" || harmless(text) != text {
		t.Errorf("it is shown as %q", text)
	}
	return text
}

// FuzzSettingsFiles reads files of settings. Their last line contains a secret.
func FuzzSettingsFiles(f *testing.F) {
	for _, text := range []string{
		"", "# a comment\n\nttl = 5s\n", "ttl=5s\nttl=6s", "ttl", "=", "ttl =", "unknown = x", "nodes = redis://a, redis://b", "wait = 1s\r\non-held = fail\r\n",
		"\xff = \xfe", "ttl = \x00", "label = a = b # c", strings.Repeat("x", 70_000), "\xef\xbb\xbfttl = 5s",
	} {
		f.Add(text)
	}
	const secret = "s3cr3t"
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, secret) {
			return
		}
		alone(t)
		path := filepath.Join(t.TempDir(), "config")
		t.Setenv(configVariable, path)
		for _, content := range []string{text, text + "\npassword-file = " + secret, text + "\n" + secret} {
			must(t, os.WriteFile(path, []byte(content), 0o600))
			file, err := readSettings()
			if err != nil {
				if shown := usage(t, err); strings.Contains(shown, secret) || !strings.Contains(shown, path) {
					t.Errorf("%q: the error shows a value, or not the file: %s", content, shown)
				}
				continue
			}
			// Settings that were read can be written and read again.
			var again strings.Builder
			for _, key := range slices.Sorted(maps.Keys(file.values)) {
				value := file.values[key].value
				if !slices.Contains(settings, key) || value == "" || value != strings.TrimSpace(value) || !strings.Contains(content, value) {
					t.Errorf("%q sets %q to %q", content, key, value)
				}
				again.WriteString(key + "=" + value + "\n")
			}
			must(t, os.WriteFile(path, []byte(again.String()), 0o600))
			second, err := readSettings()
			if err != nil || len(second.values) != len(file.values) {
				t.Fatalf("%q was written as %q, and that is %v, %v", content, again.String(), second, err)
			}
			for key, s := range file.values {
				if second.values[key].value != s.value {
					t.Errorf("%s was %q, and came back as %q", key, s.value, second.values[key].value)
				}
			}
		}
	})
}

// FuzzPasswords puts the password of a file into an address.
func FuzzPasswords(f *testing.F) {
	for _, address := range []string{"redis://a", "rediss://user@a:1/2?tls_server_name=b", "redis+sentinel://a+b/m", "redis://u:p@a", "redis://@a", "sqlite:x", "redis://a/@", "redis://[::1]:1", "redis:a", "redis://:@a"} {
		for _, text := range []string{"pw", "p@ss/w?o#r:d\n", "pw\r\nrest", "\n", "", "\xff\x00", "%", " pw ", "a+b,c"} {
			f.Add(address, text)
		}
	}
	f.Fuzz(func(t *testing.T, address, text string) {
		if strings.Contains(address, "tls_") && !strings.Contains(address, "tls_server_name") {
			return // it names files of this machine
		}
		alone(t)
		path := filepath.Join(t.TempDir(), "password")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		password, err := (&nodeFlags{passwordFile: path}).password()
		if err != nil {
			usage(t, err)
			return
		}
		if password == "" || strings.Contains(password, "\n") || !strings.HasPrefix(text, password) {
			t.Fatalf("%q holds the password %q", text, password)
		}
		before, err := redis.ParseAddress(address)
		if err != nil {
			return
		}
		with := withPassword(address, password)
		after, err := redis.ParseAddress(with)
		if err != nil {
			t.Fatalf("%q is good, and with %q in it is not: %v", address, password, err)
		}
		want := password
		if before.Password != "" || strings.Contains(address[:strings.LastIndex(address, "@")+1], ":@") {
			want = before.Password // its own, even an empty one
		}
		if after.String() != before.String() || after.Username != before.Username || after.Password != want {
			t.Errorf("%q with the password %q is %q, user %q, password %q", address, password, after, after.Username, after.Password)
		}
		if before.Password != "" && !hasPassword(address) || want != "" && !hasPassword(with) {
			t.Errorf("the password in %q or %q is not seen", address, with)
		}
	})
}
