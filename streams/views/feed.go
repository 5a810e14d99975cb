package views

import (
	"context"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// queueForFeed queues records for the feed once their view has them or a repair will write them. The
// caller must hold the shard's lock, so that the records of a log stay in order.
func (s *shard) queueForFeed(entries ...entry) {
	if len(entries) > 0 {
		s.group.feed.push(entries)
	}
}

// followedTime is how long the feed counts as followed after its last subscriber got a record.
const followedTime = 10 * time.Second

// linger returns how long records are collected before they are sent.
func (g *group) linger() time.Duration {
	if g.cfg.HasSubscribers == nil ||
		time.Now().UnixNano()-g.publishedAt.Load() < int64(followedTime) {
		return g.cfg.FeedLinger
	}
	return g.cfg.Linger
}

// noteFollowed makes lingers short if somebody waits for a record of a feed that was not followed.
func (g *group) noteFollowed(s *shard, r *journal.Record) {
	if g.linger() > g.cfg.FeedLinger &&
		s.hasSubscribers(streams.FeedSubject(r.Kind.Subject(r.Hub))) {
		g.publishedAt.Store(time.Now().UnixNano())
		s.signal()
	}
}

// hasSubscribers reports whether somebody may get what is published to a subject.
func (s *shard) hasSubscribers(subject string) bool {
	has := s.group.cfg.HasSubscribers
	return has == nil || has(streams.ShardAccount(s.number), subject)
}

// publishFeed publishes records on the feed of their hub's log until ctx ends.
func (g *group) publishFeed(ctx context.Context) error {
	msg := newMessage()
	for {
		entries, ok := g.feed.next(ctx)
		if !ok {
			return nil
		}
		published, failed := 0, 0
		for _, e := range entries {
			r := e.record
			s := g.shardOf(r.Hub)
			subject := streams.FeedSubject(r.Kind.Subject(r.Hub))
			if !s.hasSubscribers(subject) {
				g.backlog.done(e.commit, 1)
				continue
			}
			msg.set(r)
			if _, ok := msg.Header[HeaderState]; ok {
				msg.Header[HeaderState] = []string{""} // the feed's readers skip states
			}
			jsapi.SetPublished(
				msg.Header, streams.HubStream(r.Hub), msg.Subject, r.Seq, r.Time,
			)
			g.publishedAt.Store(time.Now().UnixNano())
			msg.Subject = subject
			if err := s.nc.PublishMsg(&msg.Msg); err != nil {
				failed++
			}
			published++
			g.backlog.done(e.commit, 1)
		}
		g.metrics.published.Add(float64(published - failed))
		if failed > 0 {
			g.metrics.unpublished.Add(float64(failed))
			g.sometimes.Do(func() {
				g.cfg.Logger.Warn("feed of hub logs not published", "records", failed)
			})
		}
	}
}
