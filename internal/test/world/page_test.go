package world

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// send sends a command to the page.
func send(t *testing.T, p *Page, c Command) State {
	t.Helper()
	in, err := json.Marshal(c)
	check.Must(t, err)
	var s State
	check.Must(t, json.Unmarshal([]byte(p.Do(string(in))), &s))
	return s
}

func TestPageTellsEveryStory(t *testing.T) {
	for _, story := range Stories {
		var p Page
		s := send(t, &p, Command{Do: "open", Story: story.Name})
		if !s.Fresh || s.Story == nil || s.Story.Title != story.Title || len(s.Stories) != len(Stories) {
			t.Fatalf("%s begins with %+v", story.Name, s)
		}
		for i := range story.Steps {
			send(t, &p, Command{Do: "next"})
			s = send(t, &p, Command{Do: "finish"})
			if s.Story.At != i+1 || s.Story.Running || s.Story.Wrong != "" || s.Story.Then != story.Steps[i].Then {
				t.Fatalf("%s, step %d: %+v", story.Name, i+1, s.Story)
			}
		}
	}
}

func TestEveryButtonDoesWhatItSays(t *testing.T) {
	var p Page
	s := send(t, &p, Command{Do: "open"})
	if s.Story != nil || len(s.Clients) != 3 || len(s.Servers) != Servers {
		t.Fatalf("free play begins with %+v", s)
	}
	is := func(what string, c Command, want bool, got func(State) bool) {
		t.Helper()
		if s := send(t, &p, c); got(s) != want {
			t.Errorf("%s: %v after %+v", what, !want, c)
		}
	}
	isPaused := func(s State) bool { return s.Clients[1].Paused }
	isCut := func(s State) bool { return s.Clients[1].Cut[2] }
	isDown := func(s State) bool { return s.Servers[3].Down }
	is("holds", Command{Do: "run", By: 1}, true, func(s State) bool { return s.Clients[0].Believe })
	is("wants", Command{Do: "release"}, false, func(s State) bool { return s.Clients[0].Wants })
	is("wants", Command{Do: "run", By: 20}, false, func(s State) bool { return s.Clients[0].Wants }) // it works no longer by itself
	is("wants", Command{Do: "lock"}, true, func(s State) bool { return s.Clients[0].Wants })
	is("paused", Command{Do: "pause", Client: 1}, true, isPaused)
	is("paused", Command{Do: "resume", Client: 1}, false, isPaused)
	is("cut", Command{Do: "cut", Client: 1, Server: 3}, true, isCut)
	is("cut", Command{Do: "mend", Client: 1, Server: 3}, false, isCut)
	is("down", Command{Do: "stop", Server: 4}, true, isDown)
	is("down", Command{Do: "start", Server: 4}, false, isDown)
	is("quarantined", Command{Do: "empty", Server: 1}, true, func(s State) bool { return s.Servers[0].Quarantine >= 0 })
	is("skewed", Command{Do: "clock-client", Client: 2, By: -5}, true, func(s State) bool { return s.Clients[2].Skew == -5 })
	is("skewed", Command{Do: "clock-server", Server: 5, By: 5}, true, func(s State) bool { return s.Servers[4].Skew == 5 && len(s.Beyond) == 1 })
	before := send(t, &p, Command{Do: "step"}).Now
	is("later", Command{Do: "step"}, true, func(s State) bool { return s.Now >= before })
	for _, c := range []Command{{Do: "dance"}, {Do: "pause", Client: 9}, {Do: "stop", Server: 6}, {Do: "stop", Server: -1}} {
		s := send(t, &p, c)
		if slices.ContainsFunc(s.Clients, func(c ClientState) bool { return c.Paused }) || slices.ContainsFunc(s.Servers, func(s ServerState) bool { return s.Down }) {
			t.Errorf("%+v has done something", c)
		}
	}
}

func TestAReaderWhoInterferesLeavesTheStory(t *testing.T) {
	var p Page
	send(t, &p, Command{Do: "open", Story: "paused"})
	send(t, &p, Command{Do: "next"})
	if s := send(t, &p, Command{Do: "pause"}); s.Story != nil || !s.Clients[0].Paused {
		t.Errorf("after a button: %+v", s)
	}
	if out := p.Do("no command"); !strings.Contains(out, "Failure") {
		t.Error("got", out)
	}
}
