package client

import (
	"context"
	"net/http"
	"time"
)

// Batch sets up to 500 channels of one key to one value: Channels, and what Select chooses.
type Batch struct {
	Key      string           `json:"key"`
	Value    any              `json:"value"`
	Channels []BatchChannel   `json:"channels,omitempty"`
	Select   *ChannelSelector `json:"select,omitempty"`
	// IdempotencyKey is as in Command.
	IdempotencyKey string `json:"-"`
}

// BatchChannel is a channel of a device, with the key of the Batch.
type BatchChannel struct {
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
	Endpoint int    `json:"endpoint"`
}

// ChannelSelector chooses the writable channels of a key that match all fields that are set. The
// zero value chooses all of the organization.
type ChannelSelector struct {
	SiteID string `json:"site_id,omitempty"`
	HubID  string `json:"hub_id,omitempty"`
	Room   string `json:"room,omitempty"`
}

// Commands are several commands that were sent together, or a single one.
type Commands struct {
	ID        string           `json:"id"`
	CreatedAt time.Time        `json:"created_at"`
	Key       string           `json:"key"`
	Value     Value            `json:"value"`
	Data      []CommandOutcome `json:"data"`
}

// CommandOutcome is what has become of a command.
type CommandOutcome struct {
	// ID is the id of this command alone; "" if it was rejected before it had one.
	ID       string `json:"id"`
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
	Endpoint int    `json:"endpoint"`
	// Status is the status of the channel since the command, CommandRejected or CommandReplaced.
	Status ChannelStatus `json:"status"`
	// Error is why the command was rejected, or what is unknown of it; nil otherwise.
	Error *CommandError `json:"error"`
}

// CommandError is the rejection of a command.
type CommandError struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
}

// The statuses that only a CommandOutcome has: the command was not carried out, or another value
// was asked for since.
const (
	CommandRejected ChannelStatus = "rejected"
	CommandReplaced ChannelStatus = "replaced"
)

// SendAll sets many channels and returns an outcome for each; Commands returns what becomes of
// them. It retries as Send does. Scope hubs:command. Returns ErrInvalidRequest and
// ErrIdempotencyConflict.
func (c *Client) SendAll(ctx context.Context, batch Batch) (Commands, error) {
	if batch.IdempotencyKey == "" {
		batch.IdempotencyKey = NewIdempotencyKey()
	}
	if err := checkIdempotencyKey(batch.IdempotencyKey); err != nil {
		return Commands{}, err
	}
	return ask[Commands](ctx, c, call{
		method: http.MethodPost, path: route("commands"), body: batch,
		idempotencyKey: batch.IdempotencyKey,
	})
}

// Commands returns commands with their present statuses. The id is the ID of Commands, of a
// CommandOutcome or of Sent. Scope hubs:command. Returns ErrNotFound.
func (c *Client) Commands(ctx context.Context, id string) (Commands, error) {
	return ask[Commands](ctx, c, call{method: http.MethodGet, path: route("commands", id)})
}
