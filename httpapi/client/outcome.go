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
	// firstPoll is when the device is first read for the outcome of a command, and pollInterval how
	// often after that.
	firstPoll    = 2 * time.Second
	pollInterval = 5 * time.Second
	// eventGrace is how long to wait for the event once the device shows the outcome, and for the
	// device once there is an event: the event has the first report, the device only the last, but
	// only the hub knows whether the report is of this command.
	eventGrace = time.Second
)

// watch waits for one outcome. Its two sources run in goroutines, which Client.Outcome stops and
// waits for.
type watch struct {
	c     *Client
	sent  Sent
	group sync.WaitGroup
	// asked reports that the command's channel.desired event has come.
	asked bool
	// deviceErr and eventsErr are why the device, or the events, cannot be read.
	deviceErr, eventsErr error
}

// report is an event or a reading of the device.
type report struct {
	event  Event
	device Device
	err    error
}

// run waits for the outcome. ctx's error means that there is none yet.
func (w *watch) run(ctx context.Context, after string) (Outcome, error) {
	events, readings, poll := make(chan report), make(chan report), make(chan struct{}, 1)
	w.group.Go(func() { w.readEvents(ctx, after, events) })
	w.group.Go(func() { w.pollDevice(ctx, poll, readings) })
	next := time.NewTimer(firstPoll)
	defer next.Stop()
	grace := time.NewTimer(0)
	defer grace.Stop()
	<-grace.C
	var seen Outcome // the outcome that the device showed, while its event may still come
	var seenErr error
	for {
		select {
		case <-ctx.Done():
			return Outcome{Status: StatusPending}, ctx.Err()
		case n := <-events:
			outcome, err, decided := w.handleEvent(ctx, n)
			if decided {
				return outcome, err
			}
			if IsGap(n.err) || n.event.Type == EventDeviceUnavailable ||
				n.event.Type == EventChannelStatus || w.eventsErr != nil {
				next.Reset(0)
			}
		case <-next.C:
			select {
			case poll <- struct{}{}:
			default: // a reading is under way
			}
		case n := <-readings:
			next.Reset(pollInterval)
			outcome, err, decided := w.handleDevice(n)
			switch {
			case !decided:
			case w.eventsErr != nil,
				errors.Is(err, ErrFailed),
				errors.Is(err, ErrNotFound): // no event will follow
				return outcome, err
			case seen.Status == "":
				seen, seenErr = outcome, err
				grace.Reset(eventGrace)
			}
		case <-grace.C:
			return seen, seenErr
		}
		if w.deviceErr != nil && w.eventsErr != nil {
			return Outcome{Status: StatusPending}, w.eventsErr
		}
	}
}

// readEvents sends the hub's events, and last the error that ended them.
func (w *watch) readEvents(ctx context.Context, after string, to chan<- report) {
	for event, err := range w.c.Events(ctx, w.sent.HubID, after) {
		select {
		case to <- report{event: event, err: err}:
		case <-ctx.Done():
			return
		}
	}
}

// pollDevice reads the device whenever it is signaled.
func (w *watch) pollDevice(ctx context.Context, poll <-chan struct{}, to chan<- report) {
	for {
		select {
		case <-poll:
		case <-ctx.Done():
			return
		}
		n := w.readDevice(ctx)
		select {
		case to <- n:
		case <-ctx.Done():
			return
		}
	}
}

// readDevice reads the device once.
func (w *watch) readDevice(ctx context.Context) (n report) {
	_, n.err = w.c.try(
		ctx, call{method: http.MethodGet, path: deviceRoute(w.sent.HubID, w.sent.DeviceID)},
		nil, &n.device,
	)
	return n
}

// handleEvent handles an event, and reports whether it decides the outcome.
func (w *watch) handleEvent(
	ctx context.Context, n report,
) (outcome Outcome, err error, decided bool) {
	if n.err != nil && !IsGap(n.err) {
		w.eventsErr = n.err
		return outcome, n.err, errors.Is(n.err, ErrNotFound)
	}
	channel, desired := w.sent.Channel, w.sent.Channel.Desired
	var reported ChannelValue
	if n.event.DeviceID == nil || *n.event.DeviceID != w.sent.DeviceID ||
		!slices.Contains([]EventType{EventChannelDesired, EventChannelObserved}, n.event.Type) ||
		n.event.Decode(
			&reported,
		) != nil || reported.Key != channel.Key || reported.Endpoint != channel.Endpoint {
		return outcome, nil, false
	}
	switch {
	case n.event.Type == EventChannelDesired && reported.Value.meets(desired):
		w.asked = true
	case !w.asked: // the report belongs to an earlier command
	case n.event.Type == EventChannelDesired:
		return Outcome{Status: StatusPending}, ErrSuperseded, true
	default:
		outcome = Outcome{
			Status:     StatusDiverged,
			Value:      reported.Value,
			ObservedAt: n.event.Time,
			Event:      &n.event,
		}
		if reported.Value.meets(desired) {
			outcome.Status = StatusSynchronized
		}
		if outcome.Status = w.confirm(ctx, outcome); outcome.Status == StatusPending {
			return outcome, nil, false
		}
		outcome, err = outcome.verdict()
		return outcome, err, true
	}
	return outcome, nil, false
}

// confirm returns the status of the outcome that an event shows. It is what the hub says of the
// same report, if the hub answers soon: only the hub knows the resolution of a value, and that a
// report was to an earlier command that asked for the same, while this one is still pending.
func (w *watch) confirm(ctx context.Context, outcome Outcome) ChannelStatus {
	if w.deviceErr != nil {
		return outcome.Status
	}
	ctx, cancel := context.WithTimeout(ctx, eventGrace)
	defer cancel()
	n := w.readDevice(ctx)
	channel, ok := n.device.Channel(w.sent.Channel.Key, w.sent.Channel.Endpoint)
	asked := w.sent.Channel.DesiredAt
	switch {
	case n.err != nil || !ok || asked == nil || channel.DesiredAt == nil ||
		!channel.DesiredAt.Equal(*asked):
		return outcome.Status
	case channel.Status == StatusPending || channel.Status == StatusFailed,
		isOutcome(channel.Status) && channel.Value.meets(outcome.Value):
		return channel.Status
	}
	return outcome.Status // the device has reported again since
}

// isOutcome reports whether a channel with the status has no command under way.
func isOutcome(status ChannelStatus) bool {
	return status == StatusSynchronized || status == StatusDiverged || status == StatusFailed
}

// sameTime reports whether two times, which may be missing, are the same.
func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// handleDevice handles a reading of the device, and reports whether it decides the outcome.
func (w *watch) handleDevice(n report) (outcome Outcome, err error, decided bool) {
	if n.err != nil {
		apiErr, ok := errors.AsType[*Error](n.err)
		if ok && !repeatable(apiErr.Status) {
			w.deviceErr = n.err
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
	// A value from before the command is no outcome of it, whatever status the hub gives it.
	decided = channel.Status == StatusFailed ||
		isOutcome(channel.Status) && !sameTime(channel.ObservedAt, w.sent.Channel.ObservedAt)
	outcome, err = outcome.verdict()
	return outcome, err, decided
}
