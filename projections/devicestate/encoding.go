package devicestate

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxStateBytes is the most bytes of one record of state. Larger reads and snapshots are
	// divided into several.
	MaxStateBytes = 40 << 10
	// maxPlainBytes bounds a record of state before it is compressed.
	maxPlainBytes = 2 << 20
	// version is the version of the encoding. It is stored.
	version = 1
)

// record is the stored form of a read or of a part of a snapshot.
type record struct {
	V    int   `json:"v"`
	Read *Read `json:"read,omitempty"`
	// Snapshot has some of the devices, in part Part of Parts.
	Snapshot *Hub `json:"snapshot,omitempty"`
	Part     int  `json:"part,omitempty"`
	Parts    int  `json:"parts,omitempty"`
}

// parts are the parts of a snapshot that were folded so far.
type parts struct {
	hub  *Hub
	next int
}

// MarshalRead returns a read as one or more records of at most MaxStateBytes, to be stored in
// order. It fails if a single device is larger.
func MarshalRead(r Read) ([][]byte, error) {
	encoded, err := marshal(record{V: version, Read: &r})
	if err == nil && len(encoded) <= MaxStateBytes {
		return [][]byte{encoded}, nil
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		return nil, err
	}
	if len(r.Devices) < 2 {
		return nil, fmt.Errorf("read of one device: %w", errTooLarge)
	}
	first, second := r, r
	half := len(r.Devices) / 2
	first.Devices, first.Complete, first.All = r.Devices[:half], false, nil
	second.Devices = r.Devices[half:]
	before, err := MarshalRead(first)
	if err != nil {
		return nil, err
	}
	after, err := MarshalRead(second)
	return append(before, after...), err
}

// MarshalSnapshot returns the state as one or more records of at most MaxStateBytes. They must be
// stored in order and together, on condition that no event and no read follows h.Seq in the log:
// a fold that begins with the snapshot would lack it. It
// fails if a single device is larger.
func (h *Hub) MarshalSnapshot() ([][]byte, error) {
	for count := 1; ; count *= 2 {
		all, err := h.marshalParts(count)
		if !errors.Is(err, errTooLarge) || count > len(h.Devices) {
			return all, err
		}
	}
}

// marshalParts returns the state in a number of parts.
func (h *Hub) marshalParts(count int) ([][]byte, error) {
	all := make([][]byte, count)
	for i := range count {
		part := *h
		from, to := i*len(h.Devices)/count, (i+1)*len(h.Devices)/count
		part.Devices = h.Devices[from:to]
		encoded, err := marshal(record{V: version, Snapshot: &part, Part: i + 1, Parts: count})
		if err != nil {
			return nil, err
		}
		if len(encoded) > MaxStateBytes {
			return nil, errTooLarge
		}
		all[i] = encoded
	}
	return all, nil
}

var (
	errTooLarge = errors.New("the state is too large for a record")
	errVersion  = errors.New("the state is of another version of the program")
)

func marshal(r record) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // values stay as the hub wrote them
	if err := encoder.Encode(r); err != nil {
		return nil, err
	}
	if text.Len() > maxPlainBytes {
		return nil, errTooLarge
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

func unmarshal(state []byte) (r record, err error) {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(state)), maxPlainBytes+1))
	if err != nil {
		return r, err
	}
	if len(plain) > maxPlainBytes {
		return r, errTooLarge
	}
	if err := json.Unmarshal(plain, &r); err != nil {
		return r, err
	}
	if r.V != version {
		return r, errVersion
	}
	return r, r.validate()
}

// validate returns an error for a record that marshal does not write.
func (r *record) validate() error {
	switch {
	case (r.Read == nil) == (r.Snapshot == nil):
		return errors.New("must be a read or a snapshot")
	case r.Read != nil:
		return nil
	case r.Part < 1 || r.Part > r.Parts:
		return errors.New("part: must be 1 to the number of parts")
	}
	for i, d := range r.Snapshot.Devices {
		if d == nil || i > 0 && d.ID <= r.Snapshot.Devices[i-1].ID {
			return errors.New("devices: must be ordered by id")
		}
		for n, c := range d.Channels {
			if c == nil {
				return errors.New("channels: must not be null")
			}
			if n == 0 {
				continue
			}
			if last := d.Channels[n-1]; last.Key > c.Key ||
				last.Key == c.Key && last.Endpoint >= c.Endpoint {
				return errors.New("channels: must be ordered by key and endpoint")
			}
		}
	}
	return nil
}

// foldState folds a read or a part of a snapshot, whose sequence and time the state has already.
func (h *Hub) foldState(state []byte) error {
	r, err := unmarshal(state)
	if err != nil {
		return err
	}
	if r.Read != nil {
		h.parts = nil
		return h.foldRead(*r.Read)
	}
	if r.Part == 1 {
		h.parts = nil
		if !h.lacks(r.Snapshot) {
			return nil
		}
		h.parts = &parts{hub: r.Snapshot, next: 2}
	} else if h.parts != nil {
		if h.parts.next != r.Part || h.parts.hub.Seq != r.Snapshot.Seq {
			h.parts = nil
			return nil
		}
		h.parts.hub.Devices = append(h.parts.hub.Devices, r.Snapshot.Devices...)
		h.parts.next++
	}
	if h.parts == nil || r.Part < r.Parts {
		return nil
	}
	if h.orgFull {
		h.Omitted, h.parts = h.Seq, nil
		h.doubt(Mark{Seq: h.Seq})
		return nil
	}
	seq, at, former := h.Seq, h.At, h.Added-h.ChannelCount()
	*h = *h.parts.hub
	h.Seq, h.At, h.Reshaped, h.parts, h.Added = seq, at, seq, nil, former+h.ChannelCount()
	return nil
}

// lacks reports whether a snapshot has more than the state: the fold began in the middle of the
// log, and nothing that the snapshot lacks was folded since.
func (h *Hub) lacks(snapshot *Hub) bool {
	if h.EpochID.IsZero() {
		return true
	}
	return h.EpochID == snapshot.EpochID && snapshot.Since.Before(h.Since) &&
		h.EventSeq <= snapshot.Seq
}

// IsSnapshot reports whether a record of state is the first part of a snapshot, so that a fold can
// begin there.
func IsSnapshot(state []byte) bool {
	r, err := unmarshal(state)
	return err == nil && r.Snapshot != nil && r.Part == 1
}
