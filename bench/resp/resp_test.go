package resp

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

func connOf(text string) *Conn { return &Conn{r: bufio.NewReader(strings.NewReader(text))} }

func TestFirstReturnsTheStatusAndLeavesNothingUnread(t *testing.T) {
	c := connOf("*3\r\n$7\r\ngranted\r\n$1\r\n0\r\n*1\r\n:4\r\n+OK\r\n$-1\r\n:1\r\n-ERR no\r\n+last\r\n")
	for _, want := range []string{"granted", "OK", "", "1"} {
		got, err := c.First()
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	if _, err := c.First(); err == nil || err.Error() != "ERR no" {
		t.Fatalf("got %v; want the server's error", err)
	}
	if got, err := c.First(); err != nil || string(got) != "last" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestMonitorTellsScriptsFromClients(t *testing.T) {
	m, err := parseMonitored(`1700000000.123456 [0 127.0.0.1:4711] "set" "a \"b\"" "\x00\r\n\\"`)
	if err != nil || m.FromScript() || !slices.Equal(m.Args, []string{"set", `a "b"`, "\x00\r\n\\"}) {
		t.Fatalf("got %q, %v", m, err)
	}
	m, err = parseMonitored(`1700000000.123456 [0 lua] "get" "a"`)
	if err != nil || !m.FromScript() {
		t.Fatalf("got %q, %v; want a command of a script", m, err)
	}
	if _, err := parseMonitored("OK"); err == nil {
		t.Fatal("a line that MONITOR does not write was read")
	}
}
