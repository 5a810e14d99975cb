package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Disconnection is the end of a hub's connection.
type Disconnection struct {
	At time.Time
	// Reason is the broker's reason in lower case; empty when it gave none.
	Reason string
}

// Disconnections returns the first limit ends of the hub's connections since t, oldest first, in all
// epochs. A hub without a log has none.
func (l *Logs) Disconnections(
	ctx context.Context, hub domain.HubID, t time.Time, limit int,
) (ends []Disconnection, err error) {
	err = l.scan(ctx, hub, streams.CloudEventSubject(hub), t, func(m *stored) (more bool, err error) {
		if kind, err := payloadType(m.data); !m.event || err != nil || kind != domain.EventHubDisconnected {
			return true, nil // connected, or events skipped
		}
		var e struct {
			Data struct {
				Reason string `json:"reason"`
			} `json:"data"`
		}
		if err := json.Unmarshal(m.data, &e); err != nil {
			return false, fmt.Errorf("sequence %d: %w", m.seq, err)
		}
		ends = append(ends, Disconnection{At: m.at, Reason: e.Data.Reason})
		return len(ends) < limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	return ends, nil
}
