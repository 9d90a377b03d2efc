package node

import "time"

const (
	// MaxRecords is the highest number of records in one OpRecords or OpAdopt.
	MaxRecords = 1000
	// MaxOccurrence is the longest Occurrence, in bytes.
	MaxOccurrence = 256
)

// A RecordsRequest is what a client asks of a Recorder about the records of a name.
// Holders, queue and fence do not matter to it.
type RecordsRequest struct {
	// Op is OpComplete, OpCheck, OpRecords or OpAdopt.
	Op   Op
	Name string // the key of the lock, prefix included
	// Occurrence is what an OpComplete or OpCheck is about: one of the times at which a
	// job is due. It has 1 to MaxOccurrence bytes.
	Occurrence string
	// Retention is how long the node keeps the record (OpComplete), or remembers the
	// name.
	Retention time.Duration
	// Skip is how many records an OpRecords leaves out.
	Skip int
	// Records are what an OpAdopt stores: MaxRecords at the most. Begun is when the
	// node's memory of the name began, as it said.
	Records []Record
	Begun   time.Time
	// Whole makes the node's memory of the name whole (OpAdopt). The records that it has
	// then include all that were completed before, and are complete from Since on, on its
	// own clock.
	Whole bool
	Since time.Time
	// Guard is the membership, for which the node says whether it may have lost records;
	// nil if that does not matter.
	Guard *Guard
}

// Record says that an occurrence is completed.
type Record struct {
	Occurrence string
	Left       time.Duration // until it is forgotten
}

// A RecordsReply is the answer to a RecordsRequest: its Status, and how far the node's
// records of the name can be relied on. A node that lost its data has no record of what
// was completed before. Times are on the node's own clock.
type RecordsReply struct {
	Status Status
	// Now is the node's clock when it answered. Clockless is as in a Reply.
	Now       time.Time
	Clockless bool
	// Begun is when the node's memory of the name began. It identifies the
	// memory: one that begins after a loss begins later.
	Begun time.Time
	// Since is from when on the records are complete. It is before Begun if
	// other nodes' records were copied.
	Since time.Time
	// Retention is the longest Retention of the requests about records of the
	// name, as far as the memory reaches. A memory that is older than all of
	// them has every record.
	Retention time.Duration
	// Whole says that the memory is whole: the node has every record of the name
	// that it ever had, however young the memory.
	Whole bool
	// Marked is when the node was last marked: it has lost nothing since. Zero
	// if that is not known. New says that it had no data then.
	Marked time.Time
	New    bool
	// Count is how many records of the name there are, and Records some of them
	// (to an OpRecords).
	Count   int
	Records []Record
}
