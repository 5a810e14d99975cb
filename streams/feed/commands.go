package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// CommandRecords returns the records of commands that were stored at since or later, oldest first:
// the newest limit of them, which must be at least 1. While the hub's stream is away or incomplete,
// only the log's newest records are searched.
func (l *Logs) CommandRecords(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.LoggedCommand, error) {
	end, intact, err := l.streamEnd(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	var records []domain.LoggedCommand
	if intact {
		records, err = l.streamedCommands(ctx, hub, end, since, limit)
		intact = err == nil || !jsapi.IsTemporary(err)
	}
	if !intact {
		records, err = l.newestCommands(ctx, hub, since, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	return records, nil
}

// streamedCommands is CommandRecords from the hub's stream, which has the log up to a sequence, and
// then from the journal.
func (l *Logs) streamedCommands(
	ctx context.Context, hub domain.HubID, end uint64, since time.Time, limit int,
) (records []domain.LoggedCommand, err error) {
	from, err := l.firstSince(ctx, hub, since)
	if err != nil {
		return nil, err
	}
	request := jsapi.BatchRequest{
		From: from, Filter: streams.CommandSubject(hub), Messages: maxGet, Bytes: maxGetBytes,
	}
	add := func(found []stored) {
		for _, m := range found {
			if !m.event && !m.state && !m.at.Before(since) {
				records = append(records, l.loggedCommand(hub, m.seq, m.at, m.data))
			}
		}
		if over := len(records) - limit; over > 0 {
			records = slices.Delete(records, 0, over)
		}
	}
	for request.From <= end {
		var found []stored
		err := l.askStream(ctx, hub, func(ctx context.Context) error {
			found, err = l.shard(hub).get(ctx, hub, request)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			break
		}
		add(found)
		request.From = found[len(found)-1].seq + 1
	}
	rest, err := l.unstreamed(ctx, hub, max(end, request.From-1))
	add(rest)
	return records, err
}

// loggedCommand returns the record of a command. Its position is empty for a hub without an
// organization, whose events cannot be read.
func (l *Logs) loggedCommand(
	hub domain.HubID, seq uint64, stored time.Time, payload []byte,
) domain.LoggedCommand {
	command := domain.LoggedCommand{Seq: seq, Payload: payload}
	if epoch, err := l.epoch(hub); err == nil {
		command.Position = cursorAt(epoch, seq, stored.UnixMilli()).String()
	}
	return command
}
