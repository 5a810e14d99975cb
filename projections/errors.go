package projections

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

// StoppedError says which event stops a projection, and why.
type StoppedError struct {
	// Projection is DirectoryProjection or PresenceProjection.
	Projection string
	// Sequence is the event's in the projection's stream.
	Sequence uint64
	// Type is the event's type, as far as it can be told.
	Type string
	// Err is what is wrong with it.
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

// Unwrap gives what is wrong with the event.
func (e *StoppedError) Unwrap() error { return e.Err }

// operatorStop says that an operator has stopped a projection.
type operatorStop struct{ query.HubcloudStop }

func (e *operatorStop) Error() string {
	text := fmt.Sprintf(
		"projection %s was stopped by an operator at %s", e.Projection,
		e.StoppedAt.UTC().Format(time.RFC3339),
	)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// standsStill is directory.ErrStandingStill with what is in the way.
type standsStill struct{ why error }

func (e *standsStill) Error() string { return e.why.Error() }

// Unwrap gives both.
func (e *standsStill) Unwrap() []error { return []error{directory.ErrStandingStill, e.why} }

var (
	// ErrOtherStream says that the read models were built from something else than the stream: it
	// was restored from an older copy, or the database was. A rebuild mends it.
	ErrOtherStream = errors.New("the read models are not of this stream")
	// ErrBuilding says that the read models are being built and are not complete yet.
	ErrBuilding = errors.New("the read models are being built")
	// ErrNoRow says that an event changes something that no event before it has made.
	ErrNoRow = errors.New("there is no such row to change")

	// errBadEvent says that an event contradicts itself.
	errBadEvent = errors.New("bad event")
	// errMoved says that another process has moved the checkpoint: it projects now.
	errMoved = errors.New("another process has moved the checkpoint")
	// errDeposed says that another process has taken over as the projector.
	errDeposed = errors.New("another process projects now")
)

// isPermanent says whether trying again cannot help: the database has understood a statement and
// refuses it for what it says, by SQLSTATE class; or an event is at fault without the database.
// Everything else passes: connections, shutdowns, failovers, full disks, deadlocks.
func isPermanent(err error) bool {
	if errors.Is(err, ErrNoRow) || errors.Is(err, errBadEvent) {
		return true
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 {
		return false
	}
	switch refused.Code[:2] {
	case "21", "22", "23", "42": // cardinality, data, integrity constraint, syntax and access rules
		return true
	}
	return false
}

// refusesLogin reports whether the database does not let the role in, or is not there: a mistake in
// the connection string. A server that starts answers something else.
func refusesLogin(err error) bool {
	const invalidRole, invalidPassword, noDatabase = "28000", "28P01", "3D000"
	var refused *pgconn.PgError
	return errors.As(err, &refused) &&
		(refused.Code == invalidRole || refused.Code == invalidPassword || refused.Code == noDatabase)
}
