package attention

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

// MailRules are what mails depend on apart from the organization. All fields are required.
type MailRules struct {
	// MailsPerHour is how many mails a member gets in an hour, at least 1, and how many urgent ones
	// besides before those are put together.
	MailsPerHour int `check:"positive"`
	// Title returns what is wrong, in a few words.
	Title func(Condition) string `check:"set"`
}

// maxTitle is the longest title, in characters: it may have a value that a device reports.
const maxTitle = 120

// Apply notes who is to get a mail about a change that Observe has returned. Decide decides about
// the mails, and must be called before the record is stored.
func (r *Record) Apply(at time.Time, c Change, org domain.OrgState, rules MailRules) {
	r.changed = true
	e := c.entry
	if !c.Ended.IsZero() {
		n := r.notice(e, c.hub)
		n.Ended = c.Ended
		for _, id := range e.To {
			if m, ok := org.Member(id); ok && !m.MailPreferences().None() {
				r.add(id, n)
			}
		}
		e.Ended, e.To, e.goneSince = true, nil, time.Time{}
		return
	}
	e.begin(c.Condition, c.hub, at, clip(rules.Title(c.Condition)))
	if _, seen := c.Condition.SeenBy(org.Seen); !seen {
		e.To = recipients(org, e.Kind.Topic(e.Severity), e.SiteID)
	}
	n := r.notice(e, c.hub)
	for _, id := range e.To {
		r.add(id, n)
	}
}

// begin makes the entry stand for an occurrence that is mailed at a time.
func (e *entry) begin(c Condition, hub ObservedHub, at time.Time, title string) {
	e.Kind, e.Severity, e.Title = c.Kind, c.Severity, title
	e.Since, e.Began = c.Since.UTC(), c.Began.UTC()
	e.Channel, e.Endpoint, e.Device, e.Room = c.Key, c.Endpoint, c.Name, c.Room
	e.SiteID = hub.SiteID
	e.Cause = hash(string(e.Hub), e.ID, at.UTC().Format(time.RFC3339Nano))
	e.Starts = append(slices.Clone(e.startsAfter(at.Add(-FlapWindow))), at.UTC())
	e.To, e.Ended, e.standsSince = nil, false, time.Time{}
}

// notice adds the notice of an entry.
func (r *Record) notice(e *entry, hub ObservedHub) *Notice {
	r.next++
	r.notices = append(r.notices, Notice{
		Number: r.next, Cause: e.Cause, Kind: e.Kind, Severity: e.Severity, Title: e.Title,
		Device: e.Device, Room: e.Room, Hub: e.Hub, HubName: cmp.Or(hub.Name, string(e.Hub)),
		SiteID: e.SiteID, Site: hub.Site, Since: e.Since,
	})
	return &r.notices[len(r.notices)-1]
}

// recipients returns the members who get a mail: owners first, then admins.
func recipients(org domain.OrgState, topic domain.MailTopic, site string) []string {
	var ids []string
	for _, role := range []domain.Role{domain.RoleOwner, domain.RoleAdmin, domain.RoleMember} {
		for _, m := range org.Members {
			if m.Role == role && m.MailPreferences().Wants(topic, site) {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids[:min(len(ids), MaxRecipients)]
}

// drop forgets what no mail needs any more, and members without mails in the last hour.
func (r *Record) drop(at time.Time) {
	r.dropNotices()
	maps.DeleteFunc(r.members, func(_ string, m *member) bool {
		m.trim(at)
		return m.idle()
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
