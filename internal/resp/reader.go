package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ServerError is a server's error reply.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// Reply is a reply of any kind: a text or number, nil, or a list.
type Reply struct {
	Text  string
	Nil   bool
	Push  bool // the server sent it by itself
	Items []Reply
}

// String returns the reply as text: "" for nil, a list one item a line.
func (r Reply) String() string {
	if r.Items == nil {
		return r.Text
	}
	lines := make([]string, len(r.Items))
	for i, item := range r.Items {
		lines[i] = item.String()
	}
	return strings.Join(lines, "\n")
}

// What a reply may have: longer texts and lists mean that the stream is not
// understood.
const (
	maxText  = 512 << 20
	maxItems = 1 << 20
	maxDepth = 16
)

// Reader reads replies.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader of what r reads.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReaderSize(r, 16<<10)} }

// Read reads a reply. An error inside a list is returned as the error of the
// whole, after the list was read. After an error that is no ServerError, nothing
// more can be read.
func (r *Reader) Read() (Reply, error) { return r.read(0) }

func (r *Reader) read(depth int) (Reply, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return Reply{}, fmt.Errorf("resp: a line begins with %.40q and has no end", line)
	}
	if err != nil {
		return Reply{}, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return Reply{}, fmt.Errorf("resp: unexpected line %q", line)
	}
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', ':', ',', '#', '(':
		return Reply{Text: rest}, nil
	case '_':
		return Reply{Nil: true}, nil
	case '-':
		return Reply{}, ServerError(rest)
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return Reply{}, fmt.Errorf("resp: unexpected reply %q", line)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return Reply{}, fmt.Errorf("resp: unexpected length: %w", err)
	}
	switch {
	case n < 0:
		return Reply{Nil: true}, nil
	case kind == '$' || kind == '=' || kind == '!':
		return r.text(kind, n)
	case kind == '%' || kind == '|':
		n *= 2
	}
	if n < 0 || n > maxItems || depth == maxDepth {
		return Reply{}, fmt.Errorf("resp: a list of %s items, %d deep", rest, depth)
	}
	reply, err := r.list(n, depth)
	if kind == '|' && err == nil {
		return r.read(depth) // what a reply is described with comes before it
	}
	reply.Push = kind == '>'
	return reply, err
}

func (r *Reader) text(kind byte, n int) (Reply, error) {
	if n > maxText {
		return Reply{}, fmt.Errorf("resp: a text of %d bytes", n)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r.r, text); err != nil {
		return Reply{}, err
	}
	switch s := string(text[:n]); {
	case kind == '!':
		return Reply{}, ServerError(s)
	case kind == '=' && n >= 4:
		return Reply{Text: s[4:]}, nil // its first letters say what it is
	default:
		return Reply{Text: s}, nil
	}
}

func (r *Reader) list(n, depth int) (Reply, error) {
	items := make([]Reply, n)
	var failed error
	for i := range items {
		var err error
		items[i], err = r.read(depth + 1)
		if _, inside := err.(ServerError); inside {
			failed = err
		} else if err != nil {
			return Reply{}, err
		}
	}
	return Reply{Items: items}, failed
}
