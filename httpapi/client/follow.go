package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// EventsOption changes how Client.Events reads.
type EventsOption func(*eventsOptions)

type eventsOptions struct {
	fromNow     bool
	polls       bool
	untilNewest bool
	onPosition  func(cursor string)
	giveUpAfter time.Duration
	stall       time.Duration
}

// FromNow begins with the next new event, when no cursor is given, and not with the oldest that is
// kept.
func FromNow() EventsOption { return func(o *eventsOptions) { o.fromNow = true } }

// LongPoll reads by long-polls: for networks on which a stream does not get through. The default is
// a stream of Server-Sent Events.
func LongPoll() EventsOption { return func(o *eventsOptions) { o.polls = true } }

// UntilNewest ends the sequence when every event that is there has been given. The default is to go
// on with new ones.
func UntilNewest() EventsOption { return func(o *eventsOptions) { o.untilNewest = true } }

// OnPosition is called with each cursor that the reading goes on from and that is no event's: a hub
// that is quiet for as long as events are kept has no event to go on from, but the service moves
// the position. It is called between two events, by the goroutine that ranges.
func OnPosition(do func(cursor string)) EventsOption {
	return func(o *eventsOptions) { o.onPosition = do }
}

// GiveUpAfter ends the sequence with the last error when nothing has come through for that long. By
// default the reading is taken up again for as long as the context lasts.
func GiveUpAfter(d time.Duration) EventsOption {
	return func(o *eventsOptions) { o.giveUpAfter = d }
}

// StallTimeout is how long a stream may be silent before it is taken for dead and begun anew; by
// default 75 s, in which two keepalives of the service come.
func StallTimeout(d time.Duration) EventsOption { return func(o *eventsOptions) { o.stall = d } }

const (
	defaultStall = 75 * time.Second
	// pollWait is how long a long-poll is held: a little less than the minute after which many
	// proxies lose patience.
	pollWait = 55 * time.Second
	// pollPage is how many events are read at once.
	pollPage = 500
	// lasted is how long a connection must have lasted for its end to be no sign of trouble.
	lasted = 10 * time.Second
	// maxMisread is how often the same place of the events may be garbage before that is told.
	maxMisread = 3
)

