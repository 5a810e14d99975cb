package journal

import "time"

// Tip is the end of a hub's log, as an index knows it.
type Tip struct {
	// Seq is the sequence of the last record in the hub's log.
	Seq uint64
	// EventSeq is the sequence of the last event; 0 if there was none in the chain of commits.
	EventSeq uint64
	// Time is that of the last record.
	Time time.Time
	// Commit is the journal sequence of the last commit that has records of the hub. It may have
	// expired.
	Commit uint64
	// anchor and number are those of the hub's link in that commit.
	anchor uint64
	number uint8
}
