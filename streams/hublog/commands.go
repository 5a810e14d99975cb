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

// Commands gives the newest limit (1 or more) of the records about commands that were stored at
// since or later, oldest first, as AppendCommand got them. A hub without a log has none.
func (l *Logs) Commands(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([][]byte, error) {
	question := struct {
		From  *time.Time `json:"start_time,omitempty"`
		Seq   uint64     `json:"seq,omitempty"`
		For   string     `json:"next_by_subj"`
		Batch int        `json:"batch"`
		Bytes int        `json:"max_bytes"`
	}{For: streams.CommandSubject(hub), Batch: maxGet, Bytes: maxGetBytes}
	since = since.UTC()
	question.From = &since
	var records [][]byte
	for {
		request, err := json.Marshal(question)
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
		question.From, question.Seq = nil, found[len(found)-1].seq+1
	}
}
