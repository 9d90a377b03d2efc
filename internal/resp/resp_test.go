package resp

import (
	"bufio"
	"strings"
	"testing"
)

func connOf(text string) *Conn { return &Conn{r: bufio.NewReader(strings.NewReader(text))} }

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

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	for _, text := range []string{"", "OK", "\r\n", "!5\r\n", "$x\r\n", "$5\r\nabc", "*2\r\n:1\r\n"} {
		if got, err := connOf(text).Receive(); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}
