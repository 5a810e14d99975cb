package devicestate

import (
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
)

// Read is what a hub answered when it was asked for its devices, or a part of it.
type Read struct {
	// After is the last sequence of the log before the hub was asked.
	After uint64 `json:"after"`
	// EpochID is the epoch of the log when the hub was asked: that of the events up to After, or one
	// that has begun since.
	EpochID domain.EpochID `json:"epoch"`
	// Devices are devices with values.
	Devices []ReadDevice `json:"devices"`
	// Complete is set with the last part of a read. All are then the ids of all devices that the
	// hub has.
	Complete bool    `json:"complete,omitempty"`
	All      []int64 `json:"all,omitempty"`
}

// ReadDevice is a device in a hub's answer.
type ReadDevice struct {
	ID           int64            `json:"id"`
	Name         string           `json:"name"`
	Manufacturer string           `json:"manufacturer"`
	Model        string           `json:"model"`
	Channels     []domain.Channel `json:"channels"`
}

// ReadOf returns a device as its hub answered it.
func ReadOf(d domain.Device) ReadDevice {
	return ReadDevice{
		ID: d.ID, Name: d.Name, Manufacturer: d.Manufacturer, Model: d.Model, Channels: d.Channels,
	}
}

// foldRead folds a read, whose sequence and time the state has already.
func (h *Hub) foldRead(r Read) error {
	if r.After >= h.Seq {
		return errors.New("after: must be before the read")
	}
	switch {
	case r.EpochID == h.EpochID:
	case h.EpochID.IsZero():
		h.EpochID, h.Since = r.EpochID, h.At
	case h.EventSeq > r.After:
		return nil // the epoch of the state began after the hub was asked
	default:
		// An epoch begins without an event, and the hub may have nothing to report since.
		*h = Hub{EpochID: r.EpochID, Seq: h.Seq, At: h.At, Since: h.At, Reshaped: h.Seq}
	}
	h.EventSeq = h.Seq
	for i := range r.Devices {
		if err := h.foldReadDevice(r.After, &r.Devices[i]); err != nil {
			return err
		}
	}
	if !r.Complete {
		return nil
	}
	for _, d := range slices.Clone(h.Devices) {
		if !slices.Contains(r.All, d.ID) && d.EventSeq <= r.After {
			h.remove(d.ID)
		}
	}
	h.Read, h.ReadAfter = true, max(h.ReadAfter, r.After)
	h.Forgotten = slices.DeleteFunc(h.Forgotten, func(f Forgotten) bool { return f.Seq <= r.After })
	return nil
}

// foldReadDevice folds a device of a read that was asked for when the log ended with after.
func (h *Hub) foldReadDevice(after uint64, r *ReadDevice) error {
	forgotten := slices.ContainsFunc(h.Forgotten, func(f Forgotten) bool {
		return f.ID == r.ID && f.Seq > after
	})
	if forgotten {
		return nil
	}
	d, _ := h.device(r.ID)
	if d == nil {
		return nil
	}
	if d.NameSeq <= after {
		d.Name = cleanText(r.Name)
	}
	d.Manufacturer, d.Model, d.Seq = cleanText(r.Manufacturer), cleanText(r.Model), h.Seq
	d.Read, d.ReadAfter = true, max(d.ReadAfter, after)
	for _, c := range slices.Clone(d.Channels) {
		listed := slices.ContainsFunc(r.Channels, func(other domain.Channel) bool {
			return other.Key == c.Key && other.Endpoint == c.Endpoint
		})
		if i, found := d.find(c.Key, c.Endpoint); found && !listed && c.EventSeq <= after {
			d.Channels = slices.Delete(d.Channels, i, i+1)
			h.Reshaped = h.Seq
		}
	}
	available := len(r.Channels) == 0 || slices.ContainsFunc(
		r.Channels, func(c domain.Channel) bool { return c.Available },
	)
	useAvailable := d.AvailableSeq <= after
	if useAvailable && d.Available != available {
		d.Available, d.AvailableSince = available, time.Time{}
	}
	for i := range r.Channels {
		if err := h.foldReadChannel(d, after, &r.Channels[i], useAvailable); err != nil {
			return err
		}
	}
	return nil
}

// foldReadChannel folds a channel of a read.
func (h *Hub) foldReadChannel(
	d *Device, after uint64, r *domain.Channel, useAvailable bool,
) error {
	observedAt, err := parseTime(r.ObservedAt)
	if err != nil {
		return err
	}
	desiredAt, err := parseTime(r.DesiredAt)
	if err != nil {
		return err
	}
	if !isKey(r.Key) {
		return errors.New("key: must be 1 to 64 printable characters")
	}
	c, added := d.channel(r.Key, r.Endpoint)
	if c == nil || max(len(r.Value), len(r.Desired), len(r.Capabilities)) > maxValue {
		d.Doubt = h.Seq
		return nil
	}
	c.Read, c.Kind, c.Unit = true, cleanText(r.Kind), nil
	if r.Unit != nil {
		unit := cleanText(*r.Unit)
		c.Unit = &unit
	}
	c.Readable, c.Writable = r.Readable, r.Writable
	c.Capabilities, c.Seq = r.Capabilities, h.Seq
	if useAvailable || added {
		c.Available = r.Available
	}
	newer := c.EventSeq > after // than the question; the answer may have it or not
	if newer && (c.ObservedAt.After(observedAt) || c.DesiredAt.After(desiredAt)) {
		return nil
	}
	if c.ObservedAt.IsZero() || !sameJSON(c.Value, r.Value) {
		c.ChangedAt = observedAt
	}
	c.Value, c.ObservedAt = r.Value, observedAt
	c.Desired, c.DesiredAt, c.Status = r.Desired, desiredAt, r.Status
	c.Basis, c.ReadAt = BasisRead, h.At
	return nil
}

// parseTime reads a time in domain.TimeLayout; the zero time for nil.
func parseTime(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, *text)
}
