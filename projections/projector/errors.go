package projector

import (
	"errors"

	"hubcloud/projections/schema"
)

var (
	// errMoved means that another process has moved the checkpoint or taken over as projector, or
	// that an operator has stopped the projection. Nothing was written.
	errMoved = errors.New("another process has moved the checkpoint")

	// errBadEvent means that an event contradicts itself or the events before it.
	errBadEvent = errors.New("bad event")
)

// IsPermanent reports whether another try would fail too: an event is at fault, or the database
// rejects the content of a statement.
func IsPermanent(err error) bool {
	return errors.Is(err, schema.ErrNoRow) || errors.Is(err, errBadEvent) ||
		schema.RejectsStatement(err)
}
