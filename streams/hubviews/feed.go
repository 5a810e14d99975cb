package hubviews

import (
	"context"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// publishFeed publishes every record of the commits added on the feed of its hub's log, in order,
// until ctx ends. It does not wait for the views.
func (v *Views) publishFeed(ctx context.Context) error {
	msg := newMessage()
	for {
		c, ok := v.feed.next(ctx)
		if !ok {
			return nil
		}
		failed := 0
		for i := range c.Records {
			r := &c.Records[i]
			msg.set(r)
			jsapi.SetPublished(
				msg.Header, streams.HubStream(r.Hub), msg.Subject, r.Seq, r.Time,
			)
			msg.Subject = streams.FeedSubject(msg.Subject)
			if err := v.shardOf(r.Hub).nc.PublishMsg(&msg.Msg); err != nil {
				failed++
			}
		}
		v.cfg.Metrics.published.Add(float64(len(c.Records) - failed))
		if failed > 0 {
			v.cfg.Metrics.unpublished.Add(float64(failed))
			v.sometimes.Do(func() {
				v.cfg.Logger.Warn("feed of hub logs not published", "records", failed)
			})
		}
		v.backlog.done(c, 1)
	}
}
