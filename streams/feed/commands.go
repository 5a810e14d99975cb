package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// CommandRecords returns the records of commands that were stored at since or later, oldest first:
// the newest limit of them, which must be at least 1. While the hub's stream is away or incomplete,
// only the log's newest records are searched.
func (l *Logs) CommandRecords(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) (records []domain.LoggedCommand, err error) {
	err = l.scan(ctx, hub, streams.CommandSubject(hub), since, func(m *stored) (more bool, err error) {
		if m.event || m.state || m.at.Before(since) {
			return true, nil
		}
		records = append(records, l.loggedCommand(hub, m))
		if len(records) == 2*limit {
			records = slices.Delete(records, 0, limit)
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: read command records: %w", hub, err)
	}
	return records[max(0, len(records)-limit):], nil
}

// loggedCommand returns the record of a command. Its position is empty for a hub without an
// organization, whose events cannot be read.
func (l *Logs) loggedCommand(hub domain.HubID, m *stored) domain.LoggedCommand {
	command := domain.LoggedCommand{Seq: m.seq, Payload: m.data}
	if epoch, err := l.epoch(hub); err == nil {
		command.Position = cursorAt(epoch, m.seq, m.at.UnixMilli()).String()
	}
	return command
}
