//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/node"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// web is a copy of the service, and where it listens.
type web struct {
	*processes.Process
	url string
}

func start(t *testing.T, name string, env []string, ttl string) *web {
	p := processes.Start(t, name, env, "-ttl", ttl)
	return &web{p, "http://" + strings.TrimPrefix(p.Line("listening on "), "listening on ")}
}

// ask asks a copy, follows its redirections, and returns the leader's token; 0 if
// nobody leads as far as the copies know.
func (w *web) ask() redlatch.Token {
	resp, err := http.Get(w.url + "/page?x=1")
	if err != nil {
		return 0 // the leader is gone, and this copy has not seen it yet
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Request.URL.RequestURI() != "/page?x=1" {
		return 0
	}
	_, digits, _ := strings.Cut(strings.TrimSpace(string(text)), " leads with token ")
	token, err := node.ParseToken(digits)
	if err != nil {
		return 0
	}
	return token
}

// agree waits until all copies lead to one leader with a token above the last
// one, and returns that token and which copy it is.
func agree(t *testing.T, last redlatch.Token, all []*web) (redlatch.Token, *web) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		seen := map[redlatch.Token]int{}
		var leader *web
		for _, w := range all {
			seen[w.ask()]++
			if servesItself(w) {
				leader = w
			}
		}
		for token := range seen {
			if len(seen) == 1 && token > last && leader != nil {
				return token, leader
			}
		}
		if time.Now().After(late) {
			t.Fatalf("the copies lead to %v, and not to one token above %d", seen, last)
		}
	}
}

// servesItself reports whether a copy serves, and does not redirect.
func servesItself(w *web) bool {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(w.url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func without(all []*web, one *web) (rest []*web) {
	for _, w := range all {
		if w != one {
			rest = append(rest, w)
		}
	}
	return rest
}

func TestEveryCopyLeadsToTheLeaderAndToTheNextOne(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	var all []*web
	for i := range 4 {
		all = append(all, start(t, fmt.Sprint("copy ", i), env, "2s"))
	}
	first, leader := agree(t, 0, all)

	leader.Kill()
	all = without(all, leader)
	second, leader := agree(t, first, all)

	leader.Signal(syscall.SIGTERM)
	leader.Ends(0)
	all = without(all, leader)
	agree(t, second, all)
}
