package response

// The frames of hub events are made where the events are read: encode.go in package feed.

// AppendEvent appends an event without an id to dst: it does not change the client's position. The
// data must be one line.
func AppendEvent(dst []byte, eventType string, data []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, eventType...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

// AppendLastEventID appends a frame that sets the client's last event id and dispatches no event: a
// client that reconnects before the first event continues from id.
func AppendLastEventID(dst []byte, id string) []byte {
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	return append(dst, "\n\n"...)
}

// AppendKeepalive appends a comment line, which clients ignore. No empty line follows: it would end
// a message, and some clients pass on even one without any field.
func AppendKeepalive(dst []byte) []byte { return append(dst, ": keepalive\n"...) }
