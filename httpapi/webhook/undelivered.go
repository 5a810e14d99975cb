package webhook

// undelivered has the events of the feed that are not delivered, and the newest position of the feed
// before which every event is. Each event holds the position that is reached once it is delivered
// too. It is not safe for concurrent use.
type undelivered struct {
	// position is the position before all undelivered events.
	position    string
	first, last *entry
	// count and bytes are the number and the size of the undelivered events.
	count, bytes int
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
func (u *undelivered) add(e *entry) {
	e.size = len(e.body) + len(e.position) + entryOverhead
	e.prev = u.last
	if e.prev == nil {
		u.first = e
	} else {
		e.prev.next = e
	}
	u.last = e
	u.count++
	u.bytes += e.size
}

// advance sets the feed's position after all events that were added.
func (u *undelivered) advance(position string) {
	switch {
	case position == "":
	case u.last == nil:
		u.position = position
	default:
		u.last.position = position
	}
}

// done removes an event that has been delivered or skipped.
func (u *undelivered) done(e *entry) {
	if e.prev == nil {
		u.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		u.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	u.count--
	u.bytes -= e.size
	switch {
	case e.position == "":
	case e.prev == nil:
		u.position = e.position
	default:
		e.prev.position = e.position
	}
}
