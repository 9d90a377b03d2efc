package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is one call of Once, or of Completed, as a state machine: what the nodes
// are asked about an occurrence, and what follows from their answers. Events go in;
// the requests that Handle returns are to be sent, and the state says what else its
// caller does.
//
//	Idle ──▶ Checking ◀──▶ NeedsLock, MayCopy
//	           │  ╲
//	           │   Recording
//	           ▼  ╱
//	         Reading ──▶ Copying ──▶ Runs ──▶ Noting ──▶ Completed
//
// Checking is done without the lock first, which is enough for most callers: they
// find the occurrence completed. Only under the lock does anything run. Each state
// can end the call: Completed, NotCompleted, Unknown or TooFew.
//
//   - A record is a fact: one node's word is enough. Recording gives it to the
//     others if fewer than a quorum have it, so that every later caller sees it.
//   - No record is no fact; Find says when it is one.
//   - Reading and Copying give nodes that lack records of the name those of the
//     others, so that they are whole. The lock is held: otherwise an occurrence
//     could be completed in between whose record a node had, and lost, and the
//     others do not have yet. A node that is not reached is given them by the next
//     call.

// JobState is what a Job does, or has its caller do.
type JobState uint8

// The states of a Job.
const (
	Idle JobState = iota
	// Checking: all nodes are asked for the record. The answer of every node that
	// is not Away is awaited; then it is enough if one has the record, or if, with
	// the word of enough nodes that have kept their records, none has.
	Checking
	// Recording: all nodes are sent a record that fewer than a quorum have.
	Recording
	// NeedsLock: the lock is to be acquired, and the Job to be told so (Locked).
	NeedsLock
	// MayCopy is NeedsLock if the lock is free: the holder copies records too. The
	// occurrence is completed, whatever comes of it.
	MayCopy
	// Reading: the sources are asked for their records.
	Reading
	// Copying: nodes that lack records are sent them.
	Copying
	// Runs: the job is to be run, and the Job to be told that it succeeded (Ran).
	// If Found.Memory is Forgotten, it may have run before.
	Runs
	// Noting: all nodes are asked to record that it ran.
	Noting
	// Completed: a quorum has the record.
	Completed
	// NotCompleted is what Look finds: it would run.
	NotCompleted
	// Unknown: whether it is completed; see Doubt.
	Unknown
	// TooFew: no quorum has answered the last requests.
	TooFew
)

// JobEventKind says what a JobEvent is.
type JobEventKind uint8

// What can happen to a Job.
const (
	// Look begins a call of Completed: nothing is to run.
	Look JobEventKind = iota + 1
	// Try begins a call of Once, without the lock.
	Try
	// Locked: the caller has the lock.
	Locked
	// Answered: a node has answered, or failed.
	Answered
	// Over: no more answers will come to what was asked.
	Over
	// Ran: the job has run under the lock, and succeeded.
	Ran
)

// JobEvent is one thing that happened.
type JobEvent struct {
	Kind JobEventKind
	// Answered: what was asked, and the reply; nil for none. Away are the nodes
	// that failed when they were last asked.
	Ask   Ask
	Reply *node.Reply
	Away  Set
}

// Ask is a request to one node.
type Ask struct {
	Node    int
	Round   int // of the Job
	From    int // the first record that it is about
	Request node.Request
}

// AskAll returns a request for each of n nodes.
func AskAll(n int, req node.Request) []Ask {
	asks := make([]Ask, n)
	for i := range asks {
		asks[i] = Ask{Node: i, Request: req}
	}
	return asks
}

// Job is one call. Its caller sets the first fields, and reads the others.
type Job struct {
	Nodes int
	// Request is what all requests have: Name, Occurrence, Guard and Retention,
	// which becomes the longest that the nodes know of the name.
	Request node.Request

	State JobState
	// Round counts the states. It changes when nothing that was asked is awaited
	// any more.
	Round            int
	Mode             JobEventKind // how it began: Look, Try, or Locked
	Awaited, Answers Set          // of this round
	Said             []Said
	Found            Found
	Read             Set // the sources that have told all their records
	Union            map[string]time.Duration
	records          []node.Record // the Union
}

// Handle handles an event, and returns what to ask.
func (j *Job) Handle(e JobEvent) []Ask {
	switch {
	case e.Kind <= Locked:
		j.Mode, j.Said = e.Kind, make([]Said, j.Nodes)
		return j.ask(Checking, node.OpCheck, All(j.Nodes))
	case e.Kind == Ran:
		return j.ask(Noting, node.OpComplete, All(j.Nodes))
	case j.Awaited == 0, e.Kind == Answered && e.Ask.Round != j.Round:
		return nil
	case e.Kind == Over:
		j.Awaited = 0
	case j.goesOn(e):
		return []Ask{j.request(e.Ask.Request.Op, e.Ask.Node, e.Ask.From+node.MaxRecords)}
	}
	if j.Awaited != 0 && !j.enough(e.Away) {
		return nil
	}
	return j.over()
}

// ask begins a round: requests to some nodes.
func (j *Job) ask(s JobState, op node.Op, to Set) (asks []Ask) {
	j.become(s)
	j.Awaited = to
	for i := range j.Nodes {
		if to.Has(i) {
			asks = append(asks, j.request(op, i, 0))
		}
	}
	return asks
}

// become changes the state.
func (j *Job) become(s JobState) []Ask {
	j.State, j.Round, j.Awaited, j.Answers = s, j.Round+1, 0, 0
	return nil
}

