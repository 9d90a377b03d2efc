package resp

import (
	"cmp"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func connOf(text string) *Conn { return &Conn{r: NewReader(strings.NewReader(text))} }

func TestRepliesAreReadOneByOne(t *testing.T) {
	c := connOf("*4\r\n$7\r\ngranted\r\n$-1\r\n*1\r\n:4\r\n$4\r\na\r\nb\r\n+OK\r\n$-1\r\n:1\r\n*0\r\n-ERR no\r\n*2\r\n-ERR inside\r\n:2\r\n+last\r\n")
	for _, want := range []string{"granted\n\n4\na\r\nb", "OK", "", "1", ""} {
		got, err := c.Receive()
		if err != nil || got.String() != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	for _, want := range []string{"ERR no", "ERR inside"} {
		if _, err := c.Receive(); err != ServerError(want) {
			t.Fatalf("got %v; want the server's error %q", err, want)
		}
	}
	if got, err := c.Receive(); err != nil || got.Text != "last" {
		t.Fatalf("after the errors: got %q, %v", got, err)
	}
}

func TestRepliesOfTheThirdVersionAreRead(t *testing.T) {
	c := connOf(">2\r\n+message\r\n$1\r\nx\r\n%1\r\n+key\r\n:7\r\n_\r\n#t\r\n,1.5\r\n(12\r\n~1\r\n:3\r\n=7\r\ntxt:abc\r\n|1\r\n+a\r\n+b\r\n+said\r\n!4\r\nERR!\r\n")
	for i, want := range []string{"message\nx", "key\n7", "", "t", "1.5", "12", "3", "abc", "said"} {
		got, err := c.Receive()
		if err != nil || got.String() != want || got.Push != (i == 0) {
			t.Fatalf("reply %d: got %q, push %v, %v; want %q", i, got, got.Push, err, want)
		}
	}
	if _, err := c.Receive(); err != ServerError("ERR!") {
		t.Fatalf("got %v; want the server's error", err)
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	for _, text := range []string{"", "OK", "\r\n", "!5\r\n", "?5\r\n", "+OK\n\n", "*1048577\r\n", "$67108865\r\n", strings.Repeat("*1\r\n", 20) + ":1\r\n", strings.Repeat("+", 1<<15), "$x\r\n", "$5\r\nabc", "$3\r\nabcde", "*2\r\n:1\r\n"} {
		if got, err := connOf(text).Receive(); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

// endless repeats a text.
type endless struct{ text, rest string }

func (e *endless) Read(b []byte) (int, error) {
	e.rest = cmp.Or(e.rest, e.text)
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestEndlessRepliesAreRefused(t *testing.T) {
	for _, text := range []string{"|1\r\n+a\r\n+b\r\n", "|0\r\n", "*2\r\n:1\r\n", "*3\r\n|1\r\n+a\r\n+b\r\n", "%1\r\n"} {
		if got, err := NewReader(&endless{text: text}).Read(); err == nil {
			t.Errorf("%q for ever was read as %+v", text, got)
		}
	}
}

// TestMemoryGrowsWithWhatArrives has servers announce more than they send.
func TestMemoryGrowsWithWhatArrives(t *testing.T) {
	for _, text := range []string{
		"$67108864\r\nabc", "*1048576\r\n", strings.Repeat("*1000\r\n", 15),
		"$1048576\r\n" + strings.Repeat("x", 1000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := NewReader(strings.NewReader(text)).Read()
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.20q was read", text)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%.20q: %d bytes allocated for %d that arrived", text, got, len(text))
		}
	}
}

// TestListsShareOneLimit has a reply with many lists, each below the limit.
func TestListsShareOneLimit(t *testing.T) {
	half := maxItems / 2
	list := "*" + strconv.Itoa(half) + "\r\n" + strings.Repeat("_\r\n", half)
	if _, err := NewReader(strings.NewReader("*3\r\n" + list + list + list)).Read(); err == nil || err == io.EOF {
		t.Errorf("three lists of %d items were read: %v", half, err)
	}
	long := "$" + strconv.Itoa(maxBytes/2) + "\r\n" + strings.Repeat("x", maxBytes/2) + "\r\n"
	if _, err := NewReader(strings.NewReader("*3\r\n" + long + long + long)).Read(); err == nil || err == io.EOF {
		t.Errorf("three texts of %d bytes were read: %v", maxBytes/2, err)
	}
}

// TestLineThatHasArrivedIsReadAtOnce feeds replies byte by byte.
func TestLineThatHasArrivedIsReadAtOnce(t *testing.T) {
	for text, line := range map[string]bool{"+OK\r\n": true, ":1\r\n": true, "-ERR no\r\n": true, "$2\r\nab\r\n": false, ">0\r\n": false, "*1\r\n:4\r\n": false} {
		for n := range len(text) {
			r := NewReader(strings.NewReader(text[:n+1]))
			if err := r.Fill(); err != nil || r.Buffered() != n+1 {
				t.Fatalf("%d bytes have arrived, %v; want %d", r.Buffered(), err, n+1)
			}
			if want := line && n+1 == len(text); r.Line() != want {
				t.Errorf("%q is a line: %v", text[:n+1], !want)
			}
		}
	}
}
