package portal

import (
	"encoding/json"

	"hubcloud/httpapi/response"
)

// appendPosition buffers the position after all events that were read. Like the position of an
// event, it is an id, but without an event.
func (s *stream) appendPosition() {
	s.buffer = response.AppendLastEventID(s.buffer, s.reader.Cursor())
}

// appendStates buffers hub states. whole reports that the stream has no other hubs.
func (s *stream) appendStates(whole bool, states []hubState) {
	s.appendEvent("hub.portal_states", struct {
		Whole bool       `json:"whole"`
		Hubs  []hubState `json:"hubs"`
	}{whole, append([]hubState{}, states...)})
}

// appendEvent buffers an event of the portal. It has no id, because it is not in the feed.
func (s *stream) appendEvent(eventType string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // strings and times always marshal
	}
	s.buffer = response.AppendEvent(s.buffer, eventType, text)
}

// flush writes the buffer. An error means that the client is gone or does not read.
func (s *stream) flush() error {
	err := s.out.Send(s.buffer)
	if s.buffer = s.buffer[:0]; cap(s.buffer) > 2*response.BatchBytes {
		s.buffer = nil // do not keep the memory of one large write
	}
	return err
}
