package projector

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/schema"
)

var (
	//go:embed sql/load_reported_hubs.sql
	loadHubs string
	//go:embed sql/load_reported_devices.sql
	loadDevices string
	//go:embed sql/load_reported_channels.sql
	loadChannels string
)

// loadReported reads the states of hubs from their rows. Hubs without rows are missing from the
// result.
func loadReported(
	ctx context.Context, conn *pgx.Conn, ids []string,
) (map[domain.HubID]*devicestate.Hub, error) {
	hubs := make(map[domain.HubID]*devicestate.Hub, len(ids))
	if err := eachHub(ctx, conn, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of hubs: %w", err)
	}
	if err := eachDevice(ctx, conn, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of devices: %w", err)
	}
	if err := eachChannel(ctx, conn, ids, hubs); err != nil {
		return nil, fmt.Errorf("read the states of channels: %w", err)
	}
	return hubs, nil
}

func eachHub(
	ctx context.Context, conn *pgx.Conn, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, loadHubs, ids)
	if err != nil {
		return err
	}
	var (
		id, epoch, forgotten string
		read                 devicestate.Hub
	)
	into := []any{
		&id, &epoch, &read.Seq, &read.EventSeq, &read.At, &read.Since, &read.Doubt.Seq,
		&read.Doubt.Number, &read.ReadAfter, &read.ReadNumber, &read.Read, &forgotten,
		&read.Omitted,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		h := new(devicestate.Hub)
		*h = read
		h.At, h.Since = h.At.UTC(), h.Since.UTC()
		if err := h.EpochID.UnmarshalText([]byte(epoch)); err != nil {
			return err
		}
		hubs[domain.HubID(id)] = h
		return json.Unmarshal([]byte(forgotten), &h.Forgotten)
	})
	return err
}

func eachDevice(
	ctx context.Context, conn *pgx.Conn, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, loadDevices, ids)
	if err != nil {
		return err
	}
	var (
		hub    string
		logged int64
		since  *time.Time
		d      devicestate.Device
	)
	into := []any{
		&hub, &d.ID, &d.Name, &d.Manufacturer, &d.Model, &d.Available, &since, &logged,
		&d.Doubt.Seq, &d.Doubt.Number, &d.ReadAfter, &d.ReadNumber, &d.Read, &d.Named.Seq,
		&d.Named.Number, &d.Reached.Seq, &d.Reached.Number, &d.Event.Seq, &d.Event.Number, &d.Seq,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		h := hubs[domain.HubID(hub)]
		if h == nil {
			return nil
		}
		added := d
		added.AvailableSince, added.AvailableLogged = timeOf(since), schema.LoggedAt(logged)
		h.Devices = append(h.Devices, &added)
		return nil
	})
	return err
}

func eachChannel(
	ctx context.Context, conn *pgx.Conn, ids []string,
	hubs map[domain.HubID]*devicestate.Hub,
) error {
	rows, err := conn.Query(ctx, loadChannels, ids)
	if err != nil {
		return err
	}
	var (
		hub                                          string
		device                                       int64
		capabilities, value, standing, desired       *string
		observedAt, changedAt, desiredAt             *time.Time
		observedLogged, changedLogged, desiredLogged int64
		c                                            devicestate.Channel
	)
	into := []any{
		&hub, &device, &c.Key, &c.Endpoint, &c.Read, &c.Kind, &c.Unit, &c.Readable, &c.Writable,
		&capabilities, &c.Available, &value, &standing, &observedAt, &changedAt, &desired, &desiredAt,
		&c.Status, &c.Unsure, &c.Basis, &observedLogged, &changedLogged, &desiredLogged, &c.Seq, &c.Event.Seq,
		&c.Event.Number,
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
		added.Standing = schema.Standing(standing)
		added.ObservedAt, added.ChangedAt = timeOf(observedAt), timeOf(changedAt)
		added.DesiredAt = timeOf(desiredAt)
		added.Logged = domain.LoggedTimes{
			Observed: schema.LoggedAt(observedLogged), Changed: schema.LoggedAt(changedLogged),
			Desired: schema.LoggedAt(desiredLogged),
		}
		d.Channels = append(d.Channels, &added)
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
