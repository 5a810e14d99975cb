package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// lostTries is how often a commit must be missing at a cluster's leader until it counts as
	// lost, so that another copy can answer meanwhile.
	lostTries = 10
	// lostSearch is the most commits among which the one before a lost commit is looked for.
	lostSearch = 10_000
)

// skipLost reports the commits from a sequence on that the journal has lost. The journal ends at
// end.
func (f *Follower) skipLost(ctx context.Context, seq, end uint64) error {
	if f.lostTries++; f.journal.cfg.Replicas > 1 && f.lostTries < lostTries {
		return fmt.Errorf("commit %d: %w", seq, jsapi.ErrNotFound)
	}
	f.lostTries = 0
	to := end
	next, err := f.journal.api.GetNext(
		ctx, streams.JournalStream(f.group), seq+1, streams.JournalSubject(f.group),
	)
	switch {
	case err == nil:
		to = next.Sequence - 1
	case !errors.Is(err, jsapi.ErrNotFound):
		return err
	}
	f.journal.cfg.Logger.Error(
		"commits of the journal are lost", "group", f.group, "from", seq, "to", to,
	)
	f.journal.metrics.lost.Add(float64(to - seq + 1))
	f.missing(seq, to)
	f.advance(to)
	return nil
}

// last returns the place with a hub's tip.
func (r *Reader) last(ctx context.Context, hub domain.HubID, tip Tip) (place, error) {
	at, err := r.load(ctx, hub, tip.Commit)
	if !errors.Is(err, ErrGone) {
		return at, err
	}
	behind := place{&Commit{Seq: tip.Commit + 1}, &Link{
		Hub: hub, First: tip.Seq + 1, Last: tip.Seq, Prev: tip.Commit, anchor: tip.anchor,
		eventsBefore: tip.Events,
	}}
	return r.overLost(ctx, behind, err)
}

// overLost returns, for a place whose former commit the journal has lost, what stands for the hub's
// records in it: hub.events_skipped in the place of the last, and records without content before.
// It returns the error gone if the former commit has expired, or if none before it is found.
func (r *Reader) overLost(ctx context.Context, at place, gone error) (place, error) {
	lost := at.link.Prev
	if lost < r.expired.Load() {
		return place{}, gone
	}
	info, err := r.journal.api.Info(ctx, streams.JournalStream(r.group))
	if err != nil {
		return place{}, groupError(r.group, err)
	}
	r.expired.Store(info.State.FirstSeq)
	if lost < info.State.FirstSeq || lost > info.State.LastSeq {
		return place{}, gone
	}
	oldest := max(info.State.FirstSeq, lost-min(lost, lostSearch))
	if at.link.anchor < lost {
		oldest = max(oldest, at.link.anchor)
	}
	for seq := lost - 1; seq >= oldest && seq > 0; seq-- {
		c, err := r.commit(ctx, seq)
		if errors.Is(err, jsapi.ErrNotFound) {
			continue
		}
		if err != nil {
			return place{}, groupError(r.group, err)
		}
		for i := range c.Links {
			if c.Links[i].Hub == at.link.Hub && c.Links[i].Last < at.link.First-1 {
				return standIn(place{c, &c.Links[i]}, at, lost), nil
			}
		}
	}
	return place{}, gone
}

// standIn returns what stands for the records between two places of a hub, in the lost commit
// before the second place. It is always the same for the same places, so that cursors stay.
func standIn(before, after place, lost uint64) place {
	link := &Link{
		Hub: after.link.Hub, First: before.link.Last + 1, Last: after.link.First - 1,
		Events: after.link.eventsBefore, eventsBefore: before.link.Events,
		Prev: before.commit.Seq, anchor: before.link.anchor, number: before.link.number + 1,
	}
	if before.link.number == 0 {
		link.anchor = before.commit.Seq
	}
	records := make([]Record, link.Last-link.First+1)
	for i := range records {
		records[i] = Record{
			Hub: link.Hub, Seq: link.First + uint64(i), Kind: KindCommand, Payload: []byte(`{}`),
			Events: link.eventsBefore, Time: before.link.LastTime.Add(time.Duration(i + 1)),
			StandIn: true,
		}
	}
	last := &records[len(records)-1]
	link.LastTime, last.Events = last.Time, link.Events
	var known Record // the hub's last event before, with what is known of the events behind
	from, to := uint64(0), uint64(0)
	for i := range before.commit.Records {
		if r := &before.commit.Records[i]; r.Hub == link.Hub && r.Kind.IsEvent() {
			known, from = *r, r.Through+1
		}
	}
	for i := range after.commit.Records {
		if r := &after.commit.Records[i]; r.Hub == link.Hub && r.Kind.IsEvent() {
			if known.EpochID.IsZero() || r.EpochID != known.EpochID {
				known, from = *r, r.Through
				known.Through = 0
			}
			if to = r.Through; r.Kind == KindHubEvent {
				to--
			}
			break
		}
	}
	if !known.EpochID.IsZero() {
		last.Kind, link.CloudEvent = KindCloudEvent, last.Seq
		last.EpochID, last.OrgID = known.EpochID, known.OrgID
		if known.Through > 0 {
			last.OwnLog, last.Through = known.OwnLog, known.Through
		}
		last.Payload = fmt.Appendf(
			nil, `{"type":%q,"hub_id":%q,"device_id":null,"time":%q,"clock_trusted":true,`+
				`"data":{"from":%d,"to":%d}}`,
			domain.EventHubEventsSkipped, link.Hub, last.Time.UTC().Format(domain.TimeLayout), from,
			max(from, to),
		)
	}
	return place{&Commit{Seq: lost, Records: records, Links: []Link{*link}}, link}
}
