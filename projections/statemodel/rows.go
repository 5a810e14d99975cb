package statemodel

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
)

// rows are the rows that a flush writes, column by column.
type rows struct {
	hubs     hubRows
	devices  deviceRows
	channels channelRows
	// reshaped are the hubs whose rows of devices and channels are deleted before others are
	// written.
	reshaped []string
}

// add adds what has changed of a hub since the entry with the sequence flushed.
func (r *rows) add(id domain.HubID, h *devicestate.Hub, flushed uint64) {
	hub := string(id)
	if h.Reshaped > flushed {
		r.reshaped = append(r.reshaped, hub)
		flushed = 0
	}
	r.hubs.add(hub, h)
	for _, d := range h.Devices {
		if d.Seq > flushed {
			r.devices.add(hub, d)
		}
		for _, c := range d.Channels {
			if c.Seq > flushed {
				r.channels.add(hub, d.ID, c)
			}
		}
	}
}

// count returns the number of rows.
func (r *rows) count() int {
	return len(r.hubs.ids) + len(r.devices.hubs) + len(r.channels.hubs)
}

type hubRows struct {
	ids, epochs, forgotten                  []string
	seqs, eventSeqs, readAfter, readNumbers []int64
	doubts                                  marks
	at, since                               []time.Time
	wasRead, certain                        []bool
}

func (r *hubRows) add(id string, h *devicestate.Hub) {
	forgotten := []byte("[]")
	if len(h.Forgotten) > 0 {
		forgotten, _ = json.Marshal(h.Forgotten) // numbers only
	}
	r.ids = append(r.ids, id)
	r.epochs = append(r.epochs, h.EpochID.String())
	r.seqs = append(r.seqs, int64(h.Seq))
	r.eventSeqs = append(r.eventSeqs, int64(h.EventSeq))
	r.at = append(r.at, h.At)
	r.since = append(r.since, h.Since)
	r.doubts.add(h.Doubt)
	r.readAfter = append(r.readAfter, int64(h.ReadAfter))
	r.readNumbers = append(r.readNumbers, int64(h.ReadNumber))
	r.wasRead = append(r.wasRead, h.Read)
	r.forgotten = append(r.forgotten, string(forgotten))
	r.certain = append(r.certain, h.Certain())
}

// args returns the arguments of write_hubs.sql.
func (r *hubRows) args(journal int) []any {
	return []any{
		journal, r.ids, r.epochs, r.seqs, r.eventSeqs, r.at, r.since, r.doubts.seqs,
		r.doubts.numbers, r.readAfter, r.readNumbers, r.wasRead, r.forgotten, r.certain,
	}
}

type deviceRows struct {
	hubs, names, manufacturers, models                 []string
	ids, availableLogged, readAfter, readNumbers, seqs []int64
	doubts, named, reached, events                     marks
	available, wasRead, certain                        []bool
	availableSince                                     []*time.Time
}

func (r *deviceRows) add(hub string, d *devicestate.Device) {
	r.hubs = append(r.hubs, hub)
	r.ids = append(r.ids, d.ID)
	r.names = append(r.names, d.Name)
	r.manufacturers = append(r.manufacturers, d.Manufacturer)
	r.models = append(r.models, d.Model)
	r.available = append(r.available, d.Available)
	r.availableSince = append(r.availableSince, nullTime(d.AvailableSince))
	r.availableLogged = append(r.availableLogged, nanoseconds(d.AvailableLogged))
	r.doubts.add(d.Doubt)
	r.readAfter = append(r.readAfter, int64(d.ReadAfter))
	r.readNumbers = append(r.readNumbers, int64(d.ReadNumber))
	r.wasRead = append(r.wasRead, d.Read)
	r.named.add(d.Named)
	r.reached.add(d.Reached)
	r.events.add(d.Event)
	r.seqs = append(r.seqs, int64(d.Seq))
	r.certain = append(r.certain, d.Certain())
}

