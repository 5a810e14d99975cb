package hub

import (
	"errors"
	"fmt"

	"hubcloud/hubbridge/protocol"
)

// ErrRunning is returned by a second Run.
var ErrRunning = errors.New("the hub is running or has run")

// The types of errors with which a Handler answers. The cloud reports any other type to its caller
// as hub_error.
const (
	// ErrorNotFound: no such device or channel.
	ErrorNotFound = protocol.ErrorNotFound
	// ErrorInvalidRequest: a value that the channel does not take, or a device to forget that is
	// still on the hub's network.
	ErrorInvalidRequest = protocol.ErrorInvalidRequest
	// ErrorCommandRefused: the hub does not drive the device, such as an insecurely joined lock.
	ErrorCommandRefused = protocol.ErrorCommandRefused
	// ErrorHubUnavailable: the hub cannot act now, because its radio is down or it does not know
	// the time. Nothing was done, and the same command may be tried again.
	ErrorHubUnavailable = protocol.ErrorHubUnavailable
	// ErrorSlotTaken: the slot has a code that the cloud has not set.
	ErrorSlotTaken = protocol.ErrorSlotTaken
	// ErrorLockFull: the lock has no room for the code.
	ErrorLockFull = protocol.ErrorLockFull
)

const (
	// errorHub is the type of an error that is no *Error.
	errorHub = "hub_error"
	// errorStorage is the type of a command that the hub cannot store.
	errorStorage = "storage"
)

// Error is the error of a request. The cloud shows Message to the caller of its API.
type Error struct {
	Type    string
	Message string
}

// Errorf returns an error of the given type.
func Errorf(kind, format string, args ...any) *Error {
	return &Error{Type: kind, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return e.Type + ": " + e.Message }
