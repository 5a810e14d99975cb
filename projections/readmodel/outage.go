package readmodel

import (
	"sync/atomic"
	"time"

	"hubcloud/projections/schema"
)

const (
	// patience is how long reads, changes and a start wait for a database that has gone: a restart
	// takes less. After that they wait no longer, until the database answers again.
	patience = 5 * time.Second
	// goneTimeout bounds one try to read from a database that has been gone for longer.
	goneTimeout = time.Second
)

// outage is what is known of a database that does not answer. Its methods may be called
// concurrently.
type outage struct {
	// since is the time of the first failure after the last answer, in nanoseconds since 1970; 0
	// while the database answers.
	since atomic.Int64
}

// failed records that a try that began at a time has failed. It returns the time until which the
// try may be repeated, and whether this failure is the first one.
func (o *outage) failed(began time.Time) (until time.Time, first bool) {
	first = o.since.CompareAndSwap(0, began.UnixNano())
	if since := o.since.Load(); since != 0 {
		began = time.Unix(0, since)
	}
	return began.Add(patience), first
}

// answered records that the database answers, and reports whether it did not before.
func (o *outage) answered() (again bool) {
	return o.since.Load() != 0 && o.since.Swap(0) != 0
}

// limit returns how long a try that begins now may take.
func (o *outage) limit() time.Duration {
	since := o.since.Load()
	if since != 0 && time.Since(time.Unix(0, since)) > patience {
		return goneTimeout
	}
	return schema.AnswerTimeout
}

// failed records a try that the database did not answer, and returns the time until which it may be
// repeated.
func (s *Store) failed(began time.Time, err error) (until time.Time) {
	until, first := s.outage.failed(began)
	if first {
		s.logger.Warn(
			"database does not answer", "error", err, "patience_ms", patience.Milliseconds(),
		)
	}
	return until
}

// answered records that the database answers.
func (s *Store) answered() {
	if s.outage.answered() {
		s.logger.Info("database answers again")
	}
}
