package hublog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// CommandRecords returns the payloads of command records stored at since or later, oldest first:
// the newest limit of them, which must be at least 1. While the hub's stream is away or incomplete,
// only the log's newest records are searched.
func (l *Logs) CommandRecords(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([][]byte, error) {
	complete, err := l.awaitView(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	if !complete {
		records, err := l.newestCommands(ctx, hub, since, limit)
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
		}
		return records, nil
	}
	from, err := l.firstSince(ctx, hub, since)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	request := jsapi.BatchRequest{
		From: from, Filter: streams.CommandSubject(hub), Messages: maxGet, Bytes: maxGetBytes,
	}
	var records [][]byte
	for {
		found, err := l.shard(hub).get(ctx, hub, request)
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
		}
		if len(found) == 0 {
			return records, nil
		}
		for _, message := range found {
			if !message.state {
				records = append(records, message.data)
			}
		}
		if over := len(records) - limit; over > 0 {
			records = slices.Delete(records, 0, over)
		}
		request.From = found[len(found)-1].seq + 1
	}
}
