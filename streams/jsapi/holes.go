package jsapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Hole is a range of messages that a stream has lost.
type Hole struct {
	From, To uint64
	// Before and After are when the messages before and behind the hole were stored; zero if there
	// are none.
	Before, After time.Time
}

// String names the hole's sequences and times.
func (h Hole) String() string {
	text := fmt.Sprintf("sequence %d", h.From)
	if h.To > h.From {
		text = fmt.Sprintf("sequences %d to %d", h.From, h.To)
	}
	switch {
	case !h.Before.IsZero() && !h.After.IsZero():
		text += fmt.Sprintf(", stored between %s and %s", moment(h.Before), moment(h.After))
	case !h.Before.IsZero():
		text += ", stored after " + moment(h.Before)
	case !h.After.IsZero():
		text += ", stored before " + moment(h.After)
	}
	return text
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Holes returns the holes of a stream of which messages are never removed, except the oldest ones
// if they expire, by what the stream's leader knows. It reads only the messages beside the holes.
func (a API) Holes(ctx context.Context, stream string, expires bool) ([]Hole, error) {
	info, err := a.Info(ctx, stream)
	if err != nil {
		return nil, err
	}
	var holes []Hole
	if first := info.State.FirstSeq; first > 1 && !expires {
		holes = append(holes, Hole{From: 1, To: first - 1})
	}
	if info.State.NumDeleted > 0 {
		deleted, err := a.Deleted(ctx, stream)
		if err != nil {
			return nil, err
		}
		for _, seq := range deleted {
			if n := len(holes); n > 0 && holes[n-1].To == seq-1 {
				holes[n-1].To = seq
			} else {
				holes = append(holes, Hole{From: seq, To: seq})
			}
		}
	}
	for i := range holes {
		if holes[i].Before, err = a.storedAt(ctx, stream, holes[i].From-1); err != nil {
			return nil, err
		}
		if holes[i].After, err = a.storedAt(ctx, stream, holes[i].To+1); err != nil {
			return nil, err
		}
	}
	return holes, nil
}

// storedAt returns when a message was stored; the zero time if there is none.
func (a API) storedAt(ctx context.Context, stream string, seq uint64) (time.Time, error) {
	if seq == 0 {
		return time.Time{}, nil
	}
	m, err := a.Get(ctx, stream, seq)
	if errors.Is(err, ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return m.Time, nil
}
