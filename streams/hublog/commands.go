package hublog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// CommandRecords returns the payloads of command records stored at since or later, oldest first:
// the newest limit of them, which must be at least 1. A hub without a stream has none.
func (l *Logs) CommandRecords(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([][]byte, error) {
	request := jsapi.BatchRequest{
		Since: since, Filter: streams.CommandSubject(hub), Messages: maxGet, Bytes: maxGetBytes,
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
			records = append(records, message.data)
		}
		if over := len(records) - limit; over > 0 {
			records = slices.Delete(records, 0, over)
		}
		request.Since, request.From = time.Time{}, found[len(found)-1].seq+1
	}
}

// AppendCommand stores the record of a command: its request or its outcome. Readers of events do
// not see the record. A call that is repeated after ErrOutcomeUnknown may store the record twice.
// AppendCommand returns the record's sequence.
func (l *Logs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (sequence uint64, err error) {
	return l.store(ctx, hub, []*nats.Msg{{Subject: streams.CommandSubject(hub), Data: payload}})
}
