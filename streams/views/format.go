package views

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Headers of a message in a hub's log. Records of commands have none but HeaderTime, and records of
// states have HeaderTime, HeaderEpoch, HeaderOrg and HeaderState.
const (
	// HeaderEpoch is the id of the log's epoch.
	HeaderEpoch = "Hubcloud-Epoch"
	// HeaderOrg is the organization that has the hub.
	HeaderOrg = "Hubcloud-Organization"
	// HeaderOwnLog is the hub's name for its own log, and HeaderThrough a number of that log.
	HeaderOwnLog  = "Hubcloud-Log"
	HeaderThrough = "Hubcloud-Through"
	// HeaderEvents is how many events the log has had up to and including this one; on events.
	HeaderEvents = "Hubcloud-Events"
	// HeaderConnection is opaque text, stored with hub.connected and hub.disconnected.
	HeaderConnection = "Hubcloud-Connection"
	// HeaderTime is the time of the message, in nanoseconds since 1970, as FormatTime writes it. It
	// is part of the log and stays the same when the log's stream is written again, unlike the time
	// at which the broker stored the message.
	HeaderTime = "Hubcloud-Time"
	// HeaderState is the payload of a record of a state, as FormatState writes it. The message has
	// StateBody as its body: readers of the stream never see a state.
	HeaderState = "Hubcloud-State"
)

// StateBody is the body of a message that has a state.
const StateBody = "{}"

// FormatState returns the payload of a record of a state as the value of HeaderState.
func FormatState(payload []byte) string { return base64.StdEncoding.EncodeToString(payload) }

// State returns the state in HeaderState. ok is false for a message without the header.
func State(header nats.Header) (payload []byte, ok bool, err error) {
	values := header[HeaderState]
	if len(values) == 0 {
		return nil, false, nil
	}
	if payload, err = base64.StdEncoding.DecodeString(values[0]); err != nil {
		return nil, true, fmt.Errorf("header %s: %w", HeaderState, err)
	}
	return payload, true, nil
}

// FormatTime returns a time as the value of HeaderTime.
func FormatTime(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// Time returns the time in HeaderTime, in UTC.
func Time(header nats.Header) (time.Time, error) {
	text := header.Get(HeaderTime)
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf(
			"header %s is %q: must be nanoseconds since 1970", HeaderTime, text,
		)
	}
	return time.Unix(0, ns).UTC(), nil
}
