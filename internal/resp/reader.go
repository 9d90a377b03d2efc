package resp

import (
	"bufio"
	"bytes"
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

// What one reply may have. More means that the stream is not understood, or that
// the server is hostile.
const (
	maxBytes      = 64 << 20 // in all its texts together
	maxItems      = 1 << 20  // in all its lists together
	maxDepth      = 16
	maxAttributes = 16 // frames that describe what comes next
)

// firstPart is how much of a text is allocated before any of it has arrived.
const firstPart = 64 << 10

// Reader reads replies. Its memory grows with what has arrived, not with the
// lengths that a server announces.
type Reader struct {
	r            *bufio.Reader
	bytes, items int // left for the present reply
}

// NewReader returns a Reader of what r reads.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 16<<10)} }

// Buffered returns how many bytes have arrived, and were not read.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// Fill reads once what has arrived.
func (r *Reader) Fill() error {
	_, err := r.r.Peek(r.r.Buffered() + 1)
	return err
}

// Line reports whether a reply of one line has arrived, so that Read need not wait.
func (r *Reader) Line() bool {
	b, _ := r.r.Peek(r.r.Buffered())
	return bytes.IndexByte(b, '\n') > 0 && strings.IndexByte("+-:", b[0]) >= 0
}

// Read reads a reply. An error inside a list is returned as the error of the
// whole, after the list was read. After an error that is no ServerError, nothing
// more can be read.
func (r *Reader) Read() (Reply, error) {
	r.bytes, r.items = maxBytes, maxItems
	return r.read(0)
}

// read reads one reply, and skips the attributes before it.
func (r *Reader) read(depth int) (Reply, error) {
	for range maxAttributes {
		reply, kind, err := r.frame(depth)
		if kind != '|' || err != nil {
			return reply, err
		}
	}
	return Reply{}, fmt.Errorf("resp: more than %d attributes before a reply", maxAttributes)
}

// frame reads one frame: a reply or an attribute.
func (r *Reader) frame(depth int) (_ Reply, kind byte, _ error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return Reply{}, 0, fmt.Errorf("resp: a line begins with %.40q and has no end", line)
	}
	if err != nil {
		return Reply{}, 0, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return Reply{}, 0, fmt.Errorf("resp: unexpected line %q", line)
	}
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', ':', ',', '#', '(':
		return Reply{Text: rest}, kind, nil
	case '_':
		return Reply{Nil: true}, kind, nil
	case '-':
		return Reply{}, kind, ServerError(rest)
	case '$', '=', '!', '*', '~', '>', '%', '|':
	default:
		return Reply{}, kind, fmt.Errorf("resp: unexpected reply %q", line)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return Reply{}, kind, fmt.Errorf("resp: unexpected length: %w", err)
	}
	switch {
	case n < 0 && kind == '|':
		return Reply{}, kind, fmt.Errorf("resp: an attribute of %s items", rest)
	case n < 0:
		return Reply{Nil: true}, kind, nil
	case kind == '$' || kind == '=' || kind == '!':
		reply, err := r.text(kind, n)
		return reply, kind, err
	case kind == '%' || kind == '|':
		n *= 2
	}
	if n < 0 || n > r.items || depth == maxDepth {
		return Reply{}, kind, fmt.Errorf("resp: a list of %s items, %d deep (max %d items, %d deep)", rest, depth, maxItems, maxDepth)
	}
	r.items -= n
	reply, err := r.list(n, depth)
	reply.Push = kind == '>'
	return reply, kind, err
}

func (r *Reader) text(kind byte, n int) (Reply, error) {
	if n > r.bytes {
		return Reply{}, fmt.Errorf("resp: a text of %d bytes (max %d in a reply)", n, maxBytes)
	}
	r.bytes -= n
	text, err := r.take(n + 2)
	switch {
	case err != nil:
		return Reply{}, err
	case text[n] != '\r' || text[n+1] != '\n':
		return Reply{}, fmt.Errorf("resp: a text of %d bytes has no end", n)
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

// take reads n bytes. It allocates at most twice what has arrived.
func (r *Reader) take(n int) ([]byte, error) {
	b := make([]byte, min(n, firstPart))
	for have := 0; ; {
		got, err := io.ReadFull(r.r, b[have:])
		if have += got; err != nil || have == n {
			return b, err
		}
		b = append(b, make([]byte, min(n-have, have))...)
	}
}

func (r *Reader) list(n, depth int) (Reply, error) {
	items := make([]Reply, 0, min(n, 64))
	var failed error
	for range n {
		item, err := r.read(depth + 1)
		if _, inside := err.(ServerError); inside {
			failed = err
		} else if err != nil {
			return Reply{}, err
		}
		items = append(items, item)
	}
	return Reply{Items: items}, failed
}
