package world

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// Page is the playground's side of a world. Its commands are what the page's
// script sends.
type Page struct {
	world *World
	fresh bool // the world is new since the last state
	lines int  // that the page has seen

	story   *Story // nil in free play
	at      int    // how many steps have begun
	running bool   // the last of them is not over
	ends    time.Duration
	wrong   string // what was not as the story says
}

// Command is what a user does.
type Command struct {
	Do     string
	Story  string  // open
	Client int     // from 0 on
	Server int     // from 1 on
	By     float64 // seconds: run, clock-client, clock-server
	// GuardOff and Unchecked are for free play.
	GuardOff, Unchecked bool
}

// Do does what a command says, given as JSON, and returns the State, as JSON.
func (p *Page) Do(command string) string {
	var c Command
	if err := json.Unmarshal([]byte(command), &c); err != nil {
		return failure(err)
	}
	p.do(c)
	out, err := json.Marshal(p.state())
	if err != nil {
		return failure(err)
	}
	return string(out)
}

func failure(err error) string {
	out, _ := json.Marshal(map[string]string{"Failure": err.Error()})
	return string(out)
}

func (p *Page) do(c Command) {
	d := time.Duration(c.By * float64(time.Second))
	switch c.Do {
	case "open":
		p.open(c)
	case "run":
		p.world.RunUntil(d, p.over)
	case "step":
		if p.story == nil || p.running {
			p.world.Step()
			p.over()
		}
	case "next":
		p.next()
	case "finish":
		if p.running {
			p.world.RunUntil(limitOfStep, p.over)
		}
	default:
		if p.act(c, d) {
			p.story, p.running = nil, false // the reader has taken over
		}
	}
}

// open begins a story, or free play.
func (p *Page) open(c Command) {
	*p = Page{fresh: true}
	if i := slices.IndexFunc(Stories, func(s *Story) bool { return s.Name == c.Story }); i >= 0 {
		p.story = Stories[i]
		p.world = New(*p.story.Steps[0].New)
		return
	}
	p.world = New(Options{Clients: 3, Busy: true, GuardOff: c.GuardOff, Unchecked: c.Unchecked, Seed: 7})
}

// act does what a button says. It reports false if it knows none.
func (p *Page) act(c Command, d time.Duration) bool {
	w := p.world
	if c.Client < 0 || c.Client >= len(w.Clients) || c.Server < 0 || c.Server > len(w.Servers) {
		return false
	}
	client := w.Clients[c.Client]
	server := w.Servers[max(c.Server-1, 0)]
	switch c.Do {
	case "lock":
		client.Ask()
	case "release":
		client.busy = false
		client.Release()
	case "pause":
		client.Pause()
	case "resume":
		client.Resume()
	case "cut":
		client.Cut(server.Number)
	case "mend":
		client.Mend(server.Number)
	case "clock-client":
		client.Skew(d)
	case "stop":
		server.Stop()
	case "start":
		server.Start()
	case "empty":
		server.RestartEmpty()
	case "clock-server":
		server.Skew(d)
	default:
		return false
	}
	w.check()
	return true
}

// State is what the page shows.
type State struct {
	Fresh, GuardOff, Two bool
	Now, TTL             float64
	Stories              []*Story `json:",omitempty"` // in the first state of a world
	Story                *Chapter
	Clients              []ClientState
	Servers              []ServerState
	Resource             Resource
	Flights              []FlightState
	Hits                 []Hit
	Lines                []Line
	Twice, Sent          int
	Beyond, Broken       []string
}

// Chapter is how far a story is.
type Chapter struct {
	Name, Title, About, Say, Then, Wrong string
	At, Steps                            int
	Running, Bad                         bool
}

// ClientState is a client.
type ClientState struct {
	Name, State, Token            string
	Paused, Holds, Believe, Wants bool
	Left, Skew                    float64
	Cut                           []bool
}

// ServerState is a server. Quarantine is -1 if there is none, and 0 until it is
// marked.
type ServerState struct {
	Number                 int
	Down                   bool
	Skew, Quarantine, Left float64
	Holder, Token          string
	Queue                  []string
}

// FlightState is a message: Part is how far it is.
type FlightState struct {
	Client, Server int
	What           string
	Back           bool
	Part           float64
}

// maxWrites is how many writes the page gets.
const maxWrites = 40

func (p *Page) state() State {
	w := p.world
	s := State{
		Fresh: p.fresh, Now: w.now.Seconds(), TTL: TTL.Seconds(), GuardOff: w.guard.Off,
		Two: w.two, Twice: w.twice, Sent: w.sent, Beyond: w.beyond, Broken: w.broken,
	}
	if p.fresh {
		p.fresh, p.lines = false, 0
		s.Stories = Stories
	}
	s.Lines, p.lines = w.lines[p.lines:], len(w.lines)
	if p.story != nil {
		s.Story = p.chapter()
	}
	for _, c := range w.Clients {
		s.Clients = append(s.Clients, c.state())
	}
	for _, srv := range w.Servers {
		s.Servers = append(s.Servers, srv.show())
	}
	s.Resource = *w.Resource
	s.Resource.Writes = s.Resource.Writes[max(0, len(s.Resource.Writes)-maxWrites):]
	for _, f := range w.flights {
		s.Flights = append(s.Flights, FlightState{f.client, f.server, f.what, f.back, float64(w.now-f.from) / float64(f.to-f.from)})
	}
	s.Hits, w.hits = w.hits, nil
	return s
}

func (p *Page) chapter() *Chapter {
	s := p.story
	c := &Chapter{Name: s.Name, Title: s.Title, About: s.About, At: p.at, Steps: len(s.Steps), Running: p.running, Wrong: p.wrong}
	if p.at > 0 {
		step := s.Steps[p.at-1]
		c.Say = step.Say
		if !p.running {
			c.Then, c.Bad = step.Then, step.Bad
		}
	}
	return c
}

func (c *Client) state() ClientState {
	s := ClientState{Name: c.Name, Paused: c.paused, Holds: c.Holds(), Believe: c.Believes(), Skew: c.skew.Seconds(), State: "idle"}
	for i := range c.links {
		s.Cut = append(s.Cut, c.links[i].cut)
	}
	cl := c.claim
	if cl == nil {
		return s
	}
	s.Wants = !cl.State().IsOver()
	if cl.State().IsHeld() {
		s.Token, s.Left = Text(cl.Token()), max(0, (cl.Deadline()-c.uptime()).Seconds())
	}
	switch st := cl.State(); {
	case st == protocol.Extending:
		s.State = "holds the lock, and extends it"
	case st.IsHeld():
		s.State = "holds the lock"
	case st == protocol.Releasing:
		s.State = "releases the lock"
	case st.IsOver():
		s.State = "idle"
	case st == protocol.Waiting || st == protocol.Yielding || cl.waited:
		s.State = "waits"
	default:
		s.State = "asks for the lock"
	}
	return s
}

func (s *Server) show() ServerState {
	out := ServerState{Number: s.Number, Down: s.down, Skew: s.skew.Seconds(), Quarantine: -1}
	if left, is := s.quarantine(); is {
		out.Quarantine = max(0, left.Seconds())
	}
	l := s.look()
	for _, h := range l.Holders {
		out.Holder, _ = protocol.OwnerOf(h.Value)
		out.Token, out.Left = Text(h.Token), h.Until.Sub(s.clock()).Seconds()
	}
	for _, waiter := range l.Waiters {
		owner, _ := protocol.OwnerOf(waiter.Value)
		out.Queue = append(out.Queue, owner)
	}
	return out
}
