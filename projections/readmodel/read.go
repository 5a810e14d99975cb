package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/projections/database"
)

const (
	// readTimeout bounds a read, with its tries while the database is away or restarts.
	readTimeout = 15 * time.Second
	// firstReread and lastReread are the first and the longest pause between two tries.
	firstReread, lastReread = 20 * time.Millisecond, 500 * time.Millisecond
)

// read calls ask until the database answers. After an error that may pass, such as a lost
// connection or a restart, it calls ask again, for readTimeout; then it returns
// service_unavailable. Other errors that are no *domain.Error are wrapped with what, the name of
// the read.
func read[T any](
	ctx context.Context, s *Store, what string, ask func(ctx context.Context) (T, error),
) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for wait := firstReread; ; wait = min(2*wait, lastReread) {
		asking, cancel := context.WithTimeout(waiting, database.AnswerTimeout)
		answer, err := ask(asking)
		err = wrapRead(what, err)
		timedOut := asking.Err() != nil
		cancel()
		callerGone := ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded)
		switch {
		case err == nil:
			if s.away.Swap(false) {
				s.logger.Info("database answers reads again")
			}
			return answer, nil
		case errors.Is(err, projections.ErrBuilding):
			return answer, domain.UnavailableBecause(
				err,
				"the read models are being built; lists and single reads cannot be answered "+
					"until they are complete",
			)
		case callerGone, !mayPass(err):
			return answer, err
		case waiting.Err() != nil:
			return answer, domain.UnavailableBecause(
				err, "the database does not answer at the moment; nothing was read",
			)
		}
		if !s.away.Swap(true) {
			s.logger.Warn(
				"database does not answer reads", "error", err,
				"limit_ms", readTimeout.Milliseconds(),
			)
		}
		if timedOut { // the other connections may be dead too
			s.pool.Reset()
		}
		database.Pause(waiting, wait)
	}
}

// wrapRead returns the error of a read with its name; a *domain.Error, and nil, unchanged.
func wrapRead(what string, err error) error {
	var known *domain.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("read models: %s: %w", what, err)
}

// ifNoRow returns instead if err is about a row that does not exist, and err otherwise.
func ifNoRow(err, instead error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return instead
	}
	return err
}

// mayPass reports whether a read's error comes from the condition of the database and not from the
// query: the same query can succeed later.
func mayPass(err error) bool {
	var known *domain.Error
	var unreadable pgx.ScanArgError
	if errors.As(err, &known) || errors.As(err, &unreadable) {
		return false
	}
	return database.IsTransient(err)
}
