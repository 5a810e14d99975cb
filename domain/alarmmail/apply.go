package alarmmail

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// Rules are what mails depend on apart from the organization. All fields are required.
type Rules struct {
	// MailsPerHour is how many mails a member gets in an hour, at least 1.
	MailsPerHour int
	// Title returns what is wrong, in a few words.
	Title func(attention.Condition) string
}

// maxTitle is the longest title, in characters: it may have a value that a device reports.
const maxTitle = 120

// Apply decides about the mails of a change that Observe has returned.
func (r *Record) Apply(at time.Time, c Change, org domain.OrgState, rules Rules) {
	r.changed = true
	e := c.entry
	if !c.Ended.IsZero() {
		n := r.notice(e, c.hub)
		n.Ended = c.Ended
		for _, id := range e.To {
			if m, ok := org.Member(id); ok && !m.MailPreferences().None() {
				r.mail(at, id, n, rules)
			}
		}
		e.Ended, e.To, e.goneSince = true, nil, time.Time{}
		r.drop(at)
		return
	}
	e.begin(c.Condition, c.hub, at, clip(rules.Title(c.Condition)))
	if _, seen := c.Condition.SeenBy(org.Seen); !seen {
		e.To = recipients(org, e.Severity, e.SiteID)
	}
	n := r.notice(e, c.hub)
	for _, id := range e.To {
		r.mail(at, id, n, rules)
	}
	r.drop(at)
}

// begin makes the entry that of an occurrence that is mailed at a time.
func (e *entry) begin(c attention.Condition, hub Hub, at time.Time, title string) {
	e.Kind, e.Severity, e.Title, e.Since = c.Kind, c.Severity, title, c.Since.UTC()
	e.Channel, e.Endpoint, e.Device, e.Room = c.Key, c.Endpoint, c.Name, c.Room
	e.SiteID = hub.SiteID
	e.Cause = hash(string(e.Hub), e.ID, at.UTC().Format(time.RFC3339Nano))
	e.Starts = append(slices.Clone(e.startsAfter(at.Add(-FlapWindow))), at.UTC())
	e.To, e.Ended, e.standsSince = nil, false, time.Time{}
}

// notice adds the notice of an entry.
func (r *Record) notice(e *entry, hub Hub) *Notice {
	r.next++
	r.notices = append(r.notices, Notice{
		Number: r.next, Cause: e.Cause, Kind: e.Kind, Severity: e.Severity, Title: e.Title,
		Device: e.Device, Room: e.Room, Hub: e.Hub, HubName: cmp.Or(hub.Name, string(e.Hub)),
		Site: hub.Site, Since: e.Since,
	})
	return &r.notices[len(r.notices)-1]
}

// recipients returns the members who get a mail: owners first, then admins.
func recipients(org domain.OrgState, severity domain.Severity, site string) []string {
	var ids []string
	for _, role := range []domain.Role{domain.RoleOwner, domain.RoleAdmin, domain.RoleMember} {
		for _, m := range org.Members {
			if m.Role == role && m.MailPreferences().Wants(severity, site) {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids[:min(len(ids), MaxRecipients)]
}

// mail decides whether a member gets a mail with the notice, or a digest with it later.
func (r *Record) mail(at time.Time, id string, n *Notice, rules Rules) {
	m := r.members[id]
	if m == nil {
		if r.members == nil {
			r.members = map[string]*member{}
		}
		m = &member{}
		r.members[id] = m
	}
	m.trim(at)
	if !m.waits() && len(m.Sent) < rules.MailsPerHour-1 && len(r.outgoing) < MaxOutgoing {
		r.send(at, id, m, []uint64{n.Number}, 0)
		return
	}
	if !m.waits() {
		m.WaitingSince = at.UTC()
	}
	if len(m.Waiting) < MaxListed {
		m.Waiting = append(m.Waiting, n.Number)
	} else {
		m.More++
	}
}

// send decides a mail: a digest if it has more than one notice.
func (r *Record) send(at time.Time, id string, m *member, notices []uint64, more int) {
	m.Sent = append(m.Sent, at.UTC())
	r.outgoing = append(r.outgoing, outgoing{
		ID:       hash(id, fmt.Sprint(notices, more), at.UTC().Format(time.RFC3339Nano)),
		MemberID: id, At: at.UTC(), Notices: notices, More: more,
		Digest: len(notices)+more > 1,
	})
}

// waits reports whether notices wait for a digest.
func (m *member) waits() bool { return len(m.Waiting)+m.More > 0 }

// trim forgets the mails that were sent before the last hour.
func (m *member) trim(at time.Time) {
	hourAgo := at.Add(-time.Hour)
	m.Sent = slices.DeleteFunc(m.Sent, func(sent time.Time) bool { return !sent.After(hourAgo) })
}

// DigestDue reports whether Digests has something to decide.
func (r *Record) DigestDue(at time.Time, rules Rules) bool {
	for m := range maps.Values(r.members) {
		if m.digestDue(at, rules) {
			return true
		}
	}
	return false
}

func (m *member) digestDue(at time.Time, rules Rules) bool {
	if !m.waits() || at.Sub(m.WaitingSince) < DigestDelay {
		return false
	}
	sent := 0
	for _, t := range m.Sent {
		if t.After(at.Add(-time.Hour)) {
			sent++
		}
	}
	return sent < rules.MailsPerHour
}

// Digests decides about the digests that are due. Members who have left or have chosen no mails get
// none.
func (r *Record) Digests(at time.Time, org domain.OrgState, rules Rules) {
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		m := r.members[id]
		if !m.digestDue(at, rules) || len(r.outgoing) >= MaxOutgoing {
			continue
		}
		m.trim(at)
		if who, ok := org.Member(id); ok && !who.MailPreferences().None() {
			r.send(at, id, m, m.Waiting, m.More)
		}
		m.Waiting, m.More, m.WaitingSince = nil, 0, time.Time{}
		r.changed = true
	}
	r.drop(at)
}

// drop forgets what no mail needs any more, and members without mails in the last hour.
func (r *Record) drop(at time.Time) {
	r.dropNotices()
	maps.DeleteFunc(r.members, func(_ string, m *member) bool {
		m.trim(at)
		return len(m.Sent) == 0 && !m.waits()
	})
}

// clip shortens a title to maxTitle characters.
func clip(title string) string {
	if runes := []rune(title); len(runes) > maxTitle {
		return string(runes[:maxTitle-1]) + "…"
	}
	return title
}

// hash returns 32 hexadecimal digits that identify texts.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
