package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// maxAnswer is the longest answer that is read, far above any of the API: an answer without end
// must not fill the memory.
const maxAnswer = 32 << 20

// call is one request of the API.
type call struct {
	method string
	// path is made by route.
	path  string
	query url.Values
	// body, when not nil, is sent as JSON.
	body any
	// idempotencyKey goes with a command, and with what makes something.
	idempotencyKey string
	// held is how long the service may hold the request on purpose.
	held time.Duration
	// once says that the request must not reach the service twice unless the service itself asked
	// for that: it is not repeated when the connection fails after it was sent.
	once bool
	// removes says that the request removes something: that it is not there is what was wanted,
	// when an earlier try may have removed it.
	removes bool
	// bare says that the contract does not promise a body in the answer.
	bare bool
}

// route makes the path of a call from its segments, of which the ids come from callers.
func route(segments ...string) string {
	var path strings.Builder
	for _, s := range segments {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(s))
	}
	return path.String()
}

// checkRoute refuses ids that make another path than was meant.
func checkRoute(path string) error {
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("%w: %q is no id", ErrInvalidRequest, segment)
		}
	}
	return nil
}

// do sends a call, again and again as Retry says, and reads the answer into `into` unless that is
// nil.
func (c *Client) do(ctx context.Context, what call, into any) (http.Header, error) {
	var body []byte
	if what.body != nil {
		var err error
		if body, err = json.Marshal(what.body); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidRequest, err)
		}
	}
	var header http.Header
	err := c.repeat(ctx, what, func() (err error) {
		header, err = c.try(ctx, what, body, into)
		return err
	})
	return header, err
}

// repeat tries a call, again and again as Retry says.
func (c *Client) repeat(ctx context.Context, what call, try func() error) error {
	if err := checkRoute(what.path); err != nil {
		return err
	}
	began := time.Now()
	lost := false // an answer was lost: the service may have done what was asked
	for tries := 0; ; tries++ {
		err := try()
		if err == nil || lost && what.removes && errors.Is(err, ErrNotFound) {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		wait, again := c.waitAfter(err, what, tries)
		if !again || c.exceeded(ctx, began, wait) {
			return err
		}
		lost = lost || mayHaveActed(err)
		c.log.WarnContext(
			ctx, "call is repeated", "method", what.method, "path", what.path, "error", err,
			"wait", wait,
		)
		if !sleep(ctx, wait) {
			return err
		}
	}
}

// connectionError is a try that got no answer, or no whole one.
type connectionError struct {
	// sent says that the service may have got the request.
	sent bool
	err  error
}

func (e *connectionError) Error() string { return e.err.Error() }
func (e *connectionError) Unwrap() error { return e.err }

// try sends a call once.
func (c *Client) try(ctx context.Context, what call, body []byte, into any) (http.Header, error) {
	limit := c.timeout + what.held
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	var sent atomic.Bool // atomic: the transport may still be at it when it has given up
	sent.Store(true)     // as far as is known, when HTTPClient's transport does not tell
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) },
		WroteHeaders: func() { sent.Store(true) },
	})
	response, err := c.request(ctx, what, body, nil)
	if err != nil {
		return nil, &connectionError{sent: sent.Load(), err: causeOf(ctx, err)}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &connectionError{
			sent: true,
			err: fmt.Errorf(
				"%s %s: the answer broke off: %w", what.method, what.path, causeOf(ctx, err),
			),
		}
	case len(content) > maxAnswer:
		return nil, fmt.Errorf(
			"%s %s: %w: more than %d bytes", what.method, what.path, ErrProtocol, maxAnswer,
		)
	case response.StatusCode >= 300:
		return nil, errorOf(response, content, time.Now())
	case into == nil || what.bare && len(content) == 0:
		return response.Header, nil
	}
	if err := json.Unmarshal(content, into); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", what.method, what.path, ErrProtocol, err)
	}
	return response.Header, nil
}

// request sends a request and gives the answer as it begins. more, when not nil, adds to its
// header.
func (c *Client) request(
	ctx context.Context, what call, body []byte, more func(http.Header),
) (*http.Response, error) {
	address := c.base + what.path
	if len(what.query) > 0 {
		address += "?" + what.query.Encode()
	}
	var content io.Reader
	if what.body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, what.method, address, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", c.userAgent)
	request.Header.Set("Accept", "application/json")
	if what.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if what.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", what.idempotencyKey)
	}
	if more != nil {
		more(request.Header)
	}
	return c.http.Do(request)
}

// causeOf puts the reason for which ctx was ended in the place of an error that only says that it
// was.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
