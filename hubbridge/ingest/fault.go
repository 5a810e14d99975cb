package ingest

import (
	"strings"
	"time"
	"unicode"

	"hubcloud/domain"
)

// FaultReason is a kind of fault.
type FaultReason string

// The reasons.
const (
	// FaultNoHello: the hub is connected and has sent no hello for helloTime.
	FaultNoHello FaultReason = "no_hello"
	// FaultNoProgress: the hub is connected and has events that the cloud has not, but does not send the
	// next one for progressTime.
	FaultNoProgress FaultReason = "no_progress"
	// FaultMalformedEvents: the hub sends events that cannot be stored.
	FaultMalformedEvents FaultReason = "malformed_events"
	// FaultUnreadableMessages: the hub sends hellos, events messages or answers that cannot be decoded.
	FaultUnreadableMessages FaultReason = "unreadable_messages"
	// FaultTooMuchData: the hub sends more messages, or its events take more space, than one hub or
	// organization may have.
	FaultTooMuchData FaultReason = "too_much_data"
	// FaultForeignTopic: the hub publishes or subscribes to a topic that is not its own.
	FaultForeignTopic FaultReason = "foreign_topic"
	// FaultQoS2: the hub publishes with QoS 2, which ends its connection.
	FaultQoS2 FaultReason = "qos2"
	// FaultMQTTViolation: the broker closed the connection because of a packet that it does not accept.
	FaultMQTTViolation FaultReason = "mqtt_violation"
)

// FaultReasons returns every reason.
func FaultReasons() []FaultReason {
	return []FaultReason{
		FaultNoHello, FaultNoProgress, FaultMalformedEvents, FaultUnreadableMessages, FaultTooMuchData,
		FaultForeignTopic, FaultQoS2, FaultMQTTViolation,
	}
}

// waits reports whether the fault is that something does not happen. It lasts until that happens.
func (r FaultReason) waits() bool { return r == FaultNoHello || r == FaultNoProgress }

// Fault is what a hub does wrong.
type Fault struct {
	HubID  domain.HubID `json:"hub_id"`
	Reason FaultReason  `json:"reason"`
	// Since is when the fault was first seen, Last when it was last seen.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Count is how often the fault was seen.
	Count int `json:"count"`
	// Detail is the last evidence, printable and at most maxDetail bytes.
	Detail string `json:"detail"`
}

// maxDetail bounds the detail of a fault. A hub chooses a part of it.
const maxDetail = 200

// printable removes what is not printable from a detail, and cuts it to maxDetail.
func printable(detail string) string {
	detail = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, detail)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "")
	}
	return detail
}
