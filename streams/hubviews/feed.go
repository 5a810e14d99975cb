package hubviews

import (
	"context"

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

// publishFeed publishes records on the feed of their hub's log until ctx ends.
func (v *Views) publishFeed(ctx context.Context) error {
	msg := newMessage()
	for {
		entries, ok := v.feed.next(ctx)
		if !ok {
			return nil
		}
		failed := 0
		for _, e := range entries {
			r := e.record
			msg.set(r)
			if _, ok := msg.Header[logformat.HeaderState]; ok {
				msg.Header[logformat.HeaderState] = []string{""} // the feed's readers skip states
			}
			jsapi.SetPublished(
				msg.Header, streams.HubStream(r.Hub), msg.Subject, r.Seq, r.Time,
			)
			msg.Subject = streams.FeedSubject(msg.Subject)
			if err := v.shardOf(r.Hub).nc.PublishMsg(&msg.Msg); err != nil {
				failed++
			}
			v.backlog.done(e.commit, 1)
		}
		v.cfg.Metrics.published.Add(float64(len(entries) - failed))
		if failed > 0 {
			v.cfg.Metrics.unpublished.Add(float64(failed))
			v.sometimes.Do(func() {
				v.cfg.Logger.Warn("feed of hub logs not published", "records", failed)
			})
		}
	}
}
