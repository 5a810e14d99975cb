package alarms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/alarmmail"
	"hubcloud/domain/attention"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/alarmstate"
)

const (
	// sendBatch is how many mails of an organization are queued before that is recorded, and
	// maxSent how many in one round: others must not wait.
	sendBatch = 20
	maxSent   = 200
	// silentInterval is the time between two questions for silent hubs, which are mailed about
	// after minutes, and silentTimeout bounds one.
	silentInterval = 15 * time.Second
	silentTimeout  = 2 * time.Second
	// orgTimeout bounds what a round does for one organization.
	orgTimeout = 30 * time.Second
)

// leader is what the process that mails knows.
type leader struct {
	*Notifier
	// records are the records of all organizations that have any.
	records map[string]*record
	// begun reports that mails have begun: later conditions of organizations without a record are
	// new.
	begun bool
	// silent are the hubs that reported no events when they were asked for last, at askedAt;
	// silentUnknown reports that not all of them are known.
	silent        map[domain.HubID]time.Time
	silentUnknown bool
	askedAt       time.Time
	// lost is why the process must load the records again.
	lost error
}

// record is a record with the revision of its stored form.
type record struct {
	*alarmmail.Record
	revision uint64
	// held reports that the last mail was not queued, which is logged once.
	held bool
}

// load reads the records.
func (n *Notifier) load(ctx context.Context) (*leader, error) {
	l := &leader{Notifier: n, records: map[string]*record{}}
	var err error
	if l.begun, err = n.cfg.Records.Begun(ctx); err != nil {
		return nil, err
	}
	all, err := n.cfg.Records.All(ctx)
	if err != nil {
		return nil, err
	}
	for org, stored := range all {
		decoded, err := alarmmail.Decode(stored.Content)
		if err != nil {
			return nil, fmt.Errorf("organization %s: %w", org, err)
		}
		l.records[org] = &record{Record: decoded, revision: stored.Revision}
	}
	return l, nil
}

// interrupt records that the conditions could not be observed.
func (l *leader) interrupt() {
	for _, r := range l.records {
		r.Interrupt()
	}
}

// round observes all hubs once, and mails what is to be mailed.
func (l *leader) round(ctx context.Context) error {
	byOrg, err := l.observe(ctx)
	if err != nil {
		l.interrupt()
		return err
	}
	for org := range byOrg {
		if l.records[org] == nil {
			l.records[org] = &record{Record: new(alarmmail.Record)}
		}
	}
	var errs []error
	followed, left, waiting := 0, 0, 0
	for _, org := range slices.Sorted(maps.Keys(l.records)) {
		r := l.records[org]
		if err := l.serve(ctx, org, r, byOrg[org]); err != nil && l.lost == nil {
			errs = append(errs, fmt.Errorf("organization %s: %w", org, err))
		}
		if l.lost != nil || ctx.Err() != nil {
			return l.lost
		}
		followed, left = followed+r.Followed(), left+r.Left()
		waiting += len(r.Outgoing())
	}
	l.metrics.followed.Set(float64(followed))
	l.metrics.left.Set(float64(left))
	l.metrics.waiting.Set(float64(waiting))
	if len(errs) == 0 && !l.begun {
		if err := l.cfg.Records.Begin(ctx); err != nil {
			return err
		}
		l.begun = true
	}
	return errors.Join(errs...)
}

// observe returns the hubs with conditions, and those with conditions that are followed, by
// organization.
func (l *leader) observe(
	ctx context.Context,
) (map[string]map[domain.HubID]alarmmail.Hub, error) {
	watched := map[domain.HubID][]int64{}
	for _, r := range l.records {
		for hub, devices := range r.Hubs() {
			watched[hub] = append(watched[hub], devices...)
		}
	}
	l.askForSilent(ctx)
	for hub := range l.silent {
		watched[hub] = append(watched[hub], 0)
	}
	hubs, err := l.cfg.Hubs.ObserveHubs(ctx, watched)
	if err != nil {
		return nil, err
	}
	byOrg := map[string]map[domain.HubID]alarmmail.Hub{}
	for i := range hubs {
		h := &hubs[i]
		if byOrg[h.OrgID] == nil {
			byOrg[h.OrgID] = map[domain.HubID]alarmmail.Hub{}
		}
		hub := hubOf(h, l.silent[h.ID])
		hub.SilenceUnknown = l.silentUnknown
		byOrg[h.OrgID][h.ID] = hub
	}
	return byOrg, nil
}

