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
	complete, err := l.awaitView(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	var records []domain.LoggedCommand
	if complete {
		records, err = l.streamedCommands(ctx, hub, since, limit)
		complete = err == nil || !jsapi.IsTemporary(err) || !l.isJournaled(hub)
	}
	if !complete {
		records, err = l.newestCommands(ctx, hub, since, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	return records, nil
}

// streamedCommands is CommandRecords from the hub's stream.
func (l *Logs) streamedCommands(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) (records []domain.LoggedCommand, err error) {
	from, err := l.firstSince(ctx, hub, since)
	if err != nil {
		return nil, err
	}
	request := jsapi.BatchRequest{
		From: from, Filter: streams.CommandSubject(hub), Messages: maxGet, Bytes: maxGetBytes,
	}
	for {
		var found []stored
		err := l.askStream(ctx, hub, func(ctx context.Context) error {
			found, err = l.shard(hub).get(ctx, hub, request)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return records, nil
		}
		for _, message := range found {
			if !message.state {
				records = append(records, l.loggedCommand(hub, message.seq, message.at, message.data))
			}
		}
		if over := len(records) - limit; over > 0 {
			records = slices.Delete(records, 0, over)
		}
		request.From = found[len(found)-1].seq + 1
	}
}

// loggedCommand returns the record of a command. Its position is empty for a hub without an
// organization, whose events cannot be read.
func (l *Logs) loggedCommand(
	hub domain.HubID, seq uint64, stored time.Time, payload []byte,
) domain.LoggedCommand {
	command := domain.LoggedCommand{Payload: payload}
	if epoch, err := l.epoch(hub); err == nil {
		command.Position = cursorAt(epoch, seq, stored.UnixMilli()).String()
	}
	return command
}
