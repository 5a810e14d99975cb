package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Command asks for a value of one channel of a device.
type Command struct {
	HubID    string
	DeviceID int64
	// Key and Endpoint name the channel, which must be writable. Endpoint is 0 unless the device
	// has several channels of one key.
	Key      string
	Endpoint int
	// Value is anything that encoding/json writes as the channel's kind of value: true locks a
	// lock, 21.5 is a setpoint, Color a color. A Value is sent as it is.
	Value any
	// IdempotencyKey is any text of 1 to 255 characters that no other command of the organization
	// has had for 24 hours. Client.Send makes one when it is empty. Who may have to send the
	// command again after a restart of their own gives one and keeps it.
	IdempotencyKey string
}

// Sent is a command that the hub has accepted.
type Sent struct {
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
	// Channel is the channel as it was then: Status is pending, and Value still the last that was
	// reported.
	Channel CommandedChannel `json:"channel"`
	// IdempotencyKey is the one that the command was sent with.
	IdempotencyKey string `json:"-"`
}

// maxIdempotencyKey is the contract's limit, in characters.
const maxIdempotencyKey = 255

// Send sends a command, and returns once the hub has accepted it. What comes of it is told later:
// see Outcome. Scope hubs:command.
//
// It is sent again, under the same key, after a failed connection and after 429, 500, 502, 503 and
// 504, within Retry.MaxElapsed; the hub runs it once. An error that is left after that may be one
// of a command that the hub has run all the same, when it is ErrHubTimeout or that of a connection:
// sending the command again with the same IdempotencyKey tells.
//
// ErrInvalidRequest for a read-only channel and a value that the channel does not take;
// ErrNotFound; ErrIdempotencyConflict; ErrCommandRefused; ErrHubError, ErrHubOffline,
// ErrHubUnavailable, ErrHubTimeout.
func (c *Client) Send(ctx context.Context, command Command) (Sent, error) {
	if command.IdempotencyKey == "" {
		command.IdempotencyKey = NewIdempotencyKey()
	}
	if err := checkIdempotencyKey(command.IdempotencyKey); err != nil {
		return Sent{}, err
	}
	body := struct {
		Key      string `json:"key"`
		Value    any    `json:"value"`
		Endpoint int    `json:"endpoint"`
	}{command.Key, command.Value, command.Endpoint}
	var sent Sent
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: deviceRoute(command.HubID, command.DeviceID, "commands"),
		body: body, idempotencyKey: command.IdempotencyKey,
	}, &sent)
	sent.IdempotencyKey = command.IdempotencyKey
	return sent, err
}

// checkIdempotencyKey refuses what would not arrive as it is in a header field.
func checkIdempotencyKey(key string) error {
	if len(key) > maxIdempotencyKey || key[0] == ' ' || key[len(key)-1] == ' ' {
		return fmt.Errorf(
			"%w: an idempotency key has 1 to %d characters, and no space around it",
			ErrInvalidRequest, maxIdempotencyKey,
		)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return fmt.Errorf("%w: an idempotency key is printable ASCII", ErrInvalidRequest)
		}
	}
	return nil
}

// Outcome is what came of a command.
type Outcome struct {
	// Status is StatusSynchronized, StatusDiverged or StatusFailed; StatusPending while there is no
	// outcome.
	Status ChannelStatus
	// Value is what the device reported; nil when it has not.
	Value Value
	// ObservedAt is when it did, by the hub's clock; zero when it has not.
	ObservedAt time.Time
	// Event is the report; nil when the outcome was read off the device, which is how a failure
	// shows.
	Event *Event
}

// SendAndWait sends a command and waits for its outcome, at most for limit. It is Position, Send
// and Outcome, and gives their errors. Scopes hubs:command and events:read, and hubs:read to see
// failures: a command whose events the key cannot read is not sent.
func (c *Client) SendAndWait(
	ctx context.Context, command Command, limit time.Duration,
) (Sent, Outcome, error) {
	position, err := c.Position(ctx, command.HubID)
	if err != nil {
		return Sent{}, Outcome{}, err
	}
	sent, err := c.Send(ctx, command)
	if err != nil {
		return sent, Outcome{}, err
	}
	outcome, err := c.Outcome(ctx, sent, position, limit)
	return sent, outcome, err
}

// Outcome waits, at most for limit, for what comes of a command: the channel.observed event that
// follows its channel.desired, read from the hub's events after the cursor `after`, which must be
// from before the command was sent (see Position); or what the device itself says, which is asked
// every few seconds, since a command that is abandoned has no event. Scopes events:read and
// hubs:read; with only one of them it gets by with what that shows.
//
// The error is nil when the device reports what was asked. ErrDiverged: it reports something else,
// the Outcome says what. ErrFailed: the hub has given the command up. ErrSuperseded: the channel
// was asked for something else before the device had reported. ErrNoOutcome: limit has passed, and
// the command is still under way. ErrNotFound: the device or its hub is gone.
func (c *Client) Outcome(
	ctx context.Context, sent Sent, after string, limit time.Duration,
) (Outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrNoOutcome)
	w := watch{c: c, sent: sent}
	outcome, err := w.run(ctx, after)
	if err != nil && errors.Is(context.Cause(ctx), ErrNoOutcome) &&
		errors.Is(err, context.DeadlineExceeded) {
		err = ErrNoOutcome
	}
	cancel()
	w.under.Wait()
	return outcome, err
}

// verdict makes the error of an outcome.
func (o Outcome) verdict() (Outcome, error) {
	switch o.Status {
	case StatusDiverged:
		return o, fmt.Errorf("%w: %s", ErrDiverged, o.Value)
	case StatusFailed:
		return o, ErrFailed
	}
	return o, nil
}

// MarshalJSON writes the outcome as a channel's fields.
func (o Outcome) MarshalJSON() ([]byte, error) {
	var observed *time.Time
	if !o.ObservedAt.IsZero() {
		observed = &o.ObservedAt
	}
	return json.Marshal(struct {
		Status     ChannelStatus `json:"status"`
		Value      Value         `json:"value"`
		ObservedAt *time.Time    `json:"observed_at"`
	}{o.Status, o.Value, observed})
}
