package hubfaults

import (
	"strings"
	"time"
	"unicode"

	"hubcloud/domain"
)

// Reason is a kind of fault.
type Reason string

// The reasons.
const (
	// NoHello: the hub is connected and has sent no hello for helloTime.
	NoHello Reason = "no_hello"
	// NoProgress: the hub is connected and has events that the cloud has not, but does not send the
	// next one for progressTime.
	NoProgress Reason = "no_progress"
	// MalformedEvents: the hub sends events that cannot be stored.
	MalformedEvents Reason = "malformed_events"
	// UnreadableMessages: the hub sends hellos, events messages or answers that cannot be decoded.
	UnreadableMessages Reason = "unreadable_messages"
	// TooMuchData: the hub sends more messages, or its events take more space, than one hub or
	// organization may have.
	TooMuchData Reason = "too_much_data"
	// ForeignTopic: the hub publishes or subscribes to a topic that is not its own.
	ForeignTopic Reason = "foreign_topic"
	// QoS2: the hub publishes with QoS 2, which ends its connection.
	QoS2 Reason = "qos2"
	// MQTTViolation: the broker closed the connection because of a packet that it does not accept.
	MQTTViolation Reason = "mqtt_violation"
)

// Reasons returns every reason.
func Reasons() []Reason {
	return []Reason{
		NoHello, NoProgress, MalformedEvents, UnreadableMessages, TooMuchData, ForeignTopic, QoS2,
		MQTTViolation,
	}
}

// waits reports whether the fault is that something does not happen. It lasts until that happens.
func (r Reason) waits() bool { return r == NoHello || r == NoProgress }

// Fault is what a hub does wrong.
type Fault struct {
	HubID  domain.HubID `json:"hub_id"`
	Reason Reason       `json:"reason"`
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
