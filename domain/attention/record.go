package attention

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

// Record is what is known of the mails of one organization. The zero value is an organization
// without any. It is not safe for concurrent use.
type Record struct {
	entries map[key]*entry
	members map[string]*member
	notices []Notice
	// next is the number of the next notice.
	next     uint64
	outgoing []outgoing
	// changed reports that the stored form differs from the one that was read or written last.
	changed bool
	// left is how many conditions were not followed at the last Observe, for want of space.
	left int
}

// key identifies a condition.
type key struct {
	hub domain.HubID
	id  string
}

// entry is a condition that stands or has stood. One without a cause is not mailed yet, and is not
// stored.
type entry struct {
	Hub domain.HubID `json:"hub"`
	// ID is the condition's id.
	ID       string          `json:"id"`
	Kind     Kind            `json:"kind"`
	Severity domain.Severity `json:"severity"`
	// DeviceID is 0 for a condition of a hub.
	DeviceID int64     `json:"device_id,omitempty"`
	Channel  string    `json:"channel,omitempty"`
	Endpoint int64     `json:"endpoint,omitempty"`
	Title    string    `json:"title,omitempty"`
	Device   string    `json:"device,omitempty"`
	Room     string    `json:"room,omitempty"`
	SiteID   string    `json:"site_id,omitempty"`
	Since    time.Time `json:"since"`
	// Began is when the cloud learned of it.
	Began time.Time `json:"began"`
	// Cause identifies this occurrence.
	Cause string `json:"cause"`
	// To are the members who got the first mail.
	To []string `json:"to,omitempty"`
	// Starts are when the condition was mailed within FlapWindow, oldest first.
	Starts []time.Time `json:"starts,omitempty"`
	// Ended reports that the end was mailed. The entry is kept for FlapWindow.
	Ended bool `json:"ended,omitempty"`

	// standsSince is since when the condition has been observed in a row and is not mailed, and
	// goneSince since when its end has been observed in a row.
	standsSince, goneSince time.Time
}

// Notice announces the begin or end of a condition.
type Notice struct {
	Number uint64 `json:"number"`
	// Cause identifies the occurrence of the condition. The notices of its begin and its end have
	// the same.
	Cause    string          `json:"cause"`
	Kind     Kind            `json:"kind"`
	Severity domain.Severity `json:"severity"`
	// Title is what is wrong. Device and Room are empty for a condition of the hub itself.
	Title   string       `json:"title"`
	Device  string       `json:"device,omitempty"`
	Room    string       `json:"room,omitempty"`
	Hub     domain.HubID `json:"hub"`
	HubName string       `json:"hub_name"`
	SiteID  string       `json:"site_id,omitempty"`
	Site    string       `json:"site"`
	Since   time.Time    `json:"since"`
	// Ended is when the condition ended; zero while it stands.
	Ended time.Time `json:"ended,omitzero"`
}

// outgoing is a mail that is decided.
type outgoing struct {
	ID       string    `json:"id"`
	MemberID string    `json:"member_id"`
	At       time.Time `json:"at"`
	Notices  []uint64  `json:"notices"`
	// Digest, Urgent, More and Standing are as in Mail.
	Digest   bool `json:"digest,omitempty"`
	Urgent   bool `json:"urgent,omitempty"`
	More     int  `json:"more,omitempty"`
	Standing int  `json:"standing,omitempty"`
}

// Mail is a mail that is decided and not queued yet.
type Mail struct {
	// ID is the same at every try.
	ID, MemberID string
	// At is when the mail was decided.
	At time.Time
	// Notices has one notice or more, of one kind and site unless Digest is set. More is how many
	// notices the mail does not list.
	Notices []Notice
	More    int
	// Digest reports that the mail has what had to wait, of any kind and site.
	Digest bool
	// Urgent reports that the mail must not wait for others.
	Urgent bool
	// Standing is how many conditions of the kind and site of the notices stand and were mailed to
	// the member, this mail's included; 0 for a digest.
	Standing int
}

// stored is a record's stored form.
type stored struct {
	Entries  []*entry           `json:"entries,omitempty"`
	Members  map[string]*member `json:"members,omitempty"`
	Notices  []Notice           `json:"notices,omitempty"`
	Next     uint64             `json:"next,omitempty"`
	Outgoing []outgoing         `json:"outgoing,omitempty"`
}

