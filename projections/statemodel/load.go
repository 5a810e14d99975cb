package statemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
)

// load reads the states of hubs from their rows in a schema. Hubs without rows are missing from the result.
func load(
	ctx context.Context, conn *pgx.Conn, schema string, ids []string,
) (map[domain.HubID]*devicestate.Hub, error) {
	hubs := make(map[domain.HubID]*devicestate.Hub, len(ids))
	if err := eachHub(ctx, conn, schema, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of hubs: %w", err)
	}
	if err := eachDevice(ctx, conn, schema, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of devices: %w", err)
	}
	if err := eachChannel(ctx, conn, schema, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of channels: %w", err)
	}
	return hubs, nil
}

func eachHub(
	ctx context.Context, conn *pgx.Conn, schema string, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, In(schema, loadHubs), ids)
	if err != nil {
		return err
	}
	var (
		id, epoch, forgotten            string
		seq, eventSeq, doubt, readAfter int64
		at, since                       time.Time
		wasRead                         bool
	)
	into := []any{
		&id, &epoch, &seq, &eventSeq, &at, &since, &doubt, &readAfter, &wasRead, &forgotten,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		h := &devicestate.Hub{
			Seq: uint64(seq), EventSeq: uint64(eventSeq), At: at.UTC(), Since: since.UTC(),
			Doubt: uint64(doubt), ReadAfter: uint64(readAfter), Read: wasRead,
		}
		if err := h.EpochID.UnmarshalText([]byte(epoch)); err != nil {
			return err
		}
		hubs[domain.HubID(id)] = h
		return json.Unmarshal([]byte(forgotten), &h.Forgotten)
	})
	return err
}

func eachDevice(
	ctx context.Context, conn *pgx.Conn, schema string, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, In(schema, loadDevices), ids)
	if err != nil {
		return err
	}
	var (
		hub                                                    string
		doubt, readAfter, nameSeq, availableSeq, seq, eventSeq int64
		since                                                  *time.Time
		d                                                      devicestate.Device
	)
	into := []any{
		&hub, &d.ID, &d.Name, &d.Manufacturer, &d.Model, &d.Available, &since, &doubt, &readAfter,
		&d.Read, &nameSeq, &availableSeq, &seq, &eventSeq,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		h := hubs[domain.HubID(hub)]
		if h == nil {
			return nil
		}
		added := d
		added.AvailableSince = timeOf(since)
		added.Doubt, added.ReadAfter = uint64(doubt), uint64(readAfter)
		added.NameSeq, added.AvailableSeq = uint64(nameSeq), uint64(availableSeq)
		added.Seq, added.EventSeq = uint64(seq), uint64(eventSeq)
		h.Devices = append(h.Devices, &added)
		return nil
	})
	return err
}

func eachChannel(
	ctx context.Context, conn *pgx.Conn, schema string, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, In(schema, loadChannels), ids)
	if err != nil {
		return err
	}
	var (
		hub                                      string
		device, seq, eventSeq                    int64
		capabilities, value, desired             *string
		observedAt, changedAt, desiredAt, readAt *time.Time
		c                                        devicestate.Channel
	)
	into := []any{
		&hub, &device, &c.Key, &c.Endpoint, &c.Read, &c.Kind, &c.Unit, &c.Readable, &c.Writable,
		&capabilities, &c.Available, &value, &observedAt, &changedAt, &desired, &desiredAt,
		&c.Status, &c.Basis, &readAt, &seq, &eventSeq,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		h := hubs[domain.HubID(hub)]
		if h == nil {
			return nil
		}
		d := h.Device(device)
		if d == nil {
			return nil
		}
		added := c
		added.Capabilities, added.Value, added.Desired = rawOf(capabilities), rawOf(value), rawOf(desired)
		added.ObservedAt, added.ChangedAt = timeOf(observedAt), timeOf(changedAt)
		added.DesiredAt, added.ReadAt = timeOf(desiredAt), timeOf(readAt)
		added.Seq, added.EventSeq = uint64(seq), uint64(eventSeq)
		d.Channels = append(d.Channels, &added)
		// A device's row is not written for the events of its channels.
		d.EventSeq = max(d.EventSeq, added.EventSeq)
		return nil
	})
	return err
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func rawOf(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
