package projections

import "time"

// The states of a projection.
const (
	// StateBuilding means that the read models have never been complete.
	StateBuilding = "building"
	// StateRunning means that the projection follows its stream.
	StateRunning = "running"
	// StateStopped means that the projection cannot apply an event.
	StateStopped = "stopped"
	// StateStoppedByOperator means that an operator has stopped the projection.
	StateStoppedByOperator = "stopped_by_operator"
	// StateUnattended means that no process projects: none has the role projector, or none reaches
	// the database.
	StateUnattended = "unattended"
)

// Status is the state of one projection, whichever process runs it.
type Status struct {
	// Name is one of Names.
	Name string
	// Sequence is the sequence of the last event in the read models, Head of the last event in the
	// stream. Lag is how many events the read models lack. Those of Devices count the commits of
	// all journals.
	Sequence, Head, Lag uint64
	// Behind is the age of the oldest event that the read models lack; 0 when they lack none.
	Behind time.Duration
	// State is one of the State constants.
	State string
	// Reason explains a State other than StateRunning; empty otherwise.
	Reason string
	// Stopped is why the projection cannot apply an event; nil when it can.
	Stopped *StoppedError
}

// StoppedByEvent reports whether the event after the read models stops the projection. A program
// that understands the event can go on, and so can one that skips it. If Stopped is about an event
// that the read models have, they are of another stream, and only a rebuild helps.
func (s Status) StoppedByEvent() bool {
	return s.Stopped != nil && s.Stopped.Sequence > s.Sequence
}
