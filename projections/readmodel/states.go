package readmodel

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/states.sql
var statesQuery string

// A page of states that a filter selects ends after the hub with which mostLooked channels were
// looked at, and after mostHubs hubs, even if they have few that the filter selects. A hub has at
// most devicestate.MaxHubChannels.
const (
	mostLooked = 20_000
	mostHubs   = 1000
)

// States returns the last reported states of the channels of devices within a reach that a filter
// selects, also of hubs that are offline: at most limit (1 or more), after a position. A
// page may have fewer although more follow, and even none. It fails with service_unavailable until
// the first build of these read models is complete.
func (s *Store) States(
	ctx context.Context, reach domain.Reach, filter domain.StateFilter, limit int,
	after domain.StatePosition,
) (domain.StatesPage, error) {
	org := reach.OrgID
	ask := func(ctx context.Context) (page domain.StatesPage, err error) {
		hubs, next, err := s.hubsToLookAt(ctx, reach, filter, limit, after)
		if err != nil {
			return page, err
		}
		rows, err := s.pool.Query(ctx, statesQuery, statesArgs(org, hubs, filter, limit, after)...)
		if err != nil {
			return page, err
		}
		states, err := collectStates(rows)
		page.Page = pageOf(states, limit, func(s domain.ReportedState) domain.ReportedState {
			return s
		})
		switch {
		case page.HasMore:
			page.Next = states[limit-1].Position()
		case next != "":
			page.HasMore, page.Next = true, domain.StatePosition{HubID: next}
		}
		return page, err
	}
	return readOf(ctx, s, schema.Devices, org, "last reported states", ask)
}

// statesArgs returns the arguments of statesQuery.
func statesArgs(
	org string, hubs []string, filter domain.StateFilter, limit int, after domain.StatePosition,
) []any {
	return []any{
		org, hubs, storable(filter.Key), boolText(filter.Value), filter.Status, filter.Available,
		filter.ObservedBefore, schema.StorableText(string(after.HubID)), after.DeviceID,
		schema.StorableText(after.Key), after.Endpoint, limit + 1,
	}
}

// hubsToLookAt returns the hubs whose channels a page of states looks at, in the order of their
// ids, and the hub that follows them; "" for none.
func (s *Store) hubsToLookAt(
	ctx context.Context, reach domain.Reach, filter domain.StateFilter, limit int,
	after domain.StatePosition,
) (hubs []string, next domain.HubID, err error) {
	rows, err := s.queries.HubsWithStates(ctx, schema.HubsWithStatesParams{
		OrgID: reach.OrgID, SiteID: storable(filter.SiteID), HubID: storable(filter.HubID),
		Start: schema.StorableText(string(after.HubID)), Within: reach.Sites, RowLimit: mostHubs + 1,
	})
	most, all := int64(mostLooked), filter.SelectsAllOfHubs()
	if all {
		most = min(most, int64(limit)+1)
	}
	looked := int64(0)
	for _, row := range rows {
		if looked >= most || len(hubs) == mostHubs {
			return hubs, domain.HubID(row.ID), err
		}
		hubs = append(hubs, row.ID)
		if !all || row.ID != string(after.HubID) { // the page before may have had all its channels
			looked += row.Channels
		}
	}
	return hubs, "", err
}

// collectStates returns the states in the rows of a query.
func collectStates(rows pgx.Rows) (states []domain.ReportedState, err error) {
	var row stateRow
	_, err = pgx.ForEachRow(rows, row.into(), func() error {
		states = append(states, row.state())
		return nil
	})
	return states, err
}

// StatesReached returns for each group of shards the time of the last record of the hub logs that
// States has, in nanoseconds since 1970. It fails as States does.
func (s *Store) StatesReached(ctx context.Context) ([]int64, error) {
	ask := func(ctx context.Context) ([]int64, error) {
		commits, err := s.queries.ReportedCommits(ctx)
		return pageOf(commits, len(commits), schema.CommitTime).Data, err
	}
	return readOf(ctx, s, schema.Devices, noOrg, "progress of last reported states", ask)
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
	s.Standing = schema.Standing(r.standing)
	s.AvailableLogged = schema.LoggedAt(r.availableLogged)
	s.Logged = domain.LoggedTimes{
		Observed: schema.LoggedAt(r.observedLogged),
		Changed:  schema.LoggedAt(r.changedLogged),
		Desired:  schema.LoggedAt(r.desiredLogged),
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
	stored := schema.StorableText(string(*text))
	return &stored
}

func boolText(value *bool) *string {
	if value == nil {
		return nil
	}
	text := strconv.FormatBool(*value)
	return &text
}
