package domain

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

const (
	// MaxIdempotencyKey is the most characters (code points) that an Idempotency-Key may have.
	MaxIdempotencyKey = 255
	// DefaultHubTimeout is how long a hub has to answer a request, unless an operator sets another
	// timeout. The default of --hub-timeout must be the same.
	DefaultHubTimeout = 10 * time.Second
)

// Command is a command to set a channel to a value.
type Command struct {
	OrgID    string
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Value is canonical, from CheckCommandValue.
	Value json.RawMessage
	// IdempotencyKey is the caller's, checked by CheckIdempotencyKey; empty when there is none.
	IdempotencyKey string
}

// SentCommand is a command that was sent, or whose answer was remembered under its idempotency key.
type SentCommand struct {
	// ID identifies the command to the hub; "" if the command was rejected before it had one.
	ID string
	// Channel is from the hub's answer, if the hub accepted the command.
	Channel Channel
	// Replayed reports that the answer is of the same command, sent before.
	Replayed bool
}

// CommandResult is the result of a command of several. Err is its rejection; nil if the hub
// accepted it.
type CommandResult struct {
	SentCommand
	Err error
}

// ErrCommandSkipped is the rejection of a command that was not sent because its hub did not answer
// the command before.
var ErrCommandSkipped error = Errorf(
	CodeHubUnavailable, "not sent: the hub did not answer the command before",
)

// CommandRecord is a command that was sent to a hub, with its outcome, as recorded in the hub's
// event log.
type CommandRecord struct {
	// ID identifies the command to the hub, which runs it once.
	ID       string
	OrgID    string
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Value is the desired value as JSON.
	Value json.RawMessage
	// Position is the cursor of the command's first record in the hub's event log: the events that
	// follow the command come after it.
	Position string
	// Seq is the sequence of that record in the hub's stream, as of EncodedEvent.
	Seq uint64
	// At is when the command was first sent, by the cloud's clock. Actor sent it.
	At    time.Time
	Actor Actor
	// Outcome is `accepted`, `canceled`, or the type of the caller's last error, which Message
	// explains; empty while there is no answer.
	Outcome string
	Message string
}

// LoggedCommand is a record about a command as a hub's event log stores it.
type LoggedCommand struct {
	// Position is the cursor of the record, and Seq its sequence in the hub's stream.
	Position string
	Seq      uint64
	// Payload is the record as JSON.
	Payload []byte
}

// CheckIdempotencyKey returns an invalid_request unless the Idempotency-Key has 1 to
// MaxIdempotencyKey characters. An invalid byte counts as a character.
func CheckIdempotencyKey(key string) error {
	if n := utf8.RuneCountInString(key); n < 1 || n > MaxIdempotencyKey {
		return Errorf(
			CodeInvalidRequest, "Idempotency-Key: must be 1 to %d characters, not %d",
			MaxIdempotencyKey, n,
		)
	}
	return nil
}
