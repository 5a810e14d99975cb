package statelog

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/shares"
)

// History returns the states of hubs at instants in the past. It is safe for concurrent use.
type History struct {
	logs      Logs
	retention time.Duration
	now       func() time.Time
	orgOf     func(domain.HubID) string
	// folds bounds the logs that are folded at the same time.
	folds *shares.Pool
}

// maxFolds is how many logs a History folds at the same time, for each organization half of what
// the others leave, and one of a key. maxWaiting is how many requests of an organization wait for
// that.
const maxFolds, maxWaiting = 4, 16

// NewHistory returns a History of logs that keep their records for that long. orgOf returns the
// organization that has a hub. A nil now means time.Now, and a nil registry reports nothing.
func NewHistory(
	logs Logs, retention time.Duration, orgOf func(domain.HubID) string, registry *shares.Registry,
	now func() time.Time,
) *History {
	if now == nil {
		now = time.Now
	}
	return &History{logs, retention, now, orgOf, shares.NewPool(registry, shares.PoolConfig{
		Name: "past_states", What: "past states are asked for",
		Of:     "API key",
		Limits: shares.Limits{Total: maxFolds, PerID: 1, Waiting: maxWaiting},
	})}
}

// StateAt returns the last reported state of a hub's devices at an instant, by the cloud's clock, to
// a key of the hub's organization: what was stored up to it counts. Errors: invalid_request, which
// names the parameter at, for an instant in the future or before the retention; not_found for a hub
// without an organization; rate_limited; and service_unavailable.
func (h *History) StateAt(
	ctx context.Context, key string, hub domain.HubID, at time.Time,
) (domain.PastHubState, error) {
	now := h.now()
	switch {
	case at.After(now):
		return domain.PastHubState{}, domain.Errorf(
			domain.CodeInvalidRequest, "at: must not be in the future",
		)
	case now.Sub(at) > h.retention:
		return domain.PastHubState{}, domain.Errorf(
			domain.CodeInvalidRequest, "at: must be within the last %s, as long as events are kept",
			domain.FormatDuration(h.retention),
		)
	}
	release, err := h.folds.Wait(ctx, shares.Spender{Org: h.orgOf(hub), ID: key})
	if err != nil {
		return domain.PastHubState{}, err
	}
	defer release()
	last, err := h.logs.LastSequence(ctx, hub)
	if err != nil {
		return domain.PastHubState{}, err
	}
	f, err := fold(ctx, h.logs, hub, last, at)
	if err != nil {
		return domain.PastHubState{}, err
	}
	past := domain.PastHubState{
		At: at, KnownFrom: knownFrom(f.known), Certain: f.Certain(), Channels: []domain.PastChannel{},
	}
	for _, d := range f.Devices {
		for _, c := range d.Channels {
			past.Channels = append(past.Channels, pastChannel(d, c, f.Certain() && d.Certain() && isSettled(c, at)))
		}
	}
	return past, nil
}

// pendingLimit is how long after a command its outcome may be pending before the hub is asked for
// it. The queries of package readmodel have it too.
const pendingLimit = 30 * time.Second

// isSettled reports whether the status of a channel is known at an instant.
func isSettled(c *devicestate.Channel, at time.Time) bool {
	return !c.Unsure && (c.Status != domain.ChannelPending || at.Sub(c.Logged.Desired) <= pendingLimit)
}

// pastChannel returns a channel in the form in which it is shown.
func pastChannel(d *devicestate.Device, c *devicestate.Channel, certain bool) domain.PastChannel {
	past := domain.PastChannel{
		DeviceID: d.ID, Manufacturer: d.Manufacturer, Model: d.Model,
		AvailableSince: known(d.AvailableSince), ChangedAt: known(c.ChangedAt),
		Basis: string(c.Basis), Certain: certain,
		Channel: domain.Channel{
			Key: c.Key, Endpoint: c.Endpoint, Kind: c.Kind, Unit: c.Unit, Readable: c.Readable,
			Writable: c.Writable, Capabilities: c.Capabilities, Available: c.Available,
			Value: c.Value, ObservedAt: shown(c.ObservedAt), Desired: c.Desired,
			DesiredAt: shown(c.DesiredAt), Status: c.Status,
		},
	}
	if d.Name != "" {
		past.Name = &d.Name
	}
	return past
}

// known returns nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// knownFrom returns the first instant from t on that the API can name, which has microseconds; nil
// for the zero time.
func knownFrom(t time.Time) *time.Time {
	if from := t.Truncate(time.Microsecond); from.Before(t) {
		t = from.Add(time.Microsecond)
	}
	return known(t)
}

// shown returns a time in the contract's format, nil for the zero time.
func shown(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := domain.FormatTime(t)
	return &text
}
