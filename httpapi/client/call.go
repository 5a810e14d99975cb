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

// maxAnswer bounds how much of an answer is read. It is far above any answer of the API.
const maxAnswer = 32 << 20

// call is one request of the API.
type call struct {
	method string
	// path is built by route.
	path  string
	query parameters
	// body is sent as JSON; nil sends none.
	body any
	// idempotencyKey is sent with commands and with requests that create something.
	idempotencyKey string
	// reader is the name of a reader of events; "" for none.
	reader string
	// held is how long the service may hold the request open on purpose.
	held time.Duration
	// once reports that the request must not reach the service twice, unless the service asks for a
	// retry: it is not retried if the connection fails after it was sent.
	once bool
	// removes reports that the request removes something: not_found is a success if an earlier
	// attempt may have removed it.
	removes bool
	// bare reports that the contract does not promise a body in the answer.
	bare bool
}

// route builds a path from segments, some of which are ids from callers.
func route(segments ...string) string {
	var path strings.Builder
	for _, s := range segments {
		path.WriteByte('/')
		path.WriteString(url.PathEscape(s))
	}
	return path.String()
}

// checkRoute rejects ids that would change the path.
func checkRoute(path string) error {
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("%w: %q is not an id", ErrInvalidRequest, segment)
		}
	}
	return nil
}

// do sends a call, with retries, and decodes the answer into `into` unless that is nil.
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

// ask sends a call, with retries, and returns the decoded answer.
func ask[T any](ctx context.Context, c *Client, what call) (into T, err error) {
	_, err = c.do(ctx, what, &into)
	return into, err
}

// get reads what is at a path.
func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, call{method: http.MethodGet, path: path})
}

// create creates something. The request has an idempotency key: a retry creates nothing more.
func create[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return ask[T](ctx, c, call{
		method: http.MethodPost, path: path, body: body, idempotencyKey: NewIdempotencyKey(),
	})
}

// change changes what is at a path.
func change[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return ask[T](ctx, c, call{method: http.MethodPatch, path: path, body: body})
}

// remove removes what is at a path.
func (c *Client) remove(ctx context.Context, path string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path, removes: true}, nil)
	return err
}

// repeat sends a call, with retries.
func (c *Client) repeat(ctx context.Context, what call, try func() error) error {
	if err := checkRoute(what.path); err != nil {
		return err
	}
	began := time.Now()
	lost := false // an attempt without an answer: the service may have acted
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
		c.logger.WarnContext(
			ctx, "call is repeated", "method", what.method, "path", what.path, "error", err,
			"wait", wait,
		)
		if !sleep(ctx, wait) {
			return err
		}
	}
}

// connectionError is an attempt that got no answer, or part of one.
type connectionError struct {
	// sent reports that the service may have received the request.
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
	var sent atomic.Bool // atomic: the transport may still use it after Do returns
	sent.Store(true)     // assume the worst if the transport of HTTPClient does not report it
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
				"%s %s: the answer was cut off: %w", what.method, what.path, causeOf(ctx, err),
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

// request sends a request and returns the answer once its header has arrived. If more is not nil,
// it may add header fields.
func (c *Client) request(
	ctx context.Context, what call, body []byte, more func(http.Header),
) (*http.Response, error) {
	address := c.base + what.path
	if query := what.query.query(); len(query) > 0 {
		address += "?" + query.Encode()
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
	if what.reader != "" {
		request.Header.Set("Reader", what.reader)
	}
	if more != nil {
		more(request.Header)
	}
	return c.http.Do(request)
}

// causeOf returns the cause of ctx's end in place of an error that only says that ctx ended.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
