package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
)

// marker returns an event of the service itself, which is of no hub and has no cursor.
func marker(typ string, at time.Time, data string) []byte {
	return fmt.Appendf(
		nil, `{"cursor":null,"type":%q,"hub_id":null,"device_id":null,"time":%q,`+
			`"clock_trusted":null,"data":%s}`, typ, domain.FormatTime(at), data,
	)
}

// gapEvent returns the event that stands for all events of the organization that expired.
func gapEvent(at time.Time) []byte {
	return marker(domain.EventFeedGap, at, `{"hub_id":null,"reason":"expired"}`)
}

// newMessage returns the message of events, after which a position follows; "" for none. The same
// events have the same id, unless they are replayed on purpose.
func newMessage(w domain.Webhook, position string, events [][]byte) Message {
	body := append([]byte(`{"data":[`), bytes.Join(events, []byte(","))...)
	body = append(body, `],"position":`...)
	if position == "" {
		body = append(body, "null"...)
	} else {
		text, _ := json.Marshal(position) // a text
		body = append(body, text...)
	}
	body = append(body, '}')
	sum := sha256.New()
	fmt.Fprintln(sum, w.ID, w.Start.At.UnixNano())
	sum.Write(body)
	return Message{ID: "msg_" + hex.EncodeToString(sum.Sum(nil)[:16]), Body: body}
}
