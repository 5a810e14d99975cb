package hublog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// Commands returns the payloads of command records stored at since or later, oldest first: the
// newest limit of them, which must be at least 1. A hub without a stream has none.
func (l *Logs) Commands(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([][]byte, error) {
	query := struct {
		From  *time.Time `json:"start_time,omitempty"`
		Seq   uint64     `json:"seq,omitempty"`
		For   string     `json:"next_by_subj"`
		Batch int        `json:"batch"`
		Bytes int        `json:"max_bytes"`
	}{For: streams.CommandSubject(hub), Batch: maxGet, Bytes: maxGetBytes}
	since = since.UTC()
	query.From = &since
	var records [][]byte
	for {
		request, err := json.Marshal(query)
		if err != nil {
			return nil, err
		}
		found, err := l.shard(hub).get(ctx, hub, request, maxGet)
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: commands: %w", hub, err)
		}
		if len(found) == 0 {
			return records, nil
		}
		for _, message := range found {
			records = append(records, message.data)
		}
		if over := len(records) - limit; over > 0 {
			records = slices.Delete(records, 0, over)
		}
		query.From, query.Seq = nil, found[len(found)-1].seq+1
	}
}
