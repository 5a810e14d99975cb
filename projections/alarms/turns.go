package alarms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
)

const (
	// restFactor is how many times as long as its last turn an organization waits for the next: no
	// organization takes more than a fifth of the notifier's time.
	restFactor = 4
	// sweepFactor is after how many times Interval all organizations are observed, whatever was
	// announced.
	sweepFactor = 30
	// silentInterval is the time between two questions for silent hubs, which are mailed about
	// after minutes, and silentTimeout bounds one.
	silentInterval = 15 * time.Second
	silentTimeout  = 2 * time.Second
)

// leader is what the process that mails knows. Organizations have turns: first the ones with a
// hub that was announced or with a condition that is not settled, then, one by one, all the others.
type leader struct {
	*Notifier
	announced *announced
	// order has the organizations whose turn may come at once, and resting the others.
	order   *shares.Turns
	resting map[string]rest
	// sweep are the organizations that are left of the last look at all, of which the next one may
	// be served at sweepAt, and swept is the last one. The next look is at nextSweep.
	sweep              []string
	swept              string
	sweepAt, nextSweep time.Time
	// unseen are the organizations that were not observed since the process began to mail.
	unseen map[string]bool
	// records are the records of all organizations that have any.
	records map[string]*record
	// begun reports that mails have begun: later conditions of organizations without a record are
	// new.
	begun bool
	// silent are the hubs that reported no events when they were asked for last, at askedAt, by
	// organization; silentUnknown reports that not all of them are known.
	silent        map[string]map[domain.HubID]time.Time
	silentUnknown bool
	askedAt       time.Time
	// lost is why the process must load the records again.
	lost error
	// warn bounds the log lines about failures.
	warn rate.Sometimes
	// followed, left and waiting are the sums of all records.
	followed, left, waiting int
}

// rest is how long an organization waits before its turn may come, and whether it is then urgent.
type rest struct {
	until  time.Time
	urgent bool
}

// load reads the records.
func (n *Notifier) load(ctx context.Context) (*leader, error) {
	l := &leader{
		Notifier: n, announced: newAnnounced(), order: n.share.Another(),
		resting: map[string]rest{}, records: map[string]*record{},
		warn: rate.Sometimes{First: 1, Interval: schema.WarnInterval},
	}
	var err error
	if l.begun, err = n.cfg.Records.Begun(ctx); err != nil {
		return nil, err
	}
	all, err := n.cfg.Records.All(ctx)
	if err != nil {
		return nil, err
	}
	for org, stored := range all {
		decoded, err := attention.DecodeRecord(stored.Content)
		if err != nil {
			return nil, fmt.Errorf("organization %s: %w", org, err)
		}
		l.records[org] = &record{Record: decoded, revision: stored.Revision}
	}
	return l, nil
}

// run serves organizations in turns until the records are another process's.
func (l *leader) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := l.collect(ctx)
		if err == nil {
			if org, ok := l.next(time.Now()); ok {
				err = l.turn(ctx, org)
			} else {
				l.idle(ctx)
			}
		}
		if l.lost != nil {
			return l.lost
		}
		var unobserved *unobservedError
		if err == nil || ctx.Err() != nil {
			continue
		}
		l.metrics.failures.Inc()
		if !errors.Is(err, schema.ErrBuilding) {
			l.warn.Do(func() { l.cfg.Logger.Warn("alarm mails delayed", "error", err) })
		}
		if errors.As(err, &unobserved) {
			schema.Pause(ctx, l.cfg.Interval)
		}
	}
	return ctx.Err()
}

// collect marks the organizations whose hubs were announced or have become silent, and looks at all
// organizations from time to time.
func (l *leader) collect(ctx context.Context) error {
	hubs := l.announced.take()
	orgs, err := l.orgsOf(ctx, slices.Collect(maps.Keys(hubs)))
	if err != nil {
		for hub, urgent := range hubs {
			l.announced.add([]domain.HubID{hub}, urgent)
		}
		return err
	}
	for hub, org := range orgs {
		l.mark(org, hubs[hub])
	}
	if err := l.askForSilent(ctx); err != nil {
		return err
	}
	if len(l.sweep) > 0 || time.Now().Before(l.nextSweep) {
		return nil
	}
	all, err := l.cfg.Hubs.OrgsNeedingAttention(ctx)
	if err != nil {
		return &unobservedError{err}
	}
	for org, r := range l.records {
		if r.Followed() > 0 || r.Quiet() {
			all = append(all, org)
		}
	}
	slices.Sort(all)
	l.sweep, l.sweepAt = slices.Compact(all), time.Now()
	l.nextSweep = l.sweepAt.Add(sweepFactor * l.cfg.Interval)
	if l.unseen == nil {
		l.unseen = map[string]bool{}
		for _, org := range l.sweep {
			l.unseen[org] = true
		}
		return l.begin(ctx)
	}
	return nil
}

