package forward

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBatch is the most events of a request.
	maxBatch = 100
	// maxBatchBytes is the most bytes of events in a request of several.
	maxBatchBytes = 1 << 20
	// maxAnswer is how much of an answer is read so that its connection can be used again.
	maxAnswer = 64 << 10
	// maxText is how many bytes of an answer are logged.
	maxText = 200
	// maxRetryAfter bounds the wait that a receiver can ask for.
	maxRetryAfter = 24 * time.Hour
)

// ErrGone ends forwarding: the receiver answered 410, which says that it wants no more events.
var ErrGone = errors.New("the receiver answered 410 Gone: it wants no more events")

// rejection is an answer other than 2xx.
type rejection struct {
	status int
	// text is the beginning of the answer.
	text string
	// location is that of a redirect.
	location string
	// retryAfter is how long the receiver asks to wait; zero if it does not.
	retryAfter time.Duration
}

func (r *rejection) Error() string {
	text := fmt.Sprintf("the receiver answered %d %s", r.status, http.StatusText(r.status))
	if r.location != "" {
		return text + fmt.Sprintf(" to %q: redirects are not followed", r.location)
	}
	if r.text != "" {
		text += fmt.Sprintf(": %q", r.text)
	}
	return text
}

// Is reports that 410 matches ErrGone.
func (r *rejection) Is(target error) bool { return target == ErrGone && r.status == http.StatusGone }

// receiver posts events.
type receiver struct {
	to        string
	secrets   []Secret
	batch     bool
	userAgent string
	timeout   time.Duration
	client    *http.Client
}

func newReceiver(cfg Config) *receiver {
	return &receiver{
		to: cfg.To, secrets: cfg.Secrets, batch: cfg.Batch, userAgent: cfg.UserAgent,
		timeout: cfg.Timeout,
		client: &http.Client{
			Transport: cfg.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// message is what is posted: the same in all attempts.
type message struct {
	id   string
	body []byte
}

// messageOf returns the message for events of one hub. Its id is that of no other message: the same
// events have the same id after a restart too, and other events have another.
func (r *receiver) messageOf(events []*entry) message {
	if !r.batch {
		return message{id: events[0].identity, body: events[0].body}
	}
	sum := sha256.New()
	bodies := make([][]byte, 0, len(events))
	for _, e := range events {
		sum.Write([]byte(e.identity + "\n"))
		bodies = append(bodies, e.body)
	}
	return message{
		id: events[0].hub + "/batch-" + hex.EncodeToString(sum.Sum(nil)[:16]),
		body: append(
			append([]byte(`{"data":[`), bytes.Join(bodies, []byte(","))...), "]}"...,
		),
	}
}

// post sends a message once. It returns nil if the receiver has taken it.
func (r *receiver) post(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeoutCause(
		ctx, r.timeout, fmt.Errorf("the receiver did not answer within %s", r.timeout),
	)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.to, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	now := time.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", r.userAgent)
	request.Header.Set("Webhook-Id", m.id)
	request.Header.Set("Webhook-Timestamp", timestamp(now))
	if len(r.secrets) > 0 {
		request.Header.Set("Webhook-Signature", signature(r.secrets, m.id, now, m.body))
	}
	response, err := r.client.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	defer response.Body.Close()
	// The status has decided: an answer that is cut off changes nothing.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	return &rejection{
		status:     response.StatusCode,
		text:       strings.ToValidUTF8(string(text[:min(len(text), maxText)]), ""),
		location:   response.Header.Get("Location"),
		retryAfter: retryAfter(response, now),
	}
}

// retryAfter returns the wait that the answers 429 and 503 ask for in seconds or with a date, and
// zero for other answers.
func retryAfter(response *http.Response, now time.Time) time.Duration {
	if response.StatusCode != http.StatusTooManyRequests &&
		response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := response.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), maxRetryAfter)
	}
	return 0
}
