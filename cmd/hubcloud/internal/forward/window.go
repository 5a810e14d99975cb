package forward

// window tracks which events of the feed are delivered. Its position is the newest position of the
// feed before which every event is. Memory is used for undelivered events only: each of them holds
// the position that is reached once it is delivered too. A window is not safe for concurrent use.
type window struct {
	// position is the position before all undelivered events.
	position    string
	first, last *entry
	// events and bytes are the number and the size of the undelivered events.
	events, bytes int
}

// entry is an undelivered event.
type entry struct {
	// identity is the hub and the cursor, which only this event has.
	identity string
	hub      string
	cursor   string
	body     []byte
	// position is the feed's after this event and the delivered ones that follow it; "" if the
	// feed has none there.
	position   string
	prev, next *entry
	size       int
}

// entryOverhead is about how many bytes an entry takes besides its body and position.
const entryOverhead = 256

// add appends an event, which becomes the newest one.
func (w *window) add(e *entry) {
	e.size = len(e.body) + len(e.position) + entryOverhead
	e.prev = w.last
	if e.prev == nil {
		w.first = e
	} else {
		e.prev.next = e
	}
	w.last = e
	w.events++
	w.bytes += e.size
}

// advance sets the feed's position after all events that were added.
func (w *window) advance(position string) {
	switch {
	case position == "":
	case w.last == nil:
		w.position = position
	default:
		w.last.position = position
	}
}

// done removes an event that has been delivered or skipped.
func (w *window) done(e *entry) {
	if e.prev == nil {
		w.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		w.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	w.events--
	w.bytes -= e.size
	switch {
	case e.position == "":
	case e.prev == nil:
		w.position = e.position
	default:
		e.prev.position = e.position
	}
}
