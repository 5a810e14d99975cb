package client

import (
	"cmp"
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
	reader      string
	beginTime   time.Time
	newest      int
	onCaughtUp  func()
	onState     func(State)
}

// FromNow starts at the next new event if no cursor is given. The default is the oldest stored
// event.
func FromNow() EventsOption { return func(o *eventsOptions) { o.fromNow = true } }

// Since starts with the events that the service stored at that time or later if no cursor is given.
func Since(t time.Time) EventsOption { return func(o *eventsOptions) { o.beginTime = t } }

// Last starts with the newest n events, up to 500, if no cursor is given.
func Last(n int) EventsOption { return func(o *eventsOptions) { o.newest = n } }

// OnCaughtUp is called once, when every event that was stored before the sequence began has been
// yielded. It is called between two events, in the goroutine that ranges.
func OnCaughtUp(do func()) EventsOption { return func(o *eventsOptions) { o.onCaughtUp = do } }

// FromStates begins a Feed with what every channel of the filter's hubs last reported: do is called
// with each, and every change since is yielded then, without a gap. It has no effect if a position
// is given, and on other sequences than Feed. If the connection breaks before the last state, the
// states begin anew. do is called in the goroutine that ranges. Scopes events:read and hubs:read.
func FromStates(do func(State)) EventsOption { return func(o *eventsOptions) { o.onState = do } }

// LongPoll reads by long-polling, for networks that block streams. The default is a stream of
// Server-Sent Events.
func LongPoll() EventsOption { return func(o *eventsOptions) { o.polls = true } }

// UntilNewest ends the sequence after the newest event. The default is to wait for new ones.
func UntilNewest() EventsOption { return func(o *eventsOptions) { o.untilNewest = true } }

// OnPosition is called with each new position that is not an event's cursor. The service moves the
// position of a hub that has had no events for as long as events are stored. OnPosition is called
// between two events, in the goroutine that ranges.
func OnPosition(do func(cursor string)) EventsOption {
	return func(o *eventsOptions) { o.onPosition = do }
}

// GiveUpAfter ends the sequence with the last error if nothing was received for that long. By
// default the sequence reconnects until the context ends.
func GiveUpAfter(d time.Duration) EventsOption {
	return func(o *eventsOptions) { o.giveUpAfter = d }
}

// AsReader sets the name of the reader, 1 to 64 printable characters. Client.Readers and the portal
// then show how far it has read.
func AsReader(name string) EventsOption { return func(o *eventsOptions) { o.reader = name } }

const (
	// stallTimeout is how long a stream may be silent before it is reconnected: enough for two
	// keepalives of the service.
	stallTimeout = 75 * time.Second
	// pollWait is how long a long-poll is held: a little less than the minute after which many
	// proxies give up.
	pollWait = 55 * time.Second
	// pollPage is how many events are read at once.
	pollPage = 500
	// lasted is how long a connection must have lasted for its end not to count as a failure.
	lasted = 10 * time.Second
	// maxMisread is how often invalid data may be read at the same position before that is an
	// error.
	maxMisread = 3
)

// Events yields a hub's events after a cursor, in order, and continues with new ones until ctx ends
// or the loop is left. after is the cursor of the last processed event; "" starts at the oldest
// stored event, or with FromNow at the next new one. Scope events:read. Ranging over the sequence
// again reads the same events.
//
// Events reconnects and resumes after the last event when a connection breaks, stalls or ends (the
// service ends streams after a quarter of an hour by default), and after restarts of the service
// and temporary errors (429, 5xx). No cursor is yielded twice, even if the service repeats an event
// after a reconnect; the last 16,384 are remembered.
//
// An error comes with an event that must not be overlooked, and at the end:
//   - a *GapError beside the events hub.events_skipped and hub.log_reset: events may be missing. The
//     sequence continues.
//   - ErrResync: the sequence cannot continue from this cursor. Call Client.Resync.
//   - any other error ends the sequence: an API error that retries do not help against,
//     ErrProtocol, or the error of ctx.
//
// A loop that returns at every error is therefore correct; one that continues after gaps checks
// IsGap.
func (c *Client) Events(
	ctx context.Context, hubID, after string, options ...EventsOption,
) iter.Seq2[Event, error] {
	o := optionsOf(options)
	return func(yield func(Event, error) bool) {
		c.follow(ctx, hubSource(hubID), after, o, func(event FeedEvent, err error) bool {
			return yield(event.Event, err)
		})
	}
}

// follow yields the events of a source after a position, and the error that ends them.
func (c *Client) follow(
	ctx context.Context, from source, after string, o eventsOptions,
	yield func(FeedEvent, error) bool,
) {
	from.reader = o.reader
	f := follower{
		eventsOptions: o,
		c:             c,
		from:          from,
		position:      after,
		seen:          newRecent(rememberedCursors),
		yield:         yield,
	}
	if err := f.run(ctx); err != nil && !errors.Is(err, errLeft) {
		yield(FeedEvent{}, err)
	}
}

// follower is one range over the events of a source. It runs in the goroutine that ranges.
type follower struct {
	eventsOptions
	c    *Client
	from source
	// position is where the next connection continues; "" is the oldest event.
	position string
	seen     *recent
	yield    func(FeedEvent, error) bool

	// misses counts consecutive connections that received nothing, misread those that received
	// invalid data; since is when the first of them began.
	misses, misread int
	since           time.Time
	// pause is the wait before the next connection that the service last asked for.
	pause time.Duration
}

