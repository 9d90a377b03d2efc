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
//	Idle ──▶ Checking ──▶ Recording ──▶ Reading ──▶ Copying ──▶ Runs ──▶ Recording
//	           ▲  │
//	           │  ▼
//	         NeedsLock, MayCopy
//
// A state in which there is nothing to do is left out. Checking is done without the
// lock first, which is enough for most callers: they find the occurrence completed.
// What is right of Recording is done under the lock. A call ends in Runs, Completed,
// Unknown or TooFew.
//
//   - A record is a fact: one node's word is enough. Recording gives it to the
//     others if fewer than a quorum have it, so that every later caller sees it.
//   - No record is no fact; Find says when it is one.
//   - Reading and Copying give nodes that lack records of the name those of the
//     others, so that they are whole. The lock is held: otherwise an occurrence
//     could be completed in between whose record a node had, and lost, and the
//     others do not have yet. A node that is not reached is given them by the next
//     call.

// JobState is what a Job does, or its caller has to do.
type JobState uint8

// The states of a Job.
const (
	Idle JobState = iota
	// Checking: all nodes are asked for the record. The answer of every node that
	// is not Away is awaited; then it is enough if one has the record, or if, with
	// the word of enough nodes that have kept their records, none has.
	Checking
	// Recording: all nodes are sent the record, because fewer than a quorum have it,
	// or the job ran.
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
	// If Found.Memory is Forgotten, it may have run before. A Look ends here.
	Runs
	// Completed: a quorum has the record.
	Completed
	// Unknown: nodes that have not answered (all but Found.Heard) may have the
	// record, and of the others too few have kept theirs (Found.Kept).
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
	// Ran: the job has run under the lock, and succeeded.
	Ran
	// Answered: a node has answered, or failed.
	Answered
	// Over: no more answers will come to what was asked.
	Over
)

// JobEvent is one thing that happened.
type JobEvent struct {
	Kind JobEventKind
	// Answered: what was asked, and the reply; nil if the node failed. Away are the
	// nodes that failed when they were last asked.
	Ask   Ask
	Reply *node.RecordsReply
	Away  Set
}

// Ask is a request to one node.
type Ask struct {
	Node    int
	Round   int // of the Job
	Request node.RecordsRequest
}

// Job is one call. Its caller sets the first fields, and reads the others.
type Job struct {
	Nodes int
	// Request is what all requests have: Name, Occurrence, Guard and Retention,
	// which becomes the longest that the nodes know of the name.
	Request node.RecordsRequest

	State JobState
	// Round counts what is asked: when it changes, no former answer is awaited.
	Round            int
	Mode             JobEventKind // how it began: Look, Try, or Locked
	Awaited, Answers Set          // of this round
	Said             []Said
	Found            Found
	Read             Set // the sources that have told all their records
	Union            map[string]time.Duration
	records          []node.Record // the Union
	from             int           // the record at which the requests of this round begin
	more             Set           // who has, or gets, more records than these
}

// ops are what is asked in each state.
var ops = [...]node.Op{Checking: node.OpCheck, Recording: node.OpComplete, Reading: node.OpRecords, Copying: node.OpAdopt, TooFew: 0}

// Handle handles an event, and returns what to ask.
func (j *Job) Handle(e JobEvent) []Ask {
	switch {
	case e.Kind <= Locked:
		j.Mode, j.Said, j.Found, j.from = e.Kind, make([]Said, j.Nodes), Found{}, 0
		return j.ask(Checking, All(j.Nodes))
	case e.Kind == Ran:
		j.Found, j.from = Found{Completed: 1}, 0
		return j.ask(Recording, All(j.Nodes))
	case j.Awaited == 0, e.Kind == Answered && e.Ask.Round != j.Round:
		return nil
	case e.Kind == Over:
		j.Awaited = 0
	default:
		j.Awaited &^= Of(e.Ask.Node)
		if e.Reply != nil {
			j.take(e.Ask.Node, e.Reply)
		}
	}
	if j.Awaited == 0 || j.quorum() && (j.State == Recording ||
		j.State == Checking && j.Awaited&^e.Away == 0 && (j.Found.Completed > 0 || j.Found.Sure)) {
		return j.over()
	}
	return nil
}

func (j *Job) quorum() bool { return j.Answers.Count() >= Quorum(j.Nodes) }

