package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Disconnection is the end of a hub's connection.
type Disconnection struct {
	At time.Time
	// Reason is the broker's reason in lower case; empty when it gave none.
	Reason string
}

// Disconnections returns the ends of the hub's connections since t, oldest first, in all epochs. It
// reads the cloud's first limit events since t, 1 to 512. A hub without a stream has none.
func (l *Logs) Disconnections(
	ctx context.Context, hub domain.HubID, t time.Time, limit int,
) ([]Disconnection, error) {
	limit = min(max(limit, 1), maxGet)
	end, _, err := l.streamEnd(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	from, err := l.firstSince(ctx, hub, t)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	found, err := l.shard(hub).get(ctx, hub, jsapi.BatchRequest{
		From: from, Filter: streams.CloudEventSubject(hub), Messages: limit,
	})
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	end = max(end, from-1)
	if n := len(found); n > 0 { // the stream may have got more since
		end = max(end, found[n-1].seq)
	}
	rest, err := l.unstreamed(ctx, hub, end)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	for _, m := range rest {
		kind, err := payloadType(m.data)
		if m.event && err == nil && strings.HasPrefix(kind, "hub.") && len(found) < limit {
			found = append(found, m)
		}
	}
	var ends []Disconnection
	for _, m := range found {
		if kind, err := payloadType(m.data); err != nil || kind != domain.EventHubDisconnected {
			continue // connected, or events skipped
		}
		var e struct {
			Data struct {
				Reason string `json:"reason"`
			} `json:"data"`
		}
		if err := json.Unmarshal(m.data, &e); err != nil {
			return nil, fmt.Errorf("hub log of %s: sequence %d: %w", hub, m.seq, err)
		}
		ends = append(ends, Disconnection{At: m.at, Reason: e.Data.Reason})
	}
	return ends, nil
}