func optionsOf(options []EventsOption) eventsOptions {
	var o eventsOptions
	for _, option := range options {
		option(&o)
	}
	return o
}

// Reasons why a connection ended, other than errors.
const (
	// errLeft: the caller left the loop.
	errLeft failure = "the loop was left"
	// errStalled: the stream was silent for too long.
	errStalled failure = "the event stream was silent for too long"
	// errEnded: the service ended the stream.
	errEnded failure = "the service has ended the event stream"
	// errHurried: the service answered a long-poll early and without an event, as it does when it
	// stops.
	errHurried failure = "the service ended a long-poll early"
)

// run connects again and again. It returns nil at the end of the sequence.
func (f *follower) run(ctx context.Context) error {
	if err := checkRoute(f.from.path); err != nil {
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
			alive -= stallTimeout
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

// connect reads from one connection: the position first if needed, then a page if there are old
// events or the sequence long-polls, otherwise a stream.
func (f *follower) connect(ctx context.Context) (done bool, err error) {
	switch {
	case f.beginsWithStates():
		return false, f.stream(ctx)
	case f.position == "" && f.fromNow:
		position, err := f.c.tryPosition(ctx, f.from)
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
	case f.position == "": // a stream without a cursor would start at the next new event
		_, err := f.page(ctx, 0)
		return false, err
	default:
		return false, f.stream(ctx)
	}
}

// page reads one page.
func (f *follower) page(ctx context.Context, wait time.Duration) (more bool, err error) {
	began := time.Now()
	var p FeedPage
	query := EventQuery{After: f.position, Limit: pollPage, Wait: wait}
	if f.position == "" {
		query.Since, query.Last = f.beginTime, f.newest
	}
	if _, err := f.c.try(ctx, f.from.pageCall(query), nil, &p); err != nil {
		return false, err
	}
	if p.NextCursor == "" {
		return false, fmt.Errorf("%w: a page of events without next_cursor", ErrProtocol)
	}
	before := f.position
	for i, event := range p.Data {
		switch {
		case !f.from.isFeed:
			event.Position = event.Cursor
		case i == len(p.Data)-1:
			event.Position = p.NextCursor
		}
		if err := f.deliver(event); err != nil {
			return false, err
		}
	}
	f.move(p.NextCursor)
	switch {
	case p.HasMore && (f.position == before || len(p.Data) == 0 && f.from.hubLog):
		// A page with a filter may have none of many events that the filter leaves out.
		return false, fmt.Errorf("%w: a page of events with has_more does not advance", ErrProtocol)
	case len(p.Data) == 0 && !p.HasMore && wait > 0 && time.Since(began) < min(wait, time.Second):
		return false, errHurried
	}
	f.progress()
	if !p.HasMore {
		f.caughtUp()
	}
	return p.HasMore, nil
}

// beginsWithStates reports whether the next connection begins with the last reported states.
func (f *follower) beginsWithStates() bool {
	return f.position == "" && f.onState != nil && f.from.isFeed
}

// caughtUp reports to the caller, once, that older events have all been yielded.
func (f *follower) caughtUp() {
	if f.onCaughtUp != nil {
		f.onCaughtUp()
		f.onCaughtUp = nil
	}
}

// deliver yields an event unless it has been yielded before.
func (f *follower) deliver(event FeedEvent) error {
	if event.Cursor == "" || event.Type == "" {
		return fmt.Errorf("%w: an event without cursor or type", ErrProtocol)
	}
	// Decode first: an event that cannot be decoded is not yielded and must be read again.
	beside, err := gapOf(event.Event)
	if err != nil {
		return err
	}
	// Several gaps can have the same cursor.
	if event.Type != EventFeedGap && !f.seen.add(f.from.identity(event.Event)) {
		return nil // the position is at this event or after it already
	}
	if !f.yield(event, beside) {
		return errLeft
	}
	f.position = cmp.Or(event.Position, f.position)
	f.progress()
	return nil
}

// move continues from a position that is not a new event's.
func (f *follower) move(position string) {
	if position == f.position || f.seen.has(position) {
		return
	}
	f.position = position
	f.reportPosition()
}

func (f *follower) reportPosition() {
	if f.onPosition != nil {
		f.onPosition(f.position)
	}
}

// progress records that something was received.
func (f *follower) progress() { f.misses, f.misread, f.since = 0, 0, time.Now() }

// missed decides what the end of a connection means: the wait before the next one, or the error
// that ends the sequence.
func (f *follower) missed(err error) (time.Duration, error) {
	apiErr, ok := errors.AsType[*Error](err)
	wait := f.c.backoff(f.misses)
	switch {
	case errors.Is(err, ErrCursorExpired):
		return 0, fmt.Errorf("%w: %w", ErrResync, err)
	case ok && !repeatable(apiErr.Status):
		return 0, err
	case ok:
		wait = f.c.waitFor(apiErr, f.misses)
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
		f.c.logger.Warn("event stream reconnecting", "path", f.from.path, "error", err, "wait", wait)
	}
	return wait, nil
}