// args returns the arguments of write_devices.sql.
func (r *deviceRows) args() []any {
	return []any{
		r.hubs, r.ids, r.names, r.manufacturers, r.models, r.available, r.availableSince,
		r.availableLogged, r.doubts.seqs, r.doubts.numbers, r.readAfter, r.readNumbers, r.wasRead,
		r.named.seqs, r.named.numbers, r.reached.seqs, r.reached.numbers, r.events.seqs,
		r.events.numbers, r.seqs, r.certain,
	}
}

type channelRows struct {
	hubs, keys, kinds, statuses, bases             []string
	devices, endpoints, seqs                       []int64
	observedLogged, changedLogged, desiredLogged   []int64
	wasRead, readable, writable, available, unsure []bool
	units, capabilities, values, standing, desired []*string
	observedAt, changedAt, desiredAt               []*time.Time
	events                                         marks
}

func (r *channelRows) add(hub string, device int64, c *devicestate.Channel) {
	r.hubs = append(r.hubs, hub)
	r.devices = append(r.devices, device)
	r.keys = append(r.keys, c.Key)
	r.endpoints = append(r.endpoints, c.Endpoint)
	r.wasRead = append(r.wasRead, c.Read)
	r.kinds = append(r.kinds, c.Kind)
	r.units = append(r.units, c.Unit)
	r.readable = append(r.readable, c.Readable)
	r.writable = append(r.writable, c.Writable)
	r.capabilities = append(r.capabilities, nullText(c.Capabilities))
	r.available = append(r.available, c.Available)
	r.values = append(r.values, nullText(c.Value))
	r.standing = append(r.standing, standingText(c.Standing))
	r.observedAt = append(r.observedAt, nullTime(c.ObservedAt))
	r.changedAt = append(r.changedAt, nullTime(c.ChangedAt))
	r.desired = append(r.desired, nullText(c.Desired))
	r.desiredAt = append(r.desiredAt, nullTime(c.DesiredAt))
	r.statuses = append(r.statuses, string(c.Status))
	r.unsure = append(r.unsure, c.Unsure)
	r.bases = append(r.bases, string(c.Basis))
	r.observedLogged = append(r.observedLogged, nanoseconds(c.Logged.Observed))
	r.changedLogged = append(r.changedLogged, nanoseconds(c.Logged.Changed))
	r.desiredLogged = append(r.desiredLogged, nanoseconds(c.Logged.Desired))
	r.seqs = append(r.seqs, int64(c.Seq))
	r.events.add(c.Event)
}

// args returns the arguments of write_channels.sql.
func (r *channelRows) args() []any {
	return []any{
		r.hubs, r.devices, r.keys, r.endpoints, r.wasRead, r.kinds, r.units, r.readable, r.writable,
		r.capabilities, r.available, r.values, r.standing, r.observedAt, r.changedAt, r.desired,
		r.desiredAt, r.statuses, r.unsure, r.bases, r.observedLogged, r.changedLogged, r.desiredLogged, r.seqs,
		r.events.seqs, r.events.numbers,
	}
}

// marks are the columns of a devicestate.Mark.
type marks struct{ seqs, numbers []int64 }

func (m *marks) add(mark devicestate.Mark) {
	m.seqs = append(m.seqs, int64(mark.Seq))
	m.numbers = append(m.numbers, int64(mark.Number))
}

// nanoseconds returns a time of the log as it is stored.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// LoggedAt returns a time of the log from its stored form.
func LoggedAt(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// standingText returns alarms that stand as they are stored.
func standingText(standing []domain.StandingAlarm) *string {
	if len(standing) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(standing) // JSON and times that were read from JSON
	text := string(encoded)
	return &text
}

// Standing returns alarms that stand from their stored form.
func Standing(text *string) (standing []domain.StandingAlarm) {
	if text != nil {
		_ = json.Unmarshal([]byte(*text), &standing) // as standingText has written it
	}
	return standing
}

func nullText(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
