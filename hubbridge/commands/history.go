package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// recordsPerCommand is the usual number of records of a command: one when it is sent, one when it
// is answered.
const recordsPerCommand = 2

// History returns the newest commands that were sent to a hub at since or later, about limit of
// them, oldest first, each once with its last outcome. Commands that were withdrawn are left out.
// The history is as long as the hub's events are kept.
func (c *Commands) History(
	ctx context.Context, hub domain.HubID, since time.Time, limit int,
) ([]domain.CommandRecord, error) {
	logged, err := c.logs.CommandRecords(ctx, hub, since, recordsPerCommand*limit)
	if err != nil {
		return nil, jsapi.Unavailable(err, "the hub's commands cannot be read at the moment")
	}
	var all []domain.CommandRecord
	for _, entry := range logged {
		r, at, err := parseRecord(entry.Payload)
		if err != nil {
			return nil, fmt.Errorf("commands of %s: decode record: %w", hub, err)
		}
		i := slices.IndexFunc(
			all, func(known domain.CommandRecord) bool { return known.ID == r.CommandID },
		)
		if i < 0 {
			i = len(all)
			all = append(all, domain.CommandRecord{
				ID: r.CommandID, OrgID: r.OrgID, HubID: r.HubID, DeviceID: r.DeviceID, Key: r.Key,
				Endpoint: r.Endpoint, Value: r.Value, Position: entry.Position,
				Seq: entry.Seq, At: at, Actor: r.Actor,
			})
		}
		if r.Type == recordAnswered {
			all[i].Outcome, all[i].Message = r.Outcome, r.Message
		}
	}
	return slices.DeleteFunc(all, func(command domain.CommandRecord) bool {
		return command.Outcome == outcomeWithdrawn
	}), nil
}

// Find returns the command with an ID that was sent to a hub, as long as the hub's events are kept.
// The error is not_found or service_unavailable.
func (c *Commands) Find(
	ctx context.Context, hub domain.HubID, id string,
) (domain.CommandRecord, error) {
	notFound := domain.Errorf(domain.CodeNotFound, "no such command")
	made, err := ulid.ParseStrict(id)
	if err != nil {
		return domain.CommandRecord{}, notFound
	}
	begun := made.Timestamp().Add(-time.Second)
	all, err := c.History(ctx, hub, begun, maxRecordsSearched)
	if err != nil {
		return domain.CommandRecord{}, err
	}
	for _, command := range all {
		if command.ID == id {
			return command, nil
		}
	}
	return domain.CommandRecord{}, notFound
}

func parseRecord(payload []byte) (r record, at time.Time, err error) {
	if err := json.Unmarshal(payload, &r); err != nil {
		return r, at, err
	}
	at, err = time.Parse(domain.TimeLayout, r.Time)
	return r, at, err
}
