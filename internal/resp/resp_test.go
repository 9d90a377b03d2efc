package resp

import (
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
	for _, text := range []string{"", "OK", "\r\n", "!5\r\n", "?5\r\n", "+OK\n\n", "*1048577\r\n", "$536870913\r\n", strings.Repeat("*1\r\n", 20) + ":1\r\n", strings.Repeat("+", 1<<15), "$x\r\n", "$5\r\nabc", "*2\r\n:1\r\n"} {
		if got, err := connOf(text).Receive(); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}