func (l *leader) orgsOf(
	ctx context.Context, hubs []domain.HubID,
) (map[domain.HubID]string, error) {
	if len(hubs) == 0 {
		return nil, nil
	}
	orgs, err := l.cfg.Hubs.OrgsOf(ctx, hubs)
	if err != nil {
		return nil, &unobservedError{err}
	}
	return orgs, nil
}

// mark makes an organization wait for its turn.
func (l *leader) mark(org string, urgent bool) {
	next := rest{urgent: urgent}
	if r := l.records[org]; r != nil {
		pause := restFactor * r.took
		if pause > l.cfg.Interval {
			l.order.HeldBack(shares.Spender{Org: org})
		}
		if !urgent {
			pause = max(pause, l.cfg.Interval)
		}
		next.until = r.served.Add(pause)
	}
	if former, waits := l.resting[org]; waits {
		next.urgent = urgent || former.urgent
		if former.until.Before(next.until) {
			next.until = former.until
		}
	}
	l.resting[org] = next
}

// next returns the organization whose turn it is; false if none may be served yet. The others go
// on though something is announced all the time.
func (l *leader) next(now time.Time) (org string, ok bool) {
	for org, rest := range l.resting {
		if !rest.until.After(now) {
			l.order.Add(shares.Spender{Org: org}, rest.urgent)
			delete(l.resting, org)
		}
	}
	left := len(l.sweep) > 0
	if !left || now.Before(l.sweepAt.Add(l.cfg.Interval)) {
		if s, ok := l.order.Next(); ok {
			return s.Org, true
		}
	}
	if !left || now.Before(l.sweepAt) {
		return "", false
	}
	l.swept, l.sweep = l.sweep[0], l.sweep[1:]
	return l.swept, true
}

// idle waits until an organization may be served, or hubs are announced.
func (l *leader) idle(ctx context.Context) {
	next := l.nextSweep
	if len(l.sweep) > 0 {
		next = l.sweepAt
	}
	pause := min(time.Until(next), time.Until(l.askedAt.Add(silentInterval)))
	for _, rest := range l.resting {
		pause = min(pause, time.Until(rest.until))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.announced.ready:
	}
}

// turn serves an organization.
func (l *leader) turn(ctx context.Context, org string) error {
	r := l.records[org]
	if r == nil {
		r = &record{Record: new(attention.Record)}
		l.records[org] = r
	}
	begun := time.Now()
	err := l.serve(ctx, org, r)
	r.served = time.Now()
	r.took = r.served.Sub(begun)
	l.order.Spend(shares.Spender{Org: org}, int64(r.took))
	l.metrics.seconds.Observe(r.took.Seconds())
	l.count(r)
	if org == l.swept {
		l.sweepAt = r.served
		if l.begun { // otherwise everybody waits for it
			l.sweepAt = r.served.Add(restFactor * r.took)
		}
	}
	if err != nil || !r.Settled() {
		l.mark(org, false)
	}
	if err != nil {
		return fmt.Errorf("organization %s: %w", org, err)
	}
	delete(l.unseen, org)
	return l.begin(ctx)
}

// count updates the metrics of an organization's record.
func (l *leader) count(r *record) {
	l.followed += r.Followed() - r.followed
	l.left += r.Left() - r.left
	l.waiting += r.Waiting() - r.waiting
	r.followed, r.left, r.waiting = r.Followed(), r.Left(), r.Waiting()
	l.metrics.followed.Set(float64(l.followed))
	l.metrics.left.Set(float64(l.left))
	l.metrics.waiting.Set(float64(l.waiting))
}

// begin records that mails have begun, once all organizations were observed.
func (l *leader) begin(ctx context.Context) error {
	if l.begun || l.unseen == nil || len(l.unseen) > 0 {
		return nil
	}
	if err := l.cfg.Records.Begin(ctx); err != nil {
		return err
	}
	l.begun = true
	return nil
}

// askForSilent asks for the hubs that report no events, if they were not asked for lately, and
// marks the organizations of those that began or ended to be silent.
func (l *leader) askForSilent(ctx context.Context) error {
	now := time.Now()
	if now.Sub(l.askedAt) < silentInterval {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, silentTimeout)
	hubs, unknown := l.cfg.SilentHubs(asking)
	cancel()
	if unknown != nil {
		l.cfg.Logger.Debug("faults of hubs unknown", "error", unknown)
	}
	orgs, err := l.orgsOf(ctx, slices.Collect(maps.Keys(hubs)))
	if err != nil {
		return err
	}
	silent := map[string]map[domain.HubID]time.Time{}
	for hub, org := range orgs {
		if silent[org] == nil {
			silent[org] = map[domain.HubID]time.Time{}
		}
		silent[org][hub] = hubs[hub]
	}
	for _, both := range []map[string]map[domain.HubID]time.Time{silent, l.silent} {
		for org := range both {
			if !maps.Equal(silent[org], l.silent[org]) || l.silentUnknown != (unknown != nil) {
				l.mark(org, false)
			}
		}
	}
	l.silent, l.silentUnknown, l.askedAt = silent, unknown != nil, now
	return nil
}
