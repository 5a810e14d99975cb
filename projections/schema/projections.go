package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names of the projections.
const (
	// Directory is the projection of the stream DIRECTORY: organizations, members, sites, hubs and
	// keys.
	Directory = "directory"
	// Presence is the projection of the bucket `presence`: whether hubs are connected.
	Presence = "presence"
	// Devices is the projection of the hub logs: the last reported state of every device. It has a
	// checkpoint for each journal (JournalName). It may be behind the others: reads wait only for
	// these.
	Devices = "devices"
	// Book is the projection of the stream BOOK: what organizations keep of their events. Nothing waits
	// for it either.
	Book = "book"
)

// Names returns the names of all projections.
func Names() []string { return []string{Directory, Presence, Devices, Book} }

// JournalName returns the name of the checkpoint of Devices in a journal.
func JournalName(number int) string { return Devices + "/" + strconv.Itoa(number) }

// ProjectionOf returns the name of the projection that a checkpoint belongs to.
func ProjectionOf(checkpoint string) string {
	projection, _, _ := strings.Cut(checkpoint, "/")
	return projection
}

// Awaited reports whether readers wait for the projection of a checkpoint.
func Awaited(checkpoint string) bool {
	return checkpoint == Directory || checkpoint == Presence
}

// CommitID returns the id of a journal's commit in a checkpoint: a commit of another journal has
// another id.
func CommitID(term uint64, at time.Time) string {
	return fmt.Sprintf("%d/%d", term, at.UnixNano())
}

// CommitTime returns the time in a CommitID, in nanoseconds since 1970; 0 for the empty id.
func CommitTime(id string) int64 {
	_, nanoseconds, _ := strings.Cut(id, "/")
	at, _ := strconv.ParseInt(nanoseconds, 10, 64) // as CommitID has written it
	return at
}

var (
	// ErrOtherStream means that the read models were built from another stream than this one: the
	// stream or the database was restored from a backup. A rebuild repairs the read models.
	ErrOtherStream = errors.New("the read models were built from another stream")
	// ErrBuilding means that the read models have never been complete.
	ErrBuilding = errors.New("the read models are being built")
)

// StoppedError names the event that stops a projection and the reason.
type StoppedError struct {
	// Projection is Directory or Presence.
	Projection string
	// Sequence is the event's sequence in the projection's stream.
	Sequence uint64
	// Type is the event's type; empty when unknown.
	Type string
	// Err is why the event cannot be read or applied.
	Err error
}

// Error names the event and the reason.
func (e *StoppedError) Error() string {
	kind := ""
	if e.Type != "" {
		kind = " (" + e.Type + ")"
	}
	return fmt.Sprintf(
		"projection %s is stopped at sequence %d%s: %v", e.Projection, e.Sequence, kind, e.Err,
	)
}

// Unwrap returns Err.
func (e *StoppedError) Unwrap() error { return e.Err }

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
	// stream. Lag is how many events the read models lack. Devices counts the commits of
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
