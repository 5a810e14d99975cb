package hub

import (
	"context"

	"hubcloud/hubbridge/protocol"
)

// CredentialHandler is what the Handler of a hub whose locks take codes also is. Its hub says so in
// its hello. A code must not be logged or reported.
type CredentialHandler interface {
	// Slots returns the slots of a lock that have a code, or ErrorNotFound.
	Slots(ctx context.Context, deviceID int64) (protocol.CredentialSlots, error)
	// SetCredential sets a code of a lock, or changes what has been set: without a Code the code of
	// the slot stays. It emits credential.created if the slot had no code, and credential.applied.
	// Setting what is set succeeds. It returns ErrorNotFound, ErrorInvalidRequest for a code that
	// the lock does not take or that is missing, ErrorCommandRefused for times that the lock
	// does not keep, ErrorSlotTaken for a slot with a code that it has not set, ErrorLockFull, or
	// ErrorHubUnavailable.
	SetCredential(ctx context.Context, c protocol.CredentialParams) error
	// RemoveCredential removes a code and emits credential.revoked. A slot without a code is a
	// success without an event.
	RemoveCredential(ctx context.Context, deviceID, slot int64) error
}

type slotParams struct {
	DeviceID *int64 `json:"device_id"`
	Slot     int64  `json:"slot"`
}

// setCredential checks what all locks have in common and calls the handler.
func setCredential(
	ctx context.Context, handler CredentialHandler, p protocol.CredentialParams,
) (any, error) {
	if p.Slot < 1 {
		return nil, errSlot
	}
	if p.Code != "" && !credentialCodes.MatchString(p.Code) {
		return nil, Errorf(ErrorInvalidRequest, "code must be 4 to 10 digits")
	}
	return emptyResult{}, handler.SetCredential(ctx, p)
}
