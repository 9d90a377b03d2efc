package resp

import (
	"fmt"
	"strconv"
	"strings"
)

// Monitored is a command as MONITOR shows it.
type Monitored struct {
	// Client is the address it came from; "lua" for one that a script ran.
	Client string
	Args   []string
}

// FromScript reports whether a script ran the command, and no client sent it.
func (m Monitored) FromScript() bool { return m.Client == "lua" }

// Monitor turns the connection into one that shows every command which the
// server carries out.
func (c *Conn) Monitor() error {
	_, err := c.Do("MONITOR")
	return err
}

// NextCommand reads the next command that MONITOR shows.
func (c *Conn) NextCommand() (Monitored, error) {
	r, err := c.Receive()
	if err != nil {
		return Monitored{}, err
	}
	return parseMonitored(r.Text)
}

// parseMonitored reads `1700000000.123456 [0 127.0.0.1:4711] "set" "a" "b"`.
func parseMonitored(line string) (Monitored, error) {
	_, rest, ok := strings.Cut(line, " [")
	where, args, ok2 := strings.Cut(rest, "] ")
	_, client, ok3 := strings.Cut(where, " ")
	if !ok || !ok2 || !ok3 {
		return Monitored{}, fmt.Errorf("resp: not a line of MONITOR: %q", line)
	}
	m := Monitored{Client: client}
	for args != "" {
		quoted, err := strconv.QuotedPrefix(args)
		if err != nil {
			return Monitored{}, fmt.Errorf("resp: not a line of MONITOR: %q", line)
		}
		arg, err := strconv.Unquote(quoted)
		if err != nil {
			return Monitored{}, err
		}
		m.Args = append(m.Args, arg)
		args = strings.TrimPrefix(args[len(quoted):], " ")
	}
	return m, nil
}