// askForSilent asks for the hubs that report no events, if they were not asked for lately.
func (l *leader) askForSilent(ctx context.Context) {
	now := time.Now()
	if now.Sub(l.askedAt) < silentInterval {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, silentTimeout)
	defer cancel()
	silent, err := l.cfg.SilentHubs(ctx)
	if err != nil {
		l.cfg.Logger.Debug("faults of hubs unknown", "error", err)
	}
	l.silent, l.silentUnknown, l.askedAt = silent, err != nil, now
}

// hubOf returns a hub as package alarmmail observes it.
func hubOf(h *readmodel.ObservedHub, silentSince time.Time) alarmmail.Hub {
	hub := alarmmail.Hub{
		State: attention.HubState{
			ID: h.ID, Status: h.Status, Since: h.Since, SilentSince: silentSince, Known: h.AddedAt,
			Devices: attention.Devices(h.States),
		},
		Certain: h.Certain, Doubtful: map[int64]bool{},
		Name: cmp.Or(h.Name, string(h.ID)), SiteID: h.SiteID, Site: h.Site,
	}
	for _, s := range h.States {
		if !s.Certain {
			hub.Doubtful[s.DeviceID] = true
		}
	}
	return hub
}

// serve decides and queues the mails of one organization.
func (l *leader) serve(
	ctx context.Context, org string, r *record, hubs map[domain.HubID]alarmmail.Hub,
) error {
	ctx, cancel := context.WithTimeout(ctx, orgTimeout)
	defer cancel()
	now := l.cfg.Now()
	if !l.begun && r.revision == 0 {
		r.Adopt(hubs, l.started)
	}
	changes := r.Observe(now, hubs)
	if len(changes) > 0 || r.Due(now, l.cfg.Rules) {
		state, err := l.cfg.Org(ctx, org)
		if err != nil {
			return err
		}
		for _, change := range changes {
			r.Apply(now, change, state, l.cfg.Rules)
		}
		r.Decide(now, state, l.cfg.Rules)
	}
	if err := l.store(ctx, org, r); err != nil {
		return err
	}
	return l.send(ctx, org, r)
}

// store stores a record that has changed.
func (l *leader) store(ctx context.Context, org string, r *record) error {
	if !r.Changed() {
		return nil
	}
	content, err := r.Encode()
	if err != nil {
		return err
	}
	revision, err := l.cfg.Records.Put(
		ctx, org, alarmstate.Record{Content: content, Revision: r.revision},
	)
	if errors.Is(err, alarmstate.ErrConflict) {
		// Another process, or a former try of this one whose answer was lost.
		l.lost = err
	}
	if err != nil {
		return err
	}
	r.revision = revision
	r.Stored()
	return nil
}

// send queues the mails that are decided and stored.
func (l *leader) send(ctx context.Context, org string, r *record) error {
	mails := r.Outgoing()
	if len(mails) == 0 {
		return nil
	}
	state, err := l.cfg.Org(ctx, org)
	if err != nil {
		return err
	}
	mails = mails[:min(len(mails), maxSent)]
	// The queue has room of its own for urgent mails: the others must not hold them up.
	urgent := slices.IndexFunc(mails, func(m alarmmail.Mail) bool { return !m.Urgent })
	if urgent < 0 {
		urgent = len(mails)
	}
	err = errors.Join(
		l.sendAll(ctx, org, r, state, mails[:urgent]), l.sendAll(ctx, org, r, state, mails[urgent:]),
	)
	if err != nil && !r.held {
		l.cfg.Logger.Warn(
			"alarm mails not queued; trying again", "org_id", org, "waiting", len(r.Outgoing()),
			"error", err,
		)
	}
	r.held = err != nil
	return err
}

// sendAll queues mails of one organization until one is not queued.
func (l *leader) sendAll(
	ctx context.Context, org string, r *record, state domain.OrgState, mails []alarmmail.Mail,
) error {
	for batch := range slices.Chunk(mails, sendBatch) {
		if l.lost != nil {
			return nil
		}
		var failed error
		for _, mail := range batch {
			if failed = l.cfg.Send(ctx, state, mail); failed != nil {
				break
			}
			r.Queued(mail.ID)
			l.metrics.mails.WithLabelValues(kindOf(mail)).Inc()
			l.cfg.Logger.Info(
				"alarm mail queued", "mail_id", mail.ID, "org_id", org, "member_id", mail.MemberID,
				"kind", kindOf(mail), "urgent", mail.Urgent, "notices", len(mail.Notices)+mail.More,
			)
		}
		if err := errors.Join(failed, l.store(ctx, org, r)); err != nil {
			return err
		}
	}
	return nil
}

// kindOf returns the value of the metrics' label kind.
func kindOf(mail alarmmail.Mail) string {
	switch {
	case mail.Digest:
		return "digest"
	case mail.Notices[0].Ended.IsZero():
		return "begin"
	}
	return "end"
}
