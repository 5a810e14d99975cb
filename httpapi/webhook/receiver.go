package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer is how much of an answer is read so that its connection can be used again.
	maxAnswer = 64 << 10
	// maxText is how many bytes of an answer are logged.
	maxText = 200
	// maxRetryAfter bounds the wait that a receiver can ask for.
	maxRetryAfter = 24 * time.Hour
)

// ErrGone reports that the receiver answered 410, which says that it wants no more events.
var ErrGone = errors.New("the receiver answered 410 Gone: it wants no more events")

// Rejection is an answer other than 2xx.
type Rejection struct {
	// RetryAfter is how long the receiver asks to wait; zero if it does not.
	RetryAfter time.Duration

	status int
	// text is the beginning of the answer.
	text string
	// location is where a redirect points to.
	location string
}

// Error describes the answer.
func (r *Rejection) Error() string {
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
func (r *Rejection) Is(target error) bool { return target == ErrGone && r.status == http.StatusGone }

// Receiver is a service that events are posted to. It is safe for concurrent use.
type Receiver struct {
	url       string
	secrets   []Secret
	userAgent string
	timeout   time.Duration
	grace     time.Duration
	client    *http.Client
}

// Config configures a Receiver. All fields but Secrets and Grace are required.
type Config struct {
	// URL is the address that events are posted to.
	URL string
	// Secrets sign each request, all of them. Without secrets, requests are not signed.
	Secrets   []Secret
	UserAgent string
	// Timeout bounds a request, including its answer, and Grace what is left of it once the context
	// of Post has ended.
	Timeout, Grace time.Duration
	Transport      http.RoundTripper
}

// NewReceiver returns a Receiver. The error says what is wrong with the URL.
func NewReceiver(cfg Config) (*Receiver, error) {
	if err := CheckURL(cfg.URL); err != nil {
		return nil, err
	}
	return &Receiver{
		url: cfg.URL, secrets: cfg.Secrets, userAgent: cfg.UserAgent, timeout: cfg.Timeout,
		grace: cfg.Grace, client: &http.Client{
			Transport: cfg.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

// CheckURL returns an error if events cannot be posted to an address.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	valid := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.Fragment == "" && u.User == nil
	if valid && u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		valid = err == nil && port > 0
	}
	if !valid {
		return fmt.Errorf(
			"%q: must be http://… or https://…, with a port up to 65535 if any, without user and fragment, such as "+
				"http://127.0.0.1:9000/events",
			text,
		)
	}
	return nil
}

// Message is what is posted: the same in all attempts.
type Message struct {
	// ID identifies the message to the receiver, so that it can drop repeats. A single
	// event has its own ID, which no other event has.
	ID   string
	Body []byte
}

// Batch returns one message for several events of a hub. No other message has its ID: the same
// events have the same ID after a restart too, and other events have another.
func Batch(hub string, events []Message) Message {
	sum := sha256.New()
	bodies := make([][]byte, 0, len(events))
	for _, e := range events {
		sum.Write([]byte(e.ID + "\n"))
		bodies = append(bodies, e.Body)
	}
	return Message{
		ID: hub + "/batch-" + hex.EncodeToString(sum.Sum(nil)[:16]),
		Body: append(
			append([]byte(`{"data":[`), bytes.Join(bodies, []byte(","))...), "]}"...,
		),
	}
}

// Post sends a message once, and returns the status of the answer, 0 without one. The error is nil if
// the receiver has taken the message, and a *Rejection, which may be ErrGone, if it has answered
// otherwise.
func (r *Receiver) Post(ctx context.Context, m Message) (status int, err error) {
	posting, cancel := context.WithTimeoutCause(
		context.WithoutCancel(ctx), r.timeout,
		fmt.Errorf("the receiver did not answer within %s", r.timeout),
	)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(r.grace, cancel) })
	defer stop()
	request, err := http.NewRequestWithContext(
		posting, http.MethodPost, r.url, bytes.NewReader(m.Body),
	)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", r.userAgent)
	request.Header.Set("Webhook-Id", m.ID)
	request.Header.Set("Webhook-Timestamp", timestamp(now))
	if len(r.secrets) > 0 {
		request.Header.Set("Webhook-Signature", signature(r.secrets, m.ID, now, m.Body))
	}
	response, err := r.client.Do(request)
	if err != nil {
		if cause := context.Cause(posting); cause != nil {
			return 0, cause
		}
		return 0, err
	}
	defer response.Body.Close()
	// The status has decided: an answer that is cut off changes nothing.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return response.StatusCode, nil
	}
	return response.StatusCode, &Rejection{
		status:     response.StatusCode,
		text:       strings.ToValidUTF8(string(text[:min(len(text), maxText)]), ""),
		location:   response.Header.Get("Location"),
		RetryAfter: retryAfter(response, now),
	}
}

// Pause returns how long to wait before a message is posted again: as long as it has failed, so that
// the pauses double, from first to most, or, up to longest, as long as the receiver asked for. It is
// random over its upper fifth.
func Pause(failing, first, most, longest time.Duration, err error) time.Duration {
	pause := min(max(failing, first), most)
	pause -= rand.N(pause/5 + 1)
	if rejection, ok := errors.AsType[*Rejection](err); ok {
		pause = max(pause, min(rejection.RetryAfter, longest))
	}
	return pause
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