// ask begins a state, with requests to some nodes.
func (j *Job) ask(s JobState, to Set) (asks []Ask) {
	j.State, j.Round, j.Awaited, j.Answers, j.more = s, j.Round+1, to, 0, 0
	for i := range j.Nodes {
		if !to.Has(i) {
			continue
		}
		req := j.Request
		req.Op, req.Skip = ops[s], j.from
		if s == Copying {
			end := min(j.from+node.MaxRecords, len(j.records))
			req.Begun, req.Records, req.Whole = j.Said[i].Begun, j.records[j.from:end], end == len(j.records)
			req.Since = j.Said[i].Now.Add(-j.reach(j.Found.Sources))
		}
		asks = append(asks, Ask{i, j.Round, req})
	}
	return asks
}

// take takes an answer.
func (j *Job) take(i int, r *node.RecordsReply) {
	j.Answers |= Of(i)
	more := j.State == Copying && r.Status == node.Granted && j.from+node.MaxRecords < len(j.records)
	switch said := &j.Said[i]; {
	case j.State == Checking:
		*said = SaidBy(r)
		j.Found = Find(j.Said)
		j.Request.Retention = max(j.Request.Retention, said.Retention)
	case j.State == Reading && r.Begun.Equal(said.Begun): // it has lost nothing since
		for _, x := range r.Records {
			j.Union[x.Occurrence] = max(j.Union[x.Occurrence], x.Left)
		}
		if more = len(r.Records) == node.MaxRecords; !more {
			j.Read |= Of(i)
		}
	}
	if more {
		j.more |= Of(i)
	}
}

// over goes on after a round.
func (j *Job) over() []Ask {
	completed := j.Found.Completed
	switch {
	case j.more != 0:
		j.from += node.MaxRecords
		return j.ask(j.State, j.more)
	case j.State == Reading:
		return j.copies()
	case j.State == Copying:
		return j.conclude()
	case j.Mode == Try && completed == 0:
		return j.ask(NeedsLock, 0) // which waits for nodes that do not answer
	case !j.quorum():
		return j.ask(TooFew, 0)
	case j.State == Checking && completed > 0 && completed < Quorum(j.Nodes):
		return j.ask(Recording, All(j.Nodes))
	case j.Mode == Look, j.Found.Sources == 0, j.Found.Lacking == 0:
		return j.conclude()
	case j.Mode == Try:
		return j.ask(MayCopy, 0)
	}
	j.Union, j.Read = map[string]time.Duration{}, 0
	for i, s := range j.Said {
		if j.Found.Sources.Has(i) && s.Count == 0 {
			j.Read |= Of(i)
		}
	}
	if j.Read == j.Found.Sources {
		return j.copies()
	}
	return j.ask(Reading, j.Found.Sources&^j.Read)
}

// copies sends nodes the records that they lack, unless too few have told theirs.
func (j *Job) copies() []Ask {
	if j.Found.Memory == Remembered && j.Read.Count() < Need(j.Nodes) {
		return j.conclude()
	}
	j.records, j.from = nil, 0
	for _, o := range slices.Sorted(maps.Keys(j.Union)) {
		j.records = append(j.records, node.Record{Occurrence: o, Left: j.Union[o]})
	}
	return j.ask(Copying, j.Found.Lacking)
}

// conclude ends the call, or starts the job.
func (j *Job) conclude() []Ask {
	switch {
	case j.Found.Completed > 0:
		return j.ask(Completed, 0)
	case j.Found.Memory == Unsure:
		return j.ask(Unknown, 0)
	}
	return j.ask(Runs, 0)
}

// reach returns how far back the records of nodes reach, by a quorum of them.
func (j *Job) reach(nodes Set) time.Duration {
	var all []time.Duration
	for i, s := range j.Said {
		if nodes.Has(i) {
			all = append(all, s.Reach)
		}
	}
	slices.Sort(all)
	return all[max(0, len(all)-Quorum(j.Nodes))]
}

// Since returns since when a quorum has complete records, but not before the oldest;
// zero if a quorum did not answer.
func (j *Job) Since(now, oldest time.Time) (since time.Time) {
	if j.Found.Heard.Count() >= Quorum(j.Nodes) {
		if since = now.Add(-j.reach(j.Found.Heard)); since.Before(oldest) {
			return oldest
		}
	}
	return since
}
