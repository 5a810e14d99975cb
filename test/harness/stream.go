package harness

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Message is one block of a Server-Sent Events stream. A block without data is no event, but its id
// counts.
type Message struct {
	ID, Event, Data string
	// Comment is the text of the comment line before the block.
	Comment string
}

// Stream is an open event stream.
type Stream struct {
	Header http.Header
	// Messages receives every block. Ended is closed when the server has ended the stream.
	Messages chan Message
	Ended    chan struct{}
	Close    context.CancelFunc
}

// OpenStream opens a hub's event stream and reports failures to t. See Client.Stream.
func OpenStream(t testing.TB, c *Client, hub, lastEventID string) *Stream {
	t.Helper()
	return c.For(t).Stream("/hubs/"+hub+"/events/stream", lastEventID)
}

// Stream opens an event stream with positions, after the given cursor if it is not empty, and
// closes it when the test ends. Its first block is a position: then the stream has begun. header
// has names and values.
func (c *Client) Stream(path, lastEventID string, header ...string) *Stream {
	c.T.Helper()
	for {
		s, answer, err := c.TryStream(path, lastEventID, header...)
		if err != nil {
			c.T.Fatalf("stream %s: %v", path, err)
		}
		if s != nil {
			c.T.Cleanup(s.Close)
			return s
		}
		if answer.Status != http.StatusTooManyRequests {
			c.T.Fatalf(
				"stream %s: got %d %s, want an event stream", path, answer.Status, answer.Body,
			)
		}
		if err := AwaitRetryAfter(answer.Header); err != nil {
			c.T.Fatalf("stream %s: 429: %v", path, err)
		}
	}
}

// TryStream opens an event stream, which the caller must close. If the service answers something
// else, TryStream returns a nil stream and the answer.
func (c *Client) TryStream(
	path, lastEventID string, header ...string,
) (*Stream, Answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	address := c.Base + path + separator + "positions=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel()
		return nil, Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Key)
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	response, err := (&http.Client{Transport: c.HTTP.Transport}).Do(request)
	if err != nil {
		cancel()
		return nil, Answer{}, err
	}
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return nil, Answer{Status: response.StatusCode, Header: response.Header, Body: body}, err
	}
	s := &Stream{
		Header:   response.Header,
		Messages: make(chan Message, 1<<16),
		Ended:    make(chan struct{}),
		Close:    cancel,
	}
	go func() {
		defer close(s.Ended)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		var m Message
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case lines.Text() == "":
				s.Messages <- m
				m = Message{}
			case name == "":
				m.Comment = value
			case name == "id":
				m.ID = value
			case name == "event":
				m.Event = value
			case name == "data":
				m.Data = value
			}
		}
	}()
	return s, Answer{}, nil
}

// Next returns the next event of the stream. It fails the test if none arrives in time.
func (s *Stream) Next(t testing.TB, within time.Duration) Message {
	t.Helper()
	deadline := time.After(within)
	for {
		select {
		case m := <-s.Messages:
			if m.Data != "" {
				return m
			}
		case <-deadline:
			t.Fatalf("no event within %s", within)
		}
	}
}
