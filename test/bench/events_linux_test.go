package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// eventsMessage is an events message of a hub as an MQTT packet, encoded once and patched before
// each sending.
type eventsMessage struct {
	packet  []byte
	numbers []int // offset of each event's number
	stamps  []int // offset of each event's value
}

// The widths of the patched texts: a number from firstNumber on, and a value that is a time in
// microseconds since 1970.
const (
	numberWidth = 10
	stampWidth  = 16
)

// stampPrefix precedes an event's value. stampSuffix follows it up to the event's end.
const (
	stampPrefix = `"value":`
	stampSuffix = `}}`
)

func newEventsMessage(h *hub, events int) *eventsMessage {
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"log":%q,"events":[`, logName)
	for i := range events {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(
			&text,
			`{"seq":%d,"type":"channel.observed","device_id":%d,"time":"2026-01-02T03:04:05.%06dZ","clock_trusted":true,`+
				`"data":{"key":"temperature","endpoint":0,%s%d%s`,
			firstNumber+i,
			1+i%9,
			i,
			stampPrefix,
			time.Now().UnixMicro(),
			stampSuffix,
		)
	}
	text.WriteString(`]}`)
	publish := mqttPublish
	if h.confirmed {
		publish = mqttPublishConfirmed
	}
	m := &eventsMessage{packet: publish("hub/"+h.ID+"/events", text.Bytes())}
	m.numbers = offsetsAfter(m.packet, []byte(`{"seq":`))
	m.stamps = offsetsAfter(m.packet, []byte(stampPrefix))
	return m
}

// offsetsAfter returns the offsets after each occurrence of mark.
func offsetsAfter(text, mark []byte) []int {
	var found []int
	for at := 0; ; {
		i := bytes.Index(text[at:], mark)
		if i < 0 {
			return found
		}
		at += i + len(mark)
		found = append(found, at)
	}
}

// send numbers the events from the hub's next number on, stamps them with the time, and sends them.
func (m *eventsMessage) send(h *hub) error {
	stamp := time.Now().UnixMicro()
	for i, at := range m.numbers {
		patch(m.packet[at:at+numberWidth], h.next+uint64(i))
		patch(m.packet[m.stamps[i]:m.stamps[i]+stampWidth], uint64(stamp))
	}
	h.next += uint64(len(m.numbers))
	return h.send(m.packet)
}

// patch writes a number over one of the same width.
func patch(place []byte, n uint64) {
	for i := len(place) - 1; i >= 0; i-- {
		place[i] = byte('0' + n%10)
		n /= 10
	}
}

// stampOf returns the time at which an event was sent, from the end of its envelope.
func stampOf(envelope []byte) (at time.Time, ok bool) {
	digits, ok := bytes.CutSuffix(envelope, []byte(stampSuffix))
	if !ok || len(digits) < len(stampPrefix)+stampWidth {
		return at, false
	}
	digits = digits[len(digits)-stampWidth-len(stampPrefix):]
	digits, ok = bytes.CutPrefix(digits, []byte(stampPrefix))
	if !ok {
		return at, false
	}
	us, err := strconv.ParseInt(string(digits), 10, 64)
	return time.UnixMicro(us), err == nil
}
