package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hubcloud/domain"
)

const (
	// readPatience is how long a read waits for a database that is away: it restarts, or another
	// one takes its place.
	readPatience = 15 * time.Second
	// firstReread and lastReread are how long it waits between tries: twice as long each time.
	firstReread, lastReread = 20 * time.Millisecond, 500 * time.Millisecond
)

// read asks the database until it answers. What passes by itself is waited out for readPatience,
// and is then service_unavailable: a connection that is lost while the answer is read, a database
// that restarts or is not there. ask is called again from the beginning.
func read[T any](
	ctx context.Context, s *Store, ask func(ctx context.Context) (T, error),
) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for wait := firstReread; ; wait = min(2*wait, lastReread) {
		asking, cancel := context.WithTimeout(waiting, answerLimit)
		answer, err := ask(asking)
		silent := asking.Err() != nil
		cancel()
		switch {
		case err == nil:
			if s.away.Swap(false) {
				s.log.Info("the database answers reads again")
			}
			return answer, nil
		case errors.Is(err, ErrBuilding):
			return answer, fmt.Errorf(
				"%w: %w",
				domain.Unavailable(
					"the read models are being built; lists and single reads cannot be answered "+
						"until they are complete",
				),
				err,
			)
		case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded), !passes(err):
			return answer, err
		case waiting.Err() != nil:
			return answer, fmt.Errorf(
				"%w: %w",
				domain.Unavailable("the database does not answer at the moment; nothing was read"),
				err,
			)
		}
		if !s.away.Swap(true) {
			s.log.Warn(
				"the database does not answer reads; they wait for it", "error", err,
				"limit_ms", readPatience.Milliseconds(),
			)
		}
		if silent { // the other connections may lead nowhere likewise
			s.pool.Reset()
		}
		pause(waiting, wait)
	}
}

// passes reports whether a read's error is the database's condition and not what it was asked: the
// same question can be answered later.
func passes(err error) bool {
	var known *domain.Error
	var unreadable pgx.ScanArgError
	if errors.As(err, &known) || errors.As(err, &unreadable) {
		return false
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return true // no connection, or one that ended
	}
	if len(refused.Code) != 5 {
		return false
	}
	switch refused.Code[:2] {
	// connection, transaction state and rollback, resources, object state, an operator's
	// intervention such as a shutdown, and the system's errors
	case "08", "25", "40", "53", "55", "57", "58":
		return true
	}
	return false
}

// Activity returns what happened in an organization before a sequence of the directory, newest
// first: at most limit of it (1 or more). 0 begins with the newest. What is older than
// domain.ActivityRetention is left out.
func (s *Store) Activity(
	ctx context.Context, org string, limit int, before uint64,
) (domain.Page[domain.Activity], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Activity], error) {
		return s.activity(ctx, org, limit, before)
	})
}

// Hubs gives an organization's hubs in the order of their ids, without what only single reads show:
// at most limit of them (1 or more), after the hub startingAfter when that is not empty, only those
// at the site when it is not nil. A site that the organization does not have has no hubs. A
// startingAfter that is no hub of the organization is an invalid_request; one that has left the
// site meanwhile still says where to go on.
func (s *Store) Hubs(
	ctx context.Context, org string, site *string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Hub], error) {
		return s.hubs(ctx, org, site, limit, startingAfter)
	})
}

// FindHubs is Hubs of those alone that are at the site, and have the text in their name, in
// whatever case (as far as the database's locale knows letters), or in their id or serial, with or
// without its dashes; "" stands for every site, and is in all.
func (s *Store) FindHubs(
	ctx context.Context, org, site, text string, limit int, startingAfter string,
) (domain.Page[domain.Hub], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Hub], error) {
		return s.findHubs(ctx, org, site, text, limit, startingAfter)
	})
}

// Hub gives a hub of the organization, with everything. Any other is not_found.
func (s *Store) Hub(ctx context.Context, org string, id domain.HubID) (domain.Hub, error) {
	return read(ctx, s, func(ctx context.Context) (domain.Hub, error) {
		return s.hub(ctx, org, id)
	})
}

// Keys gives an organization's API keys, those in force first, newest first: at most limit of them
// (1 or more), after the key startingAfter when that is not empty. A startingAfter that is no key
// of the organization is an invalid_request.
func (s *Store) Keys(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.KeyView], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.KeyView], error) {
		return s.keys(ctx, org, limit, startingAfter)
	})
}

// Key gives an API key of the organization, revoked or not. Any other is not_found.
func (s *Store) Key(ctx context.Context, org, id string) (domain.KeyView, error) {
	return read(ctx, s, func(ctx context.Context) (domain.KeyView, error) {
		return s.key(ctx, org, id)
	})
}

// DeviceLabels gives the names and rooms that were set for devices of a hub, by device id: only of
// those that have one. A hub that the organization does not have has none.
func (s *Store) DeviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return read(ctx, s, func(ctx context.Context) (map[int64]domain.DeviceLabel, error) {
		return s.deviceLabels(ctx, org, hub)
	})
}

// FindMembers is Members of those alone whose address has the text in it, in whatever case; "" is
// in all.
func (s *Store) FindMembers(
	ctx context.Context, org, text string, limit int, startingAfter string,
) (domain.Page[domain.Member], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Member], error) {
		return s.findMembers(ctx, org, text, limit, startingAfter)
	})
}

// Member gives a member of the organization. Any other is not_found.
func (s *Store) Member(ctx context.Context, org, id string) (domain.Member, error) {
	return read(ctx, s, func(ctx context.Context) (domain.Member, error) {
		return s.member(ctx, org, id)
	})
}

// Invitations gives the invitations of an organization that are pending at a time, newest first: at
// most limit of them (1 or more), after the invitation startingAfter when that is not empty. A
// startingAfter that is no invitation of the organization is an invalid_request; one that is not
// pending any more still says where to go on.
func (s *Store) Invitations(
	ctx context.Context, org string, limit int, startingAfter string, now time.Time,
) (domain.Page[domain.Invitation], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Invitation], error) {
		return s.invitations(ctx, org, limit, startingAfter, now)
	})
}

// Sites gives an organization's sites in the order in which they were created: at most limit of
// them (1 or more), after the site startingAfter when that is not empty. A startingAfter that is no
// site of the organization is an invalid_request.
func (s *Store) Sites(
	ctx context.Context, org string, limit int, startingAfter string,
) (domain.Page[domain.Site], error) {
	return read(ctx, s, func(ctx context.Context) (domain.Page[domain.Site], error) {
		return s.sites(ctx, org, limit, startingAfter)
	})
}

// Site gives a site of the organization. Any other is not_found.
func (s *Store) Site(ctx context.Context, org, id string) (domain.Site, error) {
	return read(ctx, s, func(ctx context.Context) (domain.Site, error) {
		return s.site(ctx, org, id)
	})
}
