package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
)

// firstReread and lastReread are the first and the longest pause between two tries.
const firstReread, lastReread = 20 * time.Millisecond, 500 * time.Millisecond

// noOrg is the organization of what the service reads for itself, which has no share.
const noOrg = ""

// takeShare waits for one of the connections that an organization may use at the same time.
func (s *Store) takeShare(ctx context.Context, org string) (release func(), err error) {
	if org == noOrg {
		return func() {}, nil
	}
	return s.shares.Wait(ctx, shares.Spender{Org: org})
}

// errTooLong is the error of a query of an organization that took longer than queryTimeout.
var errTooLong = domain.RateLimited(
	queryTimeout, "the request takes too much time of the database; ask for less, such as for one "+
		"site or one hub",
)

// read calls ask until the database answers. Until the first build of the read models is complete,
// it returns service_unavailable instead. After an error that may pass, such as a lost connection or
// a restart, it calls ask again until the database has been away for patience; then it returns
// service_unavailable. A database that has been away for longer is asked once. Other errors that are
// no *domain.Error are wrapped with what, the name of the read. It waits for the share of an
// organization that others' reads hold, and returns rate_limited if ask takes too long.
func read[T any](
	ctx context.Context, s *Store, org, what string, ask func(ctx context.Context) (T, error),
) (answer T, err error) {
	for wait := firstReread; ; wait = min(2*wait, lastReread) {
		release, err := s.takeShare(ctx, org)
		if err != nil {
			return answer, err
		}
		began, timedOut := time.Now(), false
		func() {
			defer release() // also if ask panics
			asking, cancel := context.WithTimeout(ctx, s.outage.limit())
			defer cancel()
			if err = s.answerable(); err == nil {
				answer, err = ask(asking)
			}
			err, timedOut = wrapRead(what, err), asking.Err() != nil
		}()
		callerGone := ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded)
		switch {
		case err == nil:
			s.answered()
			return answer, nil
		case org != noOrg && schema.HasCode(err, schema.CodeQueryCanceled):
			s.answered()
			return answer, errTooLong
		case errors.Is(err, schema.ErrBuilding):
			return answer, domain.UnavailableBecause(
				err,
				"the read models are being built; lists and single reads cannot be answered "+
					"until they are complete",
			)
		case callerGone, !mayPass(err):
			return answer, err
		}
		until := s.failed(began, err)
		if timedOut { // the other connections may be dead too
			s.pool.Reset()
		}
		if left := time.Until(until); left <= 0 || ctx.Err() != nil {
			return answer, domain.UnavailableBecause(
				err, "the database does not answer at the moment; nothing was read",
			)
		}
		schema.Pause(ctx, wait)
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
	return schema.IsTransient(err)
}
