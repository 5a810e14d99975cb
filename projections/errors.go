package projections

import (
	"errors"
	"fmt"
)

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
