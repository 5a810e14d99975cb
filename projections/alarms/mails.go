package alarms

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/projections/readmodel"
	"hubcloud/streams/outbox"
)

const (
	// sendBatch is how many mails of an organization are queued before that is recorded, and
	// maxSent how many in one turn: others must not wait.
	sendBatch = 20
	maxSent   = 200
	// orgTimeout bounds a turn of one organization.
	orgTimeout = 30 * time.Second
)

// record is a record with the revision of its stored form.
type record struct {
	*attention.Record
	revision uint64
	// held reports that the last mail was not queued, which is logged once.
	held bool
	// served is when the organization had its last turn, and took how long that was.
	served time.Time
	took   time.Duration
	// followed, left and waiting are what the metrics count of it.
	followed, left, waiting int
}

// observe returns the hubs of an organization with conditions, and the hubs with conditions that
// are followed.
func (l *leader) observe(
	ctx context.Context, org string, r *record,
) (map[domain.HubID]attention.ObservedHub, error) {
	watched := r.Hubs()
	for hub := range l.silent[org] {
		watched[hub] = append(watched[hub], 0)
	}
	observed, err := l.cfg.Hubs.ObserveOrg(ctx, org, watched)
	if err != nil {
		return nil, err
	}
	hubs := make(map[domain.HubID]attention.ObservedHub, len(observed))
	for i := range observed {
		hub := hubOf(&observed[i], l.silent[org][observed[i].ID])
		hub.SilenceUnknown = l.silentUnknown
		hubs[observed[i].ID] = hub
	}
	return hubs, nil
}

// hubOf returns a hub as package attention observes it.
func hubOf(h *readmodel.ObservedHub, silentSince time.Time) attention.ObservedHub {
	hub := attention.ObservedHub{
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

// unobservedError is why the hubs of an organization could not be observed.
type unobservedError struct{ error }

func (e *unobservedError) Unwrap() error { return e.error }

// serve observes the hubs of one organization, and decides and queues its mails.
func (l *leader) serve(ctx context.Context, org string, r *record) error {
	ctx, cancel := context.WithTimeout(ctx, orgTimeout)
	defer cancel()
	hubs, err := l.observe(ctx, org, r)
	if err != nil {
		r.Interrupt()
		return &unobservedError{err}
	}
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
		ctx, org, outbox.AlarmRecord{Content: content, Revision: r.revision},
	)
	if errors.Is(err, outbox.ErrConflict) {
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
	urgent := slices.IndexFunc(mails, func(m attention.Mail) bool { return !m.Urgent })
	if urgent < 0 {
		urgent = len(mails)
	}
	err = errors.Join(
		l.sendAll(ctx, org, r, state, mails[:urgent]), l.sendAll(ctx, org, r, state, mails[urgent:]),
	)
	if err != nil && !r.held {
		l.cfg.Logger.Warn(
			"alarm mails not queued; trying again", "org_id", org, "waiting", r.Waiting(),
			"error", err,
		)
	}
	r.held = err != nil
	return err
}

// sendAll queues mails of one organization until one is not queued.
func (l *leader) sendAll(
	ctx context.Context, org string, r *record, state domain.OrgState, mails []attention.Mail,
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
func kindOf(mail attention.Mail) string {
	switch {
	case mail.Digest:
		return "digest"
	case mail.Notices[0].Ended.IsZero():
		return "begin"
	}
	return "end"
}
