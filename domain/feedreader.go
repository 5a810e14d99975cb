package domain

import (
	"cmp"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrEventsClosed is the error of a reader of events once the process has stopped reading event
// logs. No event is lost.
var ErrEventsClosed = errors.New("the event logs are closed")

// FeedLag is how far a position is behind the end of a hub's log or of an organization's feed.
type FeedLag struct {
	// Behind is how many events follow the position.
	Behind uint64
	// At is the time of the position: it can be read on from until At plus the retention.
	At time.Time
	// Mark is how many events of the organization this process had counted when Behind was counted:
	// the difference to a later count has been stored since. Only for organizations' feeds.
	Mark uint64
}

// ExpiresIn returns how long it takes until a position of that time expires; below 0 if it has.
func ExpiresIn(at time.Time, retention time.Duration, now time.Time) time.Duration {
	return at.Add(retention).Sub(now)
}

// EndangeredShare is the part of the retention that a position has left when its reader is in
// danger of losing events: a quarter.
const EndangeredShare = 4

// FeedReaderState is how close a reader is to losing events.
type FeedReaderState string

// The states of readers.
const (
	// FeedReaderOK: the position has more than a quarter of the retention left.
	FeedReaderOK FeedReaderState = "ok"
	// FeedReaderEndangered: the position expires within a quarter of the retention.
	FeedReaderEndangered FeedReaderState = "endangered"
	// FeedReaderExpired: the position can no longer be read on from.
	FeedReaderExpired FeedReaderState = "expired"
)

// FeedReaderStates returns all states.
func FeedReaderStates() []FeedReaderState {
	return []FeedReaderState{FeedReaderOK, FeedReaderEndangered, FeedReaderExpired}
}

// FeedReaderStateIn returns the state of a reader whose position expires in that time.
func FeedReaderStateIn(left, retention time.Duration) FeedReaderState {
	switch {
	case left < 0:
		return FeedReaderExpired
	case left < retention/EndangeredShare:
		return FeedReaderEndangered
	default:
		return FeedReaderOK
	}
}

// FeedReaderID identifies a reader within its organization: the name that it gives itself and what
// it reads.
type FeedReaderID struct {
	Name string
	// Hub is the hub whose log is read; "" for the organization's feed.
	Hub HubID
	// Part is the part of the feed that is read, as in `2/8`; "" for the whole feed and for hubs.
	Part string
	// Key is the id of the API key that reads the feed, if it is limited to sites: the names of its
	// readers are its own. "" otherwise.
	Key string
}

// String returns the id as text.
func (a FeedReaderID) String() string {
	what := feedReaderAll
	switch {
	case a.Hub != "":
		what = string(a.Hub)
	case a.Part != "":
		what = feedReaderPart + strings.Replace(a.Part, "/", "-", 1)
	}
	if a.Key != "" {
		what += "@" + a.Key
	}
	return what + "/" + a.Name
}

const (
	feedReaderAll  = "events"
	feedReaderPart = "events:"
)

// ParseFeedReaderID reads the text of an id; false if it is none.
func ParseFeedReaderID(text string) (id FeedReaderID, ok bool) {
	what, name, _ := strings.Cut(text, "/")
	id.Name = name
	what, id.Key, _ = strings.Cut(what, "@")
	part, isPart := strings.CutPrefix(what, feedReaderPart)
	switch {
	case what == feedReaderAll:
	case isPart:
		id.Part = strings.Replace(part, "-", "/", 1)
	default:
		if id.Hub, ok = ParseHubID(what); !ok {
			return id, false
		}
	}
	return id, CheckReaderName(name) == nil
}

// Compare orders ids by name, hub, part and key.
func (a FeedReaderID) Compare(b FeedReaderID) int {
	return cmp.Or(
		strings.Compare(a.Name, b.Name), cmp.Compare(a.Hub, b.Hub), strings.Compare(a.Part, b.Part),
		strings.Compare(a.Key, b.Key),
	)
}

// FeedReader is a reader of events that names itself.
type FeedReader struct {
	FeedReaderID
	// Position is the cursor after what the reader was last given.
	Position string
	// At is the time of the position (FeedLag.At).
	At time.Time
	// Behind is how many events follow the position; nil if that is not known, since the position
	// can no longer be read on from.
	Behind *uint64
	// LastSeen is when the reader last read.
	LastSeen time.Time
	// Lost reports that the position cannot be read on from although it is not too old: the hub's
	// log was reset.
	Lost bool
}

// ExpiresIn returns how long it takes until the reader's position expires; 0 if it has.
func (r *FeedReader) ExpiresIn(retention time.Duration, now time.Time) time.Duration {
	if r.Lost {
		return 0
	}
	return max(ExpiresIn(r.At, retention, now), 0)
}

// SecondsBehind returns how old the reader's position is, in whole seconds; 0 if no event follows
// it.
func (r *FeedReader) SecondsBehind(now time.Time) int64 {
	if r.Behind != nil && *r.Behind == 0 {
		return 0
	}
	return max(int64(now.Sub(r.At)/time.Second), 0)
}

// State returns how close the reader is to losing events.
func (r *FeedReader) State(retention time.Duration, now time.Time) FeedReaderState {
	if r.Lost {
		return FeedReaderExpired
	}
	return FeedReaderStateIn(ExpiresIn(r.At, retention, now), retention)
}

// MaxReaderName is the most characters of a reader's name.
const MaxReaderName = 64

// CheckReaderName returns invalid_request, naming the header, for a name that is not valid.
func CheckReaderName(name string) error {
	n := utf8.RuneCountInString(name)
	notPrintable := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if n < 1 || n > MaxReaderName || strings.ContainsFunc(name, notPrintable) || !Shows(name) {
		return Errorf(CodeInvalidRequest, "Reader: must be 1 to %d printable characters", MaxReaderName)
	}
	return nil
}
