//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"
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
func agree(t *testing.T, last redlatch.Token, all []*web) (token redlatch.Token, leader *web) {
	t.Helper()
	poll.Within(t, time.Minute, func() error {
		seen := map[redlatch.Token]int{}
		leader = nil
		for _, w := range all {
			token = w.ask()
			seen[token]++
			if servesItself(w) {
				leader = w
			}
		}
		if len(seen) != 1 || token <= last || leader == nil {
			return fmt.Errorf("the copies lead to %v, and not to one token above %d", seen, last)
		}
		return nil
	})
	return token, leader
}

// servesItself reports whether a copy serves, and does not redirect.
func servesItself(w *web) bool {
	resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequest("GET", w.url, nil))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func TestEveryCopyLeadsToTheLeaderAndToTheNextOne(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	var all []*web
	without := func(one *web) []*web { return slices.DeleteFunc(all, func(w *web) bool { return w == one }) }
	for i := range 4 {
		all = append(all, start(t, fmt.Sprint("copy ", i), env, "2s"))
	}
	first, leader := agree(t, 0, all)

	leader.Kill()
	all = without(leader)
	second, leader := agree(t, first, all)

	leader.Signal(syscall.SIGTERM)
	leader.Ends(0)
	all = without(leader)
	agree(t, second, all)
}