// DecodeRecord returns a record from a text that Encode has returned.
func DecodeRecord(text []byte) (*Record, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("alarm mails: decode a record: %w", err)
	}
	r := &Record{
		entries: map[key]*entry{}, members: s.Members, notices: s.Notices, next: s.Next,
		outgoing: s.Outgoing,
	}
	for _, e := range s.Entries {
		r.entries[key{e.Hub, e.ID}] = e
	}
	return r, nil
}

// Encode returns the record as JSON. Observations that are not mailed yet are left out.
func (r *Record) Encode() ([]byte, error) {
	s := stored{Members: r.members, Notices: r.notices, Next: r.next, Outgoing: r.outgoing}
	for _, e := range r.entries {
		if e.Cause != "" {
			s.Entries = append(s.Entries, e)
		}
	}
	slices.SortFunc(s.Entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Hub, b.Hub), cmp.Compare(a.ID, b.ID))
	})
	return json.Marshal(s)
}

// Changed reports whether the record must be stored, and Stored that it was.
func (r *Record) Changed() bool { return r.changed }

// Stored records that the record was stored.
func (r *Record) Stored() { r.changed = false }

// Hubs returns the hubs of the conditions that are followed, with the devices of their conditions.
// Observe must get all of these hubs that the organization still has.
func (r *Record) Hubs() map[domain.HubID][]int64 {
	hubs := map[domain.HubID][]int64{}
	for k, e := range r.entries {
		hubs[k.hub] = append(hubs[k.hub], e.DeviceID)
	}
	return hubs
}

// Followed returns how many conditions are followed.
func (r *Record) Followed() int { return len(r.entries) }

// Waiting returns how many mails are decided and not queued.
func (r *Record) Waiting() int { return len(r.outgoing) }

// Quiet reports whether a notice waits until the quiet hours of a member end.
func (r *Record) Quiet() bool {
	for _, m := range r.members {
		if len(m.Quiet) > 0 {
			return true
		}
	}
	return false
}

// Settled reports whether only a change of the organization's hubs, or the end of quiet hours, can
// lead to a mail within FlapWindow: no condition is held back, and no notice or mail waits.
func (r *Record) Settled() bool {
	for _, e := range r.entries {
		if e.Cause == "" || !e.goneSince.IsZero() {
			return false
		}
	}
	for _, m := range r.members {
		if len(m.Urgent)+len(m.Waiting)+m.More > 0 {
			return false
		}
	}
	return len(r.outgoing) == 0
}

// Left returns how many conditions were not followed at the last Observe because there are too
// many.
func (r *Record) Left() int { return r.left }

// Outgoing returns the mails that are decided and not queued: the urgent ones first, and then the
// oldest first.
func (r *Record) Outgoing() []Mail {
	var mails []Mail
	for _, o := range r.outgoing {
		m := Mail{
			ID: o.ID, MemberID: o.MemberID, At: o.At, Digest: o.Digest, Urgent: o.Urgent,
			More: o.More, Standing: o.Standing,
		}
		for _, n := range r.notices {
			if slices.Contains(o.Notices, n.Number) {
				m.Notices = append(m.Notices, n)
			}
		}
		mails = append(mails, m)
	}
	slices.SortStableFunc(mails, func(a, b Mail) int {
		switch {
		case a.Urgent == b.Urgent:
			return 0
		case a.Urgent:
			return -1
		}
		return 1
	})
	return mails
}

// Queued records that a mail is in the queue, or has no recipient any more.
func (r *Record) Queued(id string) {
	r.outgoing = slices.DeleteFunc(r.outgoing, func(o outgoing) bool { return o.ID == id })
	r.changed = true
	r.dropNotices()
}

// dropNotices forgets the notices that no mail needs any more.
func (r *Record) dropNotices() {
	needed := map[uint64]bool{}
	for _, o := range r.outgoing {
		for _, n := range o.Notices {
			needed[n] = true
		}
	}
	for m := range maps.Values(r.members) {
		for _, n := range slices.Concat(m.Waiting, m.Urgent, m.Quiet) {
			needed[n] = true
		}
	}
	r.notices = slices.DeleteFunc(r.notices, func(n Notice) bool { return !needed[n.Number] })
}
