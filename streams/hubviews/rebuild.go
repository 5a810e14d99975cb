package hubviews

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
)

const (
	// maxSalvagedBytes bounds the messages that a rebuild holds in memory because the journal does
	// not have them.
	maxSalvagedBytes = 64 << 20
	// salvageBatch and salvageBytes bound one read of them.
	salvageBatch   = 512
	salvageBytes   = 1 << 20
	salvageTimeout = 10 * time.Second
)

// rebuild deletes the stream of a view and creates it anew. It returns the end of the new stream,
// from which extend continues with the journal's records. Messages that are older than the journal,
// from before there was one, are read before and written again.
func (r *repair) rebuild(ctx context.Context, damage string) (end uint64, err error) {
	hub := r.view.hub
	tip, _ := r.views.cfg.Index.Tip(hub)
	r.known = max(r.known, tip.Seq)
	oldest, err := r.views.cfg.Reader.Oldest(ctx, hub, tip, time.Time{})
	if errors.Is(err, journal.ErrGone) {
		oldest, err = r.known+1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	var older []*nats.Msg
	replicas := 1
	if !r.away {
		if older, err = r.older(ctx, oldest); err != nil {
			return 0, err
		}
		if len(older) > 0 {
			replicas = r.views.cfg.Replicas
		}
	}
	first := oldest - uint64(len(older))
	if len(older) == 0 {
		if first, err = r.firstAlive(ctx, oldest); err != nil {
			return 0, err
		}
	}
	r.views.cfg.Logger.Info(
		"hub log rebuilt from the journal", "hub_id", hub, "reason", damage, "first", first,
		"last", r.known, "older_messages", len(older),
	)
	r.views.step("delete")
	if err := r.api.Delete(ctx, streams.HubStream(hub)); err != nil {
		return 0, err
	}
	r.ttlAllowed = false
	if err := r.create(ctx, hub, first, replicas, len(older) > 0); err != nil {
		return 0, err
	}
	r.views.cfg.Metrics.rebuilds.Inc()
	r.mu.Lock()
	r.view.damaged = false
	r.mu.Unlock()
	if end, err = r.restore(ctx, first, older); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.salvaged = nil
	return end, nil
}

// older returns the messages that precede the journal's oldest record: those of a rebuild that
// failed, or those in the stream.
func (r *repair) older(ctx context.Context, oldest uint64) ([]*nats.Msg, error) {
	r.mu.Lock()
	salvaged, end := r.view.salvaged, r.view.salvagedEnd
	r.mu.Unlock()
	if len(salvaged) > 0 && end == oldest {
		return salvaged, nil
	}
	salvaged, err := r.salvage(ctx, oldest)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.salvaged, r.view.salvagedEnd = salvaged, oldest
	return salvaged, nil
}

// firstAlive returns the first sequence from oldest on whose record in the journal has not expired,
// or the one after all records.
func (r *repair) firstAlive(ctx context.Context, oldest uint64) (uint64, error) {
	for seq := oldest; seq <= r.known; {
		records, err := r.records(ctx, seq, r.known)
		if err != nil {
			return 0, err
		}
		for i := range records {
			if r.lifetime(records[i].Time) > 0 {
				return records[i].Seq, nil
			}
		}
		seq = records[len(records)-1].Seq + 1
	}
	return r.known + 1, nil
}

// salvage reads the messages of the stream that precede the sequence before without a gap and have
// not expired.
func (r *repair) salvage(ctx context.Context, before uint64) ([]*nats.Msg, error) {
	info, err := r.api.Info(ctx, streams.HubStream(r.view.hub))
	if errors.Is(err, jsapi.ErrNoStream) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	getter, err := r.api.NewBatchGetter(salvageBatch)
	if err != nil {
		return nil, err
	}
	defer getter.Close()
	var kept []*nats.Msg
	bytes := 0
	next := info.State.FirstSeq
	for next < before && next <= info.State.LastSeq {
		found, err := r.read(ctx, getter, next)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(m jsapi.Message) bool { return m.Sequence >= before })
		if len(found) == 0 {
			break
		}
		for _, m := range found {
			msg, expired, err := r.copyOf(m)
			if err != nil {
				return nil, fmt.Errorf(
					"hub log of %s: sequence %d: %w", r.view.hub, m.Sequence, err,
				)
			}
			if expired || m.Sequence != next {
				kept, bytes = nil, 0
			}
			next = m.Sequence + 1
			if expired {
				continue
			}
			kept, bytes = append(kept, msg), bytes+messageBytes(msg)
			for bytes > maxSalvagedBytes {
				bytes -= messageBytes(kept[0])
				kept = kept[1:]
			}
		}
	}
	if next < before {
		return nil, nil // the last ones are missing
	}
	return kept, nil
}

func messageBytes(msg *nats.Msg) int { return len(msg.Data) + recordOverhead }

// read reads messages of the stream from a sequence on; none at its end.
func (r *repair) read(
	ctx context.Context, getter *jsapi.BatchGetter, from uint64,
) ([]jsapi.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, salvageTimeout)
	defer cancel()
	err := getter.Request(jsapi.BatchRequest{
		Stream: streams.HubStream(r.view.hub), From: from, Messages: salvageBatch,
		Bytes: salvageBytes,
	})
	if err != nil {
		return nil, err
	}
	return getter.Collect(ctx)
}

// copyOf returns a message of the stream as it is to be written again.
func (r *repair) copyOf(m jsapi.Message) (msg *nats.Msg, expired bool, err error) {
	msg = &nats.Msg{
		Subject: jsapi.Field(m.Header, jsapi.HeaderSubject), Data: m.Data, Header: nats.Header{},
	}
	for name, values := range m.Header {
		if !strings.HasPrefix(name, "Nats-") { // those of the broker
			msg.Header[name] = values
		}
	}
	written, ok, err := logformat.Time(m.Header)
	if err == nil && !ok {
		written, err = time.Parse(time.RFC3339Nano, jsapi.Field(m.Header, jsapi.HeaderTime))
		msg.Header[logformat.HeaderTime] = []string{logformat.FormatTime(written)}
	}
	if err != nil {
		return nil, false, err
	}
	left := r.lifetime(written)
	if r.isLate(left) {
		jsapi.ExpireAfter(msg, left)
	}
	return msg, left <= 0, nil
}

// restore stores the messages that salvage has read, from the sequence first on.
func (r *repair) restore(
	ctx context.Context, first uint64, older []*nats.Msg,
) (end uint64, err error) {
	end = first - 1
	out, err := jsapi.NewPipeline(r.nc, pipelined)
	if err != nil {
		return end, err
	}
	defer out.Close()
	for _, msg := range older {
		if msg.Header.Get(jetstream.MsgTTLHeader) != "" {
			if err := r.allowTTL(ctx); err != nil {
				return end, err
			}
		}
		jsapi.ExpectEnd(msg, end)
		if err := out.Send(ctx, msg); err != nil {
			return end, err
		}
		end++
	}
	return end, out.Wait(ctx)
}
