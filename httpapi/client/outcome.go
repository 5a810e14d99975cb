package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// firstLook is when the device is asked for the first time what came of a command, and
	// lookEvery how often after that.
	firstLook = 2 * time.Second
	lookEvery = 5 * time.Second
	// eventGrace is how long the event may still take when the device itself shows the outcome: the
	// event tells the first report, the device only the last.
	eventGrace = time.Second
)

// watch is the wait for one outcome. Its two sources run in goroutines of their own, which
// Client.Outcome ends and waits for.
type watch struct {
	c     *Client
	sent  Sent
	under sync.WaitGroup
	// asked says that the command's channel.desired has come.
	asked bool
	// blind and deaf hold why the device cannot be asked, and why the events cannot be read.
	blind, deaf error
}

// news is what an event, or a look at the device, has brought.
type news struct {
	event  Event
	device Device
	err    error
}

// run waits. The error of ctx means that there is no outcome yet.
func (w *watch) run(ctx context.Context, after string) (Outcome, error) {
	events, looks, look := make(chan news), make(chan news), make(chan struct{}, 1)
	w.under.Go(func() { w.listen(ctx, after, events) })
	w.under.Go(func() { w.ask(ctx, look, looks) })
	next := time.NewTimer(firstLook)
	defer next.Stop()
	grace := time.NewTimer(0)
	defer grace.Stop()
	<-grace.C
	var seen Outcome // what the device showed, while its event may still come
	var seenErr error
	for {
		select {
		case <-ctx.Done():
			return Outcome{Status: StatusPending}, ctx.Err()
		case n := <-events:
			outcome, err, settled := w.hear(n)
			if settled {
				return outcome, err
			}
			if IsGap(n.err) || n.event.Type == EventDeviceUnavailable || w.deaf != nil {
				next.Reset(0)
			}
		case <-next.C:
			select {
			case look <- struct{}{}:
			default: // one is under way, and another will follow
			}
		case n := <-looks:
			next.Reset(lookEvery)
			outcome, err, settled := w.see(n)
			switch {
			case !settled:
			case w.deaf != nil,
				errors.Is(err, ErrFailed),
				errors.Is(err, ErrNotFound): // no event follows
				return outcome, err
			case seen.Status == "":
				seen, seenErr = outcome, err
				grace.Reset(eventGrace)
			}
		case <-grace.C:
			return seen, seenErr
		}
		if w.blind != nil && w.deaf != nil {
			return Outcome{Status: StatusPending}, w.deaf
		}
	}
}

// listen sends the hub's events. An error that ends them comes last.
func (w *watch) listen(ctx context.Context, after string, to chan<- news) {
	for event, err := range w.c.Events(ctx, w.sent.HubID, after) {
		select {
		case to <- news{event: event, err: err}:
		case <-ctx.Done():
			return
		}
	}
}

// ask looks at the device whenever it is told to.
func (w *watch) ask(ctx context.Context, look <-chan struct{}, to chan<- news) {
	for {
		select {
		case <-look:
		case <-ctx.Done():
			return
		}
		var n news
		_, n.err = w.c.try(
			ctx, call{method: http.MethodGet, path: deviceRoute(w.sent.HubID, w.sent.DeviceID)},
			nil, &n.device,
		)
		select {
		case to <- n:
		case <-ctx.Done():
			return
		}
	}
}

// hear takes an event, and says whether it settles the matter.
func (w *watch) hear(n news) (outcome Outcome, err error, settled bool) {
	if n.err != nil && !IsGap(n.err) {
		w.deaf = n.err
		return outcome, n.err, errors.Is(n.err, ErrNotFound)
	}
	channel, desired := w.sent.Channel, w.sent.Channel.Desired
	var told ChannelValue
	if n.event.DeviceID == nil || *n.event.DeviceID != w.sent.DeviceID ||
		!slices.Contains([]EventType{EventChannelDesired, EventChannelObserved}, n.event.Type) ||
		n.event.Decode(
			&told,
		) != nil || told.Key != channel.Key || told.Endpoint != channel.Endpoint {
		return outcome, nil, false
	}
	switch {
	case n.event.Type == EventChannelDesired && told.Value.meets(desired):
		w.asked = true
	case !w.asked: // of an earlier command
	case n.event.Type == EventChannelDesired:
		return Outcome{Status: StatusPending}, ErrSuperseded, true
	default:
		outcome = Outcome{
			Status:     StatusDiverged,
			Value:      told.Value,
			ObservedAt: n.event.Time,
			Event:      &n.event,
		}
		if told.Value.meets(desired) {
			outcome.Status = StatusSynchronized
		}
		outcome, err = outcome.verdict()
		return outcome, err, true
	}
	return outcome, nil, false
}

// see takes a look at the device, and says whether it settles the matter.
func (w *watch) see(n news) (outcome Outcome, err error, settled bool) {
	if n.err != nil {
		refusal, refused := errors.AsType[*Error](n.err)
		if refused && !repeatable(refusal.Status) {
			w.blind = n.err
		}
		return outcome, n.err, errors.Is(n.err, ErrNotFound)
	}
	channel, ok := n.device.Channel(w.sent.Channel.Key, w.sent.Channel.Endpoint)
	asked := w.sent.Channel.DesiredAt
	if !ok || asked == nil || channel.DesiredAt == nil || channel.DesiredAt.Before(*asked) {
		return outcome, nil, false
	}
	if channel.DesiredAt.After(*asked) {
		return Outcome{Status: StatusPending}, ErrSuperseded, true
	}
	outcome = Outcome{Status: channel.Status, Value: channel.Value}
	if channel.ObservedAt != nil {
		outcome.ObservedAt = *channel.ObservedAt
	}
	settled = slices.Contains(
		[]ChannelStatus{StatusSynchronized, StatusDiverged, StatusFailed}, channel.Status,
	)
	outcome, err = outcome.verdict()
	return outcome, err, settled
}