// Events gives a hub's events after a cursor, in order, and goes on with new ones until ctx ends or
// the loop is left. after is the cursor of the last event that was dealt with; "" begins with the
// oldest event that is kept, or with FromNow at the next new one. Scope events:read. Ranging over
// the sequence a second time reads the same events again.
//
// Connections that break, stall or end (the service ends streams after a quarter of an hour),
// restarts of the service and refusals that pass (429, 5xx) are dealt with: the reading goes on
// after the last event that was given. No cursor is given twice, also when the service delivers an
// event again after a reconnect; the last 16,384 are known.
//
// An error comes with each event that cannot be overlooked, and in the end:
//   - a *GapError beside a hub.events_skipped event: events are missing. The sequence goes on.
//   - ErrResync: it cannot go on from this cursor. Call Client.Resync.
//   - any other error ends it: a refusal that no waiting helps against, ErrProtocol, or the error
//     of ctx.
//
// A loop that returns at every error is therefore right, and one that wants to live through gaps
// asks IsGap.
func (c *Client) Events(
	ctx context.Context, hubID, after string, options ...EventsOption,
) iter.Seq2[Event, error] {
	o := eventsOptions{stall: defaultStall}
	for _, option := range options {
		option(&o)
	}
	return func(yield func(Event, error) bool) {
		f := follower{
			eventsOptions: o,
			c:             c,
			hub:           hubID,
			position:      after,
			seen:          newRecent(rememberedCursors),
			yield:         yield,
		}
		if err := f.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// follower is one range over a hub's events. It runs in the goroutine that ranges.
type follower struct {
	eventsOptions
	c   *Client
	hub string
	// position is where the next connection goes on; "" at the oldest event.
	position string
	seen     *recent
	yield    func(Event, error) bool

	// misses counts connections in a row that brought nothing, and misread those that brought
	// garbage; since is when they began.
	misses, misread int
	since           time.Time
	// pause is the wait before a new connection that the service asked for last.
	pause time.Duration
}

// What ends a connection beside its own errors.
const (
	// errLeft: the caller has left the loop.
	errLeft failure = "left"
	// errStalled: the stream was silent for too long.
	errStalled failure = "the event stream was silent for too long"
	// errEnded: the service has ended the stream.
	errEnded failure = "the service has ended the event stream"
	// errHurried: the service has answered a long-poll before its time without an event, as it does
	// when it is stopping.
	errHurried failure = "the service has cut a long-poll short"
)

// run connects again and again. nil: the sequence is at its end.
func (f *follower) run(ctx context.Context) error {
	if err := checkRoute(route("hubs", f.hub)); err != nil {
		return err
	}
	f.since = time.Now()
	for {
		began := time.Now()
		done, err := f.connect(ctx)
		switch {
		case errors.Is(err, errLeft) || done:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			continue
		}
		alive := time.Since(began)
		if errors.Is(err, errStalled) {
			alive -= f.stall
		}
		if alive >= lasted {
			f.progress()
		}
		wait, err := f.missed(err)
		if err != nil {
			return err
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// connect reads once: where to begin, a page when there is history to catch up with or that is how
// to follow, otherwise a stream.
func (f *follower) connect(ctx context.Context) (done bool, err error) {
	switch {
	case f.position == "" && f.fromNow:
		position, err := f.c.tryPosition(ctx, f.hub)
		if err == nil {
			f.move(position)
		}
		return false, err
	case f.untilNewest:
		more, err := f.page(ctx, 0)
		return err == nil && !more, err
	case f.polls:
		_, err := f.page(ctx, pollWait)
		return false, err
	case f.position == "": // a stream without a cursor would begin at the next new event
		_, err := f.page(ctx, 0)
		return false, err
	default:
		return false, f.stream(ctx)
	}
}

// page reads one page.
func (f *follower) page(ctx context.Context, wait time.Duration) (more bool, err error) {
	began := time.Now()
	var p EventPage
	if _, err := f.c.try(ctx, eventsCall(f.hub, EventQuery{
		After: f.position, Limit: pollPage, Wait: wait,
	}), nil, &p); err != nil {
		return false, err
	}
	if p.NextCursor == "" {
		return false, fmt.Errorf("%w: a page of events without next_cursor", ErrProtocol)
	}
	before := f.position
	for _, event := range p.Data {
		if err := f.deliver(event); err != nil {
			return false, err
		}
	}
	f.move(p.NextCursor)
	switch {
	case p.HasMore && (f.position == before || len(p.Data) == 0):
		return false, fmt.Errorf("%w: a page of events that has more does not go on", ErrProtocol)
	case len(p.Data) == 0 && wait > 0 && time.Since(began) < min(wait, time.Second):
		return false, errHurried
	}
	f.progress()
	return p.HasMore, nil
}

// deliver gives an event to the caller, unless it has been given.
func (f *follower) deliver(event Event) error {
	if event.Cursor == "" || event.Type == "" {
		return fmt.Errorf("%w: an event without cursor or type", ErrProtocol)
	}
	var beside error
	// read first: what cannot be read is not given, and must come again
	if event.Type == EventHubEventsSkipped {
		gap := &GapError{Event: event}
		if err := event.Decode(&gap.Skipped); err != nil {
			return err
		}
		beside = gap
	}
	if !f.seen.add(event.Cursor) {
		return nil // the position stays: it is at this event or after it
	}
	if !f.yield(event, beside) {
		return errLeft
	}
	f.position = event.Cursor
	f.progress()
	return nil
}

// move goes on to a position that is no new event's.
func (f *follower) move(position string) {
	if position == f.position || f.seen.has(position) {
		return
	}
	f.position = position
	f.told()
}

func (f *follower) told() {
	if f.onPosition != nil {
		f.onPosition(f.position)
	}
}

// progress notes that something came through.
func (f *follower) progress() { f.misses, f.misread, f.since = 0, 0, time.Now() }

// missed decides what the end of a connection means: the wait before the next one, or the error
// that ends the sequence.
func (f *follower) missed(err error) (time.Duration, error) {
	refusal, refused := errors.AsType[*Error](err)
	wait := f.c.backoff(f.misses)
	switch {
	case errors.Is(err, ErrCursorExpired):
		return 0, fmt.Errorf("%w: %w", ErrResync, err)
	case refused && !repeatable(refusal.Status):
		return 0, err
	case refused:
		wait = f.c.waitFor(refusal, f.misses)
	case errors.Is(err, ErrProtocol):
		if f.misread++; f.misread >= maxMisread {
			return 0, err
		}
	}
	wait = max(wait, f.pause)
	if f.giveUpAfter > 0 && time.Since(f.since)+wait > f.giveUpAfter {
		return 0, err
	}
	if f.misses++; f.misses > 1 || !errors.Is(err, errEnded) {
		f.c.log.Warn("events are taken up again", "hub_id", f.hub, "error", err, "wait", wait)
	}
	return wait, nil
}
