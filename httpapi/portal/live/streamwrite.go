package live

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// writeTimeout is how long a page may take to make room for one write.
const writeTimeout = 10 * time.Second

func (s *stream) tellGap(hub domain.HubID) {
	s.metrics.gaps.Inc()
	s.tell("hub.portal_gap", map[string]domain.HubID{"hub_id": hub})
}

func (s *stream) tellStates(whole bool, states []HubState) {
	s.tell("hub.portal_states", struct {
		Whole bool       `json:"whole"`
		Hubs  []HubState `json:"hubs"`
	}{whole, append([]HubState{}, states...)})
}

// tell puts an event of the portal's own into the buffer. It has no id: those are the hubs'.
func (s *stream) tell(eventType string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and times can be marshalled
	}
	s.buffer = append(
		append(
			append(append(append(s.buffer, "event: "...), eventType...), "\ndata: "...),
			text...),
		"\n\n"...)
}

// flush sends the buffer; false says that the page is gone or does not read.
func (s *stream) flush() bool {
	s.extend()
	_, err := s.w.Write(s.buffer)
	if s.buffer = s.buffer[:0]; cap(s.buffer) > 2*streamBytes {
		s.buffer = nil // a stream lasts: what one large write took is not kept
	}
	if err != nil || s.control.Flush() != nil {
		return false
	}
	if s.multiplexed {
		// HTTP/2 holds a deadline against a stream that is merely quiet.
		_ = s.control.SetWriteDeadline(time.Time{})
	}
	return true
}

// extend gives the next write its time.
func (s *stream) extend() { _ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }
