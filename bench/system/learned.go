package system

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/resp"
)

// learned is what redlatch was seen to send for one pair: for the acquire and
// for the release, round by round, one command for each server.
type learned struct {
	acquire, release [][]*template
	holes            []hole
}

// template is a command as it is sent, with holes for what is new each time.
type template struct{ text []byte }

// hole is a place in a template.
type hole struct {
	kind holeKind
	text []byte // a part of the template's
}

type holeKind int

const (
	// holeValue is 32 hexadecimal digits, random for each attempt.
	holeValue holeKind = iota
	// holeNumber is a token or a ticket: microseconds, padded with zeros.
	holeNumber
)

const hexDigits = 32

// Marks in the stream of a server's commands: what stands before the first is
// the acquire, what stands between it and the second is the release.
const (
	markHeld = "redlatch-bench-held"
	markDone = "redlatch-bench-done"
)

// watchRedlatch has redlatch take and release a lock, under MONITOR on every
// server, and learns from it. Nothing is assumed of the scripts and their
// arguments but that what differs from pair to pair is a random value or a
// time.
func watchRedlatch(ctx context.Context, addresses []string, name string) (*learned, error) {
	client, err := newRedlatch(overRueidis, plainOptions(), addresses)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	pair := func(between func() error) error {
		lease, err := client.Lock(ctx, name, lockOptions())
		if err != nil {
			return err
		}
		if err := between(); err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	// The first loads the scripts and greets the servers.
	if err := pair(func() error { return nil }); err != nil {
		return nil, err
	}
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var monitors []*resp.Conn
	defer func() {
		for _, m := range monitors {
			m.Close()
		}
	}()
	for _, a := range addresses {
		m, err := resp.Dial(a)
		if err != nil {
			return nil, err
		}
		monitors = append(monitors, m)
		m.SetDeadline(time.Now().Add(30 * time.Second))
		if err := m.Monitor(); err != nil {
			return nil, err
		}
	}
	// settle lets the servers that were not waited for catch up.
	settle := func(mark string) error {
		time.Sleep(30 * time.Millisecond)
		_, err := w.each("ECHO", mark)
		return err
	}
	watch := func() (o observed, err error) {
		if err := pair(func() error { return settle(markHeld) }); err != nil {
			return o, err
		}
		if err := settle(markDone); err != nil {
			return o, err
		}
		for _, m := range monitors {
			acquire, err := readUntil(m, markHeld, name)
			if err != nil {
				return o, err
			}
			release, err := readUntil(m, markDone, name)
			if err != nil {
				return o, err
			}
			o.acquire, o.release = append(o.acquire, acquire), append(o.release, release)
		}
		return o, nil
	}
	// On a busy machine a server may be late, and be asked again or given up:
	// such a pair is no model.
	var l *learned
	for range 10 {
		var runs [2]observed
		for i := range runs {
			if runs[i], err = watch(); err != nil {
				return nil, err
			}
		}
		if l, err = learnFrom(runs[0], runs[1]); err == nil {
			break
		}
	}
	return l, err
}

// learnFrom makes templates of two undisturbed pairs.
func learnFrom(a, b observed) (l *learned, err error) {
	l = &learned{}
	if l.acquire, err = l.compare(a.acquire, b.acquire); err != nil {
		return nil, err
	}
	l.release, err = l.compare(a.release, b.release)
	return l, err
}

// observed are the commands of one pair: by server, then in order.
type observed struct{ acquire, release [][][]string }

// readUntil returns the commands about a name which clients sent before a mark.
func readUntil(m *resp.Conn, mark, name string) ([][]string, error) {
	var commands [][]string
	for {
		c, err := m.NextCommand()
		switch {
		case err != nil:
			return nil, err
		case len(c.Args) == 2 && c.Args[1] == mark:
			return commands, nil
		case c.FromScript():
		case slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, name) }):
			commands = append(commands, c.Args)
		}
	}
}

// compare makes templates of what was seen twice: what differs is a hole.
func (l *learned) compare(a, b [][][]string) ([][]*template, error) {
	rounds := len(a[0])
	if rounds == 0 {
		return nil, fmt.Errorf("nothing was seen to be sent")
	}
	templates := make([][]*template, rounds)
	for node := range a {
		if len(a[node]) != rounds || len(b[node]) != rounds {
			return nil, fmt.Errorf("server %d got %d and %d commands, server 0 got %d: not the undisturbed pair", node, len(a[node]), len(b[node]), rounds)
		}
		for r := range rounds {
			t, err := l.template(a[node][r], b[node][r])
			if err != nil {
				return nil, err
			}
			templates[r] = append(templates[r], t)
		}
	}
	return templates, nil
}

func (l *learned) template(a, b []string) (*template, error) {
	if len(a) != len(b) {
		return nil, fmt.Errorf("two pairs differ in their number of arguments: %q, %q", a, b)
	}
	t := &template{text: resp.AppendCommand(nil, a...)}
	at := 0
	for i, arg := range a {
		// Arguments are found in their order, so that one which is part of
		// another is not taken for it.
		encoded := resp.AppendCommand(nil, arg)[len("*1\r\n"):]
		at += bytes.Index(t.text[at:], encoded)
		from := at + len(encoded) - len("\r\n") - len(arg)
		at += len(encoded)
		if arg == b[i] {
			continue
		}
		switch {
		case len(arg) >= hexDigits && isHex(arg[:hexDigits]) && arg[hexDigits:] == b[i][min(len(b[i]), hexDigits):]:
			l.holes = append(l.holes, hole{holeValue, t.text[from : from+hexDigits]})
		case len(arg) == len(b[i]) && len(arg) >= 16 && isDecimal(arg) && isDecimal(b[i]):
			l.holes = append(l.holes, hole{holeNumber, t.text[from : from+len(arg)]})
		default:
			return nil, fmt.Errorf("argument %d of %q is %q in one pair and %q in the next: neither a value nor a time", i, a[0], arg, b[i])
		}
	}
	return t, nil
}

func isHex(s string) bool     { return strings.Trim(s, "0123456789abcdef") == "" }
func isDecimal(s string) bool { return strings.Trim(s, "0123456789") == "" }
