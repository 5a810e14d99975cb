package hubviews

import (
	"context"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
)

// settle has records published that their view has, or that are left to its repair. The caller must
// hold the lock of the view's shard, so that the records of a log stay in order.
func (v *Views) settle(entries ...entry) {
	if len(entries) > 0 {
		v.feed.push(entries)
	}
}

// followedTime is how long the feed counts as followed after its last subscriber got a record.
const followedTime = 10 * time.Second

// linger returns how long records are collected before they are sent.
func (v *Views) linger() time.Duration {
	if v.cfg.HasSubscribers == nil ||
		time.Now().UnixNano()-v.publishedAt.Load() < int64(followedTime) {
		return v.cfg.FeedLinger
	}
	return v.cfg.Linger
}

// hasSubscribers reports whether somebody may get what is published to a subject.
func (s *shard) hasSubscribers(subject string) bool {
	has := s.views.cfg.HasSubscribers
	return has == nil || has(streams.ShardAccount(s.number), subject)
}

// publishFeed publishes records on the feed of their hub's log until ctx ends.
func (v *Views) publishFeed(ctx context.Context) error {
	msg := newMessage()
	for {
		entries, ok := v.feed.next(ctx)
		if !ok {
			return nil
		}
		published, failed := 0, 0
		for _, e := range entries {
			r := e.record
			s := v.shardOf(r.Hub)
			subject := streams.FeedSubject(r.Kind.Subject(r.Hub))
			if !s.hasSubscribers(subject) {
				v.backlog.done(e.commit, 1)
				continue
			}
			msg.set(r)
			if _, ok := msg.Header[logformat.HeaderState]; ok {
				msg.Header[logformat.HeaderState] = []string{""} // the feed's readers skip states
			}
			jsapi.SetPublished(
				msg.Header, streams.HubStream(r.Hub), msg.Subject, r.Seq, r.Time,
			)
			v.publishedAt.Store(time.Now().UnixNano())
			msg.Subject = subject
			if err := s.nc.PublishMsg(&msg.Msg); err != nil {
				failed++
			}
			published++
			v.backlog.done(e.commit, 1)
		}
		v.cfg.Metrics.published.Add(float64(published - failed))
		if failed > 0 {
			v.cfg.Metrics.unpublished.Add(float64(failed))
			v.sometimes.Do(func() {
				v.cfg.Logger.Warn("feed of hub logs not published", "records", failed)
			})
		}
	}
}
