package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// maxPause bounds the retry field of a stream.
const maxPause = time.Minute

// eventStream is an open stream of events.
type eventStream struct {
	body   io.Closer
	blocks *blockReader
}

// openStream opens a stream after a position, or with "" at the next new event. The stream lasts as
// long as ctx. If the stream is silent for stall, it calls cancel, which must be ctx's, with
// errStalled. With caughtUp the stream has a message once older events have all come, and with
// states it begins with the last reported states.
func (c *Client) openStream(
	ctx context.Context, cancel context.CancelCauseFunc, from source, position string,
	stall time.Duration, caughtUp, states bool,
) (*eventStream, error) {
	watchdog := time.AfterFunc(stall, func() { cancel(errStalled) })
	response, err := c.request(
		ctx,
		from.streamCall(caughtUp, states),
		nil,
		func(header http.Header) {
			header.Set("Accept", "text/event-stream")
			// Compression on the way would delay events.
			header.Set("Accept-Encoding", "identity")
			header.Set("Cache-Control", "no-cache")
			if position != "" {
				header.Set("Last-Event-ID", position)
			}
		},
	)
	if err == nil {
		if err = checkStream(response); err == nil {
			watchdog.Stop()
			watched := &watched{from: response.Body, watchdog: watchdog, stall: stall}
			return &eventStream{body: response.Body, blocks: newBlockReader(watched)}, nil
		}
		response.Body.Close()
	}
	watchdog.Stop()
	return nil, brokenOff(ctx, err)
}

// brokenOff returns the error of a connection for one that is neither an API error nor invalid
// data.
func brokenOff(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || errors.Is(err, ErrProtocol) {
		return err
	}
	return &connectionError{sent: true, err: causeOf(ctx, err)}
}

// checkStream rejects an answer that is not an event stream.
func checkStream(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		content, err := io.ReadAll(io.LimitReader(response.Body, maxBlock))
		if err != nil {
			return err
		}
		if response.StatusCode < 300 {
			return fmt.Errorf("%w: status %d for an event stream", ErrProtocol, response.StatusCode)
		}
		return errorOf(response, content, time.Now())
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil ||
		media != "text/event-stream" {
		return fmt.Errorf(
			"%w: an event stream of type %q", ErrProtocol, response.Header.Get("Content-Type"),
		)
	}
	return nil
}

// next returns the next block with an id or data. ctx is the stream's.
func (s *eventStream) next(ctx context.Context) (block, error) {
	b, err := s.blocks.next()
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	if err != nil {
		err = brokenOff(ctx, err)
	}
	return b, err
}

func (s *eventStream) close() { s.body.Close() }

// watched runs a watchdog while a read is under way: the time that the caller takes for an event
// does not count as silence of the stream.
type watched struct {
	from     io.Reader
	watchdog *time.Timer
	stall    time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.watchdog.Reset(w.stall)
	defer w.watchdog.Stop()
	return w.from.Read(p)
}

// stream reads one stream to its end and returns why it ended.
func (f *follower) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := f.c.openStream(
		ctx, cancel, f.from, f.position, stallTimeout, f.onCaughtUp != nil, f.beginsWithStates(),
	)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		b, err := s.next(ctx)
		if s.blocks.hasRetry {
			f.pause = min(s.blocks.retry, maxPause)
		}
		if err != nil {
			return err
		}
		if err := f.take(b); err != nil {
			return err
		}
	}
}

// unsendable reports whether an id cannot be the value of a header field.
func unsendable(id string) bool {
	return strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// take handles a block: an event or a position.
func (f *follower) take(b block) error {
	if unsendable(b.id) {
		return fmt.Errorf("%w: an event id that is not a valid header value: %q", ErrProtocol, b.id)
	}
	if !b.hasData {
		if b.id != "" { // an empty id would make the next connection start at new events
			f.move(b.id)
		}
		return nil
	}
	var event FeedEvent
	if err := json.Unmarshal(b.data, &event); err != nil {
		return fmt.Errorf("%w: an event that is not valid JSON: %w", ErrProtocol, err)
	}
	switch {
	case event.Type == eventState && f.onState != nil:
		var state State
		if err := event.Decode(&state); err != nil {
			return err
		}
		f.onState(state)
		f.progress()
		return nil
	case event.Type == eventSnapshotEnd:
		f.move(b.id)
		return nil
	case event.Type == eventCaughtUp:
		if b.id != "" {
			f.move(b.id)
		}
		f.caughtUp()
		return nil
	case f.from.isFeed && b.id == "":
		return fmt.Errorf("%w: the event %q of a feed has no id", ErrProtocol, event.Cursor)
	case f.from.isFeed:
		event.Position = b.id
	case b.hasID && b.id != event.Cursor:
		return fmt.Errorf("%w: the event %q has the id %q", ErrProtocol, event.Cursor, b.id)
	default:
		event.Position = event.Cursor
	}
	return f.deliver(event)
}
