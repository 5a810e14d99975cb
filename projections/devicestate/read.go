package devicestate

import (
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// Read is what a hub answered when it was asked for its devices, or a part of it.
type Read struct {
	// After is the last sequence of the log before the hub was asked.
	After uint64 `json:"after"`
	// EpochID is the epoch of the log when the hub was asked: the events' up to After, or
	// one that has begun since.
	EpochID domain.EpochID `json:"epoch"`
	// Devices are devices with values.
	Devices []ReadDevice `json:"devices"`
	// LastEvent is the number of the last event that each answer of the read takes into account;
	// nil if the hub does not tell it.
	LastEvent *uint64 `json:"last_event,omitempty"`
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
	// LastEvent is the number of the last event that the answer takes into account; nil if the hub
	// does not tell it.
	LastEvent *uint64 `json:"last_event,omitempty"`
}

// ReadOf returns a device as its hub answered it.
func ReadOf(d domain.Device) ReadDevice {
	return ReadDevice{
		ID: d.ID, Name: d.Name, Manufacturer: d.Manufacturer, Model: d.Model, Channels: d.Channels,
		LastEvent: d.LastEvent,
	}
}

// answer is what decides whether an answer of a hub takes an event into account.
type answer struct {
	// after is the end of the log before the hub was asked.
	after uint64
	// last is the number of the last event in the answer; nil if the hub does not tell it.
	last *uint64
}

// number returns the number of the last event in the answer, 0 if it is not known.
func (a answer) number() uint64 {
	if a.last == nil {
		return 0
	}
	return *a.last
}

// has reports whether the answer takes an event into account. The hub knows best. Where it does not
// tell, an event that was not in the log when the hub was asked counts as newer than the answer: it
// may be older, but then the newer one follows it in the log.
func (a answer) has(m Mark) bool {
	if a.last != nil && m.Number > 0 {
		return m.Number <= *a.last
	}
	return m.Seq <= a.after
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
		*h = Hub{
			EpochID: r.EpochID, Seq: h.Seq, At: h.At, Since: h.At, Reshaped: h.Seq,
			logged: h.logged, orgFull: h.orgFull,
		}
	}
	h.EventSeq = h.Seq
	for i := range r.Devices {
		d := &r.Devices[i]
		if err := h.foldReadDevice(answer{r.After, d.LastEvent}, d); err != nil {
			return err
		}
	}
	if !r.Complete {
		return nil
	}
	all := answer{r.After, r.LastEvent}
	for _, d := range slices.Clone(h.Devices) {
		if !slices.Contains(r.All, d.ID) && d.isIn(all) {
			h.remove(d.ID)
		}
	}
	if all.has(h.Doubt) {
		h.Doubt = Mark{}
	}
	if h.Omitted <= r.After {
		h.Omitted = 0
	}
	h.Read, h.ReadAfter, h.ReadNumber = true, max(h.ReadAfter, r.After), all.number()
	h.Forgotten = slices.DeleteFunc(h.Forgotten, func(f Forgotten) bool { return all.has(f.Mark) })
	return nil
}

// isIn reports whether an answer takes all events about the device and its channels into account.
func (d *Device) isIn(a answer) bool {
	return a.has(d.Event) && !slices.ContainsFunc(d.Channels, func(c *Channel) bool {
		return !c.isIn(a)
	})
}

// isIn reports whether an answer takes all events about the channel into account. A hub that was
// asked later than before and has a lower number than then numbers its events anew.
func (c *Channel) isIn(a answer) bool {
	return a.has(c.Event) || c.Basis == BasisRead && c.Seq <= a.after
}

// foldReadDevice folds a device of a read.
func (h *Hub) foldReadDevice(a answer, r *ReadDevice) error {
	forgotten := slices.ContainsFunc(h.Forgotten, func(f Forgotten) bool {
		return f.ID == r.ID && !a.has(f.Mark)
	})
	if forgotten {
		return nil
	}
	d, _ := h.device(r.ID)
	if d == nil || d.Read && a.after < d.ReadAfter {
		return nil // there is a newer read
	}
	if a.has(d.Named) {
		d.Name = cleanText(r.Name)
	}
	d.Manufacturer, d.Model, d.Seq = cleanText(r.Manufacturer), cleanText(r.Model), h.Seq
	d.Read, d.ReadAfter, d.ReadNumber = true, a.after, a.number()
	if a.has(d.Doubt) {
		d.Doubt = Mark{}
	}
	for _, c := range slices.Clone(d.Channels) {
		listed := slices.ContainsFunc(r.Channels, func(other domain.Channel) bool {
			return other.Key == c.Key && other.Endpoint == c.Endpoint
		})
		if i, found := d.find(c.Key, c.Endpoint); found && !listed && a.has(c.Event) {
			d.Channels = slices.Delete(d.Channels, i, i+1)
			h.Reshaped = h.Seq
		}
	}
	available := len(r.Channels) == 0 || slices.ContainsFunc(
		r.Channels, func(c domain.Channel) bool { return c.Available },
	)
	useAvailable := a.has(d.Reached)
	if useAvailable && d.Available != available {
		d.Available, d.AvailableSince, d.AvailableLogged = available, time.Time{}, h.logged
	}
	for i := range r.Channels {
		if err := h.foldReadChannel(d, a, &r.Channels[i], useAvailable); err != nil {
			return err
		}
	}
	return nil
}

// foldReadChannel folds a channel of a read.
func (h *Hub) foldReadChannel(
	d *Device, a answer, r *domain.Channel, useAvailable bool,
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
	c, added := h.channel(d, r.Key, r.Endpoint)
	if c == nil || max(len(r.Value), len(r.Desired), len(r.Capabilities)) > maxValue {
		d.Doubt = d.Doubt.and(Mark{Seq: h.Seq})
		return nil
	}
	c.Read, c.Kind, c.Unit = true, cleanText(r.Kind), nil
	if r.Unit != nil {
		unit := cleanText(*r.Unit)
		c.Unit = &unit
	}
	c.Readable, c.Writable = r.Readable, r.Writable
	newer := !c.isIn(a)
	c.Capabilities, c.Seq = r.Capabilities, h.Seq
	if useAvailable || added {
		c.Available = r.Available
	}
	if newer {
		return nil
	}
	if a.last != nil {
		c.Event.Number = *a.last
	}
	changed := c.ObservedAt.IsZero() || !sameJSON(c.Value, r.Value)
	if changed {
		c.ChangedAt, c.Logged.Changed = observedAt, h.logged
	}
	if c.Logged.Observed.IsZero() || !c.ObservedAt.Equal(observedAt) {
		c.Logged.Observed = h.logged
	}
	if !c.DesiredAt.Equal(desiredAt) || !sameJSON(c.Desired, r.Desired) {
		c.Logged.Desired = h.logged
	}
	c.Value, c.ObservedAt = r.Value, observedAt
	c.Desired, c.DesiredAt, c.Status = r.Desired, desiredAt, r.Status
	c.Basis, c.Unsure = BasisRead, false
	if changed || c.Key != attention.AlarmChannel {
		h.stand(d, c)
	}
	return nil
}

// parseTime reads a time in domain.TimeLayout; the zero time for nil.
func parseTime(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, *text)
}
