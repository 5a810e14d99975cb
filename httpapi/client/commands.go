package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Command sets a channel of a device to a value.
type Command struct {
	HubID    string
	DeviceID int64
	// Key and Endpoint identify the channel, which must be writable. Endpoint is 0 unless the
	// device has several channels with the key.
	Key      string
	Endpoint int
	// Value is anything that encoding/json encodes as the channel's kind of value: true locks a
	// lock, 21.5 is a setpoint, Color a color. A Value is sent unchanged.
	Value any
	// IdempotencyKey is a text of 1 to 255 characters that no other command of the organization has
	// had within the service's idempotency window, 24 hours by default. If empty, Client.Send
	// generates one. A program that may have to send the command again after its own restart sets a
	// key and stores it.
	IdempotencyKey string
}

// Sent is a command that the hub has accepted.
type Sent struct {
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
	// Channel is the channel when the hub accepted the command: Status is pending and Value is the
	// last reported one.
	Channel CommandedChannel `json:"channel"`
	// IdempotencyKey is the key that the command was sent with.
	IdempotencyKey string `json:"-"`
	// ID is for Client.Commands.
	ID string `json:"-"`
}

// maxIdempotencyKey is the contract's limit, in characters.
const maxIdempotencyKey = 255

// Send sends a command and returns once the hub has accepted it. Outcome waits for what happens
// then. Scope hubs:command.
//
// Send retries under the same key after a failed connection and after 429, 500, 502, 503 and 504,
// within Retry.MaxElapsed; the hub runs the command once. If Send returns ErrHubTimeout or the
// error of a connection, the hub may have run the command all the same: sending it again with the
// same IdempotencyKey shows whether it did.
//
// Send returns ErrInvalidRequest for a read-only channel and for a value that the channel does not
// accept, ErrNotFound, ErrIdempotencyConflict, ErrCommandRefused, ErrHubError, ErrHubOffline,
// ErrHubUnavailable and ErrHubTimeout.
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
	header, err := c.do(ctx, call{
		method: http.MethodPost, path: deviceRoute(command.HubID, command.DeviceID, "commands"),
		body: body, idempotencyKey: command.IdempotencyKey,
	}, &sent)
	sent.IdempotencyKey, sent.ID = command.IdempotencyKey, header.Get("Command-Id")
	return sent, err
}

// checkIdempotencyKey rejects keys that a header field would not transmit unchanged.
func checkIdempotencyKey(key string) error {
	if len(key) > maxIdempotencyKey || key[0] == ' ' || key[len(key)-1] == ' ' {
		return fmt.Errorf(
			"%w: Idempotency-Key: must be 1 to %d characters without surrounding space",
			ErrInvalidRequest, maxIdempotencyKey,
		)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return fmt.Errorf("%w: Idempotency-Key: must be printable ASCII", ErrInvalidRequest)
		}
	}
	return nil
}

// Outcome is the result of a command.
type Outcome struct {
	// Status is StatusSynchronized, StatusDiverged or StatusFailed, or StatusPending if there is no
	// outcome yet.
	Status ChannelStatus
	// Value is what the device reported; nil if it has not reported.
	Value Value
	// ObservedAt is when the device reported, by the hub's clock; zero if it has not.
	ObservedAt time.Time
	// Event is the report. It is nil if the outcome was read from the device, which is the only way
	// to see a failure.
	Event *Event
}

// SendAndWait sends a command and waits for its outcome, at most for limit. It is Position, Send
// and Outcome together and returns their errors. Scopes hubs:command and events:read, and hubs:read
// to see failures. If the key cannot read events, the command is not sent.
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

// Outcome waits, at most for limit, for the outcome of a command: the channel.observed event that
// follows the command's channel.desired in the hub's events after the cursor `after`, which must be
// from before the command was sent (see Position). Outcome also reads the device every few seconds,
// because an abandoned command has no event, and when the event comes: the hub's own status of a
// report has precedence. What the device reported before the command does not count, whatever its
// value. Scopes events:read and hubs:read; with only one of them Outcome uses only that source.
//
// The error is nil if the device reports the desired value. ErrDiverged: it reports another value,
// which Outcome has. ErrFailed: the hub has abandoned the command. ErrSuperseded: another value was
// desired before the device reported. ErrNoOutcome: limit has passed and the command is still under
// way. ErrNotFound: the device or its hub is gone.
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
	w.group.Wait()
	return outcome, err
}

// verdict returns the error of an outcome.
func (o Outcome) verdict() (Outcome, error) {
	switch o.Status {
	case StatusDiverged:
		return o, fmt.Errorf("%w: %s", ErrDiverged, o.Value)
	case StatusFailed:
		return o, ErrFailed
	}
	return o, nil
}

// MarshalJSON returns the outcome as a channel's fields.
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