// request returns a request to a node; one about many records begins with the given
// one.
func (j *Job) request(op node.Op, i, from int) Ask {
	req := j.Request
	req.Op = op
	switch op {
	case node.OpRecords:
		req.Skip = from
	case node.OpAdopt:
		to, said := min(from+node.MaxRecords, len(j.records)), &j.Said[i]
		req.Adopt = &node.Adoption{Begun: said.Begun, Records: j.records[from:to], Whole: to == len(j.records), Since: said.Now.Add(-j.reach())}
	}
	return Ask{i, j.Round, from, req}
}

// goesOn takes an answer, and reports whether the node is to be asked for more
// records, or sent more.
func (j *Job) goesOn(e JobEvent) (more bool) {
	i := e.Ask.Node
	if e.Reply != nil {
		j.Answers |= Of(i)
		switch m := e.Reply.Memory; {
		case j.State == Checking:
			j.Said[i] = SaidBy(*e.Reply)
		case j.State == Copying:
			more = e.Reply.Status == node.Granted && !e.Ask.Request.Adopt.Whole
		case j.State == Reading && m != nil && m.Begun.Equal(j.Said[i].Begun): // it has lost nothing since
			for _, x := range m.Records {
				j.Union[x.Occurrence] = max(j.Union[x.Occurrence], x.Left)
			}
			if more = len(m.Records) == node.MaxRecords; !more {
				j.Read |= Of(i)
			}
		}
	}
	if !more {
		j.Awaited &^= Of(i)
	}
	return more
}

// enough reports whether the answers that are still awaited change nothing.
func (j *Job) enough(away Set) bool {
	switch j.State {
	case Checking:
		so := Find(j.Said, false)
		return j.Awaited&^away == 0 && j.quorum() && (so.Completed > 0 || so.Memory == Remembered)
	case Recording, Noting:
		return j.quorum()
	}
	return false
}

func (j *Job) quorum() bool { return j.Answers.Count() >= Quorum(j.Nodes) }

// over goes on after a round.
func (j *Job) over() []Ask {
	quorum := j.quorum()
	switch j.State {
	case Checking:
		j.Found = Find(j.Said, true)
		j.Request.Retention = max(j.Request.Retention, Retention(j.Said))
		switch n := j.Found.Completed; {
		case !quorum && n == 0 && j.Mode == Try:
			return j.become(NeedsLock) // which waits for them
		case quorum && n > 0 && n < Quorum(j.Nodes):
			return j.ask(Recording, node.OpComplete, All(j.Nodes))
		}
	case Reading:
		return j.copies()
	case Copying:
		return j.conclude()
	}
	switch {
	case !quorum:
		return j.become(TooFew)
	case j.State == Noting:
		return j.become(Completed)
	case j.Mode == Try && j.Found.Completed == 0:
		return j.become(NeedsLock)
	case j.Mode == Look, j.Found.Sources == 0, j.lacking() == 0:
		return j.conclude()
	case j.Mode == Try:
		return j.become(MayCopy)
	}
	return j.readings()
}

// conclude ends the call, or has the job run.
func (j *Job) conclude() []Ask {
	switch {
	case j.Found.Completed > 0:
		return j.become(Completed)
	case j.Found.Memory == Unsure:
		return j.become(Unknown)
	case j.Mode == Look:
		return j.become(NotCompleted)
	}
	return j.become(Runs)
}

// lacking returns the nodes that answered and whose memory is not whole.
func (j *Job) lacking() (set Set) {
	for i, s := range j.Said {
		if s.Answered && !s.Whole {
			set |= Of(i)
		}
	}
	return set
}

// readings asks the sources for their records.
func (j *Job) readings() []Ask {
	j.Union, j.Read = map[string]time.Duration{}, 0
	for i, s := range j.Said {
		if j.Found.Sources.Has(i) && s.Count == 0 {
			j.Read |= Of(i)
		}
	}
	if j.Read == j.Found.Sources {
		return j.copies()
	}
	return j.ask(Reading, node.OpRecords, j.Found.Sources&^j.Read)
}

// copies sends nodes the records that they lack, unless too few have told theirs.
func (j *Job) copies() []Ask {
	if j.Found.Memory == Remembered && j.Read.Count() <= j.Nodes-Quorum(j.Nodes) {
		return j.conclude()
	}
	j.records = nil
	for _, o := range slices.Sorted(maps.Keys(j.Union)) {
		j.records = append(j.records, node.Record{Occurrence: o, Left: j.Union[o]})
	}
	return j.ask(Copying, node.OpAdopt, j.lacking())
}

// reach returns how far back the records of the sources reach, by a quorum of them.
func (j *Job) reach() time.Duration {
	var all []time.Duration
	for i, s := range j.Said {
		if j.Found.Sources.Has(i) {
			all = append(all, s.Now.Sub(s.Since))
		}
	}
	slices.Sort(all)
	return all[max(0, len(all)-Quorum(j.Nodes))]
}

// Since returns since when a quorum has complete records, but not before the oldest;
// zero if a quorum did not answer.
func (j *Job) Since(oldest time.Time) time.Time {
	var all []time.Time
	for _, s := range j.Said {
		if s.Answered {
			all = append(all, s.Since)
		}
	}
	quorum := Quorum(j.Nodes)
	if len(all) < quorum {
		return time.Time{}
	}
	slices.SortFunc(all, time.Time.Compare)
	if since := all[quorum-1]; since.After(oldest) {
		return since
	}
	return oldest
}

// Doubt returns, of a Job that is Unknown, which nodes may have lost their records,
// which did not answer, and how many must have kept theirs.
func (j *Job) Doubt() (lost, away Set, need int) {
	for i, s := range j.Said {
		switch {
		case !s.Answered:
			away |= Of(i)
		case !j.Found.Kept.Has(i):
			lost |= Of(i)
		}
	}
	return lost, away, j.Nodes - Quorum(j.Nodes) + 1
}
