package readmodel

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/statemodel"
)

//go:embed sql/states.sql
var statesQuery string

// States returns the last reported states of the channels of an organization's devices that a
// filter selects, also of hubs that are offline: at most limit (1 or more), after a position. It
// fails with service_unavailable until the first build of these read models is complete.
func (s *Store) States(
	ctx context.Context, org string, filter domain.StateFilter, limit int,
	after domain.StatePosition,
) (domain.Page[domain.ReportedState], error) {
	ask := func(ctx context.Context) (domain.Page[domain.ReportedState], error) {
		page := newPage[domain.ReportedState](limit)
		db := s.whenComplete()
		built, err := statemodel.Built(ctx, db)
		if err == nil && !built {
			err = projections.ErrBuilding
		}
		if err != nil {
			return page.Page, err
		}
		rows, err := db.Query(
			ctx, statemodel.SQL(statesQuery), org, storable(filter.SiteID), storable(filter.HubID),
			storable(filter.Key), boolText(filter.Value), filter.Status, filter.Available,
			filter.ObservedBefore, database.StorableText(string(after.HubID)), after.DeviceID,
			database.StorableText(after.Key), after.Endpoint, limit+1,
		)
		if err != nil {
			return page.Page, err
		}
		var row stateRow
		_, err = pgx.ForEachRow(rows, row.into(), func() error {
			page.add(row.state())
			return nil
		})
		return page.Page, err
	}
	return read(ctx, s, "last reported states", ask)
}

// StatesReached returns for each group of shards the time of the last record of the hub logs that
// States has, in nanoseconds since 1970. It fails as States does.
func (s *Store) StatesReached(ctx context.Context) ([]int64, error) {
	ask := func(ctx context.Context) ([]int64, error) {
		db := s.whenComplete()
		built, err := statemodel.Built(ctx, db)
		if err == nil && !built {
			err = projections.ErrBuilding
		}
		if err != nil {
			return nil, err
		}
		return statemodel.Reached(ctx, db)
	}
	return read(ctx, s, "progress of last reported states", ask)
}

// stateRow is a row of the query.
type stateRow struct {
	last                domain.ReportedState
	registeredAt        time.Time
	connectedWhenAdded  bool
	online              *bool
	since               *time.Time
	capabilities, value *string
	desired, standing   *string
	observedAt          *time.Time
	desiredAt           *time.Time
	// Times of the log in nanoseconds.
	availableLogged, observedLogged, changedLogged, desiredLogged int64
}

func (r *stateRow) into() []any {
	s, c := &r.last, &r.last.Channel
	return []any{
		&s.HubID, &s.SiteID, &r.registeredAt, &r.connectedWhenAdded, &r.online, &r.since,
		&s.DeviceID, &s.Name, &s.Manufacturer, &s.Model, &s.Room, &s.AvailableSince,
		&r.availableLogged,
		&c.Key, &c.Endpoint, &c.Kind, &c.Unit, &c.Readable, &c.Writable, &r.capabilities,
		&c.Available, &r.value, &r.standing, &r.observedAt, &r.desired, &r.desiredAt, &c.Status, &s.ChangedAt,
		&s.Basis, &r.observedLogged, &r.changedLogged, &r.desiredLogged, &s.Certain,
	}
}

func (r *stateRow) state() domain.ReportedState {
	s := r.last
	s.HubStatus, s.HubSince = connection(r.registeredAt.UTC(), r.connectedWhenAdded, r.online, r.since)
	s.Channel.Capabilities = rawOf(r.capabilities)
	s.Channel.Value, s.Channel.ObservedAt = rawOf(r.value), timeText(r.observedAt)
	s.Channel.Desired, s.Channel.DesiredAt = rawOf(r.desired), timeText(r.desiredAt)
	s.Standing = statemodel.Standing(r.standing)
	s.AvailableLogged = statemodel.LoggedAt(r.availableLogged)
	s.Logged = domain.LoggedTimes{
		Observed: statemodel.LoggedAt(r.observedLogged),
		Changed:  statemodel.LoggedAt(r.changedLogged),
		Desired:  statemodel.LoggedAt(r.desiredLogged),
	}
	return s
}

// timeText returns a time in domain.TimeLayout; nil for nil.
func timeText(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := domain.FormatTime(*t)
	return &text
}

func storable[T ~string](text *T) *string {
	if text == nil {
		return nil
	}
	stored := database.StorableText(string(*text))
	return &stored
}

func boolText(value *bool) *string {
	if value == nil {
		return nil
	}
	text := strconv.FormatBool(*value)
	return &text
}
