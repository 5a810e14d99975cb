package attention

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"hubcloud/domain"
)

// member is what is known of the mails of a member.
type member struct {
	// Sent and UrgentSent are when mails of the last hour were decided, oldest first.
	Sent       []time.Time `json:"sent,omitempty"`
	UrgentSent []time.Time `json:"urgent_sent,omitempty"`
	// Groups are when mails of the last hour were decided about each kind and site, by group.key.
	Groups map[string][]time.Time `json:"groups,omitempty"`
	// Waiting are the numbers of the notices that wait for a mail, and More how many of them it
	// will not list. WaitingSince is since when they wait for a digest; zero if they do not.
	Waiting      []uint64  `json:"waiting,omitempty"`
	More         int       `json:"more,omitempty"`
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	// Quiet are the numbers of notices that wait until the member's quiet hours end at QuietUntil, and
	// QuietMore how many of them are left out.
	Quiet      []uint64  `json:"quiet,omitempty"`
	QuietMore  int       `json:"quiet_more,omitempty"`
	QuietUntil time.Time `json:"quiet_until,omitzero"`
	// Urgent are the numbers of urgent notices that wait for a mail. The last one about notices of
	// several groups was decided at Together.
	Urgent   []uint64  `json:"urgent,omitempty"`
	Together time.Time `json:"together,omitzero"`
}

// idle reports whether nothing is to be known of the member any more.
func (m *member) idle() bool {
	return len(m.Sent)+len(m.UrgentSent)+len(m.Waiting)+len(m.Urgent)+len(m.Quiet)+m.More == 0
}

// trim forgets the mails that were sent before the last hour.
func (m *member) trim(at time.Time) {
	m.Sent, m.UrgentSent = lastHour(m.Sent, at), lastHour(m.UrgentSent, at)
	for key, sent := range m.Groups {
		if m.Groups[key] = lastHour(sent, at); len(m.Groups[key]) == 0 {
			delete(m.Groups, key)
		}
	}
}

// lastHour returns the times of the hour before a time.
func lastHour(sent []time.Time, at time.Time) []time.Time {
	i := slices.IndexFunc(sent, func(t time.Time) bool { return t.After(at.Add(-time.Hour)) })
	if i < 0 {
		return nil
	}
	return sent[i:]
}

// Urgent reports whether the notice is about an urgent condition.
func (n Notice) Urgent() bool { return n.Kind.Urgent(n.Severity) }

// group are notices about one kind of condition at one site.
type group struct {
	key     string
	kind    Kind
	numbers []uint64
}

// groups returns the groups of notices, the most urgent kind first.
func (r *Record) groups(numbers []uint64, urgent bool) (groups []group) {
	for _, number := range numbers {
		n := r.notices[r.find(number)]
		key := fmt.Sprint(urgent, " ", n.Kind, " ", n.SiteID)
		i := slices.IndexFunc(groups, func(g group) bool { return g.key == key })
		if i < 0 {
			i, groups = len(groups), append(groups, group{key: key, kind: n.Kind})
		}
		groups[i].numbers = append(groups[i].numbers, number)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return a.kind.Worse(b.kind) })
	return groups
}

// find returns the index of a notice. Notices have rising numbers.
func (r *Record) find(number uint64) int {
	i, _ := slices.BinarySearchFunc(r.notices, number, func(n Notice, number uint64) int {
		return cmp.Compare(n.Number, number)
	})
	return i
}

// groupDue reports whether a mail about a group may go to a member now: at once if there was none
// in the last hour, or if all that stands is new, and otherwise after a pause.
func (r *Record) groupDue(at time.Time, id string, m *member, g group) bool {
	sent := lastHour(m.Groups[g.key], at)
	begun := slices.DeleteFunc(slices.Clone(g.numbers), func(number uint64) bool {
		return !r.notices[r.find(number)].Ended.IsZero()
	})
	first := r.notices[r.find(g.numbers[0])]
	if len(sent) == 0 || len(begun) > 0 && r.standing(id, first) <= len(begun) {
		return true
	}
	pause := GroupPause
	if len(sent) >= groupMails {
		pause = longGroupPause
	}
	return at.Sub(sent[len(sent)-1]) >= pause
}

// add adds a notice to those that a member waits for. The end of an urgent condition is not urgent,
// unless it would overtake its begin.
func (r *Record) add(id string, n *Notice) {
	m := r.members[id]
	if m == nil {
		if r.members == nil {
			r.members = map[string]*member{}
		}
		m = &member{}
		r.members[id] = m
	}
	beginWaits := slices.ContainsFunc(m.Urgent, func(number uint64) bool {
		return r.notices[r.find(number)].Cause == n.Cause
	})
	if n.Urgent() && (n.Ended.IsZero() || beginWaits) {
		m.Urgent = append(m.Urgent, n.Number)
		return
	}
	m.Waiting = append(m.Waiting, n.Number)
}

// Due reports whether Decide has something to decide though nothing has changed.
func (r *Record) Due(at time.Time, rules MailRules) bool {
	for id, m := range r.members {
		isDue := func(g group) bool { return r.groupDue(at, id, m, g) }
		if slices.ContainsFunc(r.groups(m.Urgent, true), isDue) || m.digestDue(at, rules) ||
			len(m.Quiet) > 0 && !at.Before(m.QuietUntil) ||
			m.WaitingSince.IsZero() && slices.ContainsFunc(r.groups(m.Waiting, false), isDue) {
			return true
		}
	}
	return false
}

// Decide decides about the mails of notices. Members who have left or have chosen no mails get
// none.
func (r *Record) Decide(at time.Time, org domain.OrgState, rules MailRules) {
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		m := r.members[id]
		if len(m.Urgent)+len(m.Waiting)+len(m.Quiet)+m.More == 0 {
			continue
		}
		r.changed = true
		m.trim(at)
		who, ok := org.Member(id)
		if !ok || who.MailPreferences().None() {
			*m = member{Sent: m.Sent, UrgentSent: m.UrgentSent, Groups: m.Groups}
			continue
		}
		r.holdQuiet(at, m, who.MailPreferences().Quiet)
		r.decideUrgent(at, id, m, rules)
		r.decideOthers(at, id, m, rules)
	}
	r.drop(at)
}

// holdQuiet lets notices about warnings wait during a member's quiet hours, and no longer.
func (r *Record) holdQuiet(at time.Time, m *member, hours *domain.QuietHours) {
	if m.QuietUntil = hours.Until(at).UTC(); m.QuietUntil.IsZero() {
		m.Waiting, m.More = slices.Concat(m.Quiet, m.Waiting), m.More+m.QuietMore
		slices.Sort(m.Waiting)
		if m.QuietMore > 0 && m.WaitingSince.IsZero() {
			m.WaitingSince = at.UTC()
		}
		m.Quiet, m.QuietMore = nil, 0
		return
	}
	isWarning := func(number uint64) bool {
		return r.notices[r.find(number)].Severity == domain.SeverityWarning
	}
	for _, number := range m.Waiting {
		if !isWarning(number) {
			continue
		}
		if len(m.Quiet) < MaxListed {
			m.Quiet = append(m.Quiet, number)
		} else {
			m.QuietMore++
		}
	}
	if m.Waiting = slices.DeleteFunc(m.Waiting, isWarning); len(m.Waiting)+m.More == 0 {
		m.WaitingSince = time.Time{}
	}
}

// decideUrgent decides about urgent mails: one for each group, and beyond MailsPerHour one a minute
// for all groups together.
func (r *Record) decideUrgent(at time.Time, id string, m *member, rules MailRules) {
	var left []uint64
	for _, g := range r.groups(m.Urgent, true) {
		if !r.groupDue(at, id, m, g) || len(m.UrgentSent) >= rules.MailsPerHour || r.isFull(true) {
			left = append(left, g.numbers...)
			continue
		}
		r.send(at, id, m, []group{g}, Mail{Urgent: true})
	}
	slices.Sort(left)
	m.Urgent = left
	if len(m.UrgentSent) < rules.MailsPerHour || at.Sub(m.Together) < GroupPause || r.isFull(true) {
		return
	}
	due := slices.DeleteFunc(r.groups(left, true), func(g group) bool { return !r.groupDue(at, id, m, g) })
	if len(due) > 0 {
		m.Together = at.UTC()
		numbers := r.send(at, id, m, due, Mail{Urgent: true, Digest: len(due) > 1})
		m.Urgent = slices.DeleteFunc(left, func(number uint64) bool {
			return slices.Contains(numbers, number)
		})
	}
}

// decideOthers decides about mails that are not urgent: one for each group while the hour has room,
// and beyond it one about all notices.
func (r *Record) decideOthers(at time.Time, id string, m *member, rules MailRules) {
	if m.WaitingSince.IsZero() {
		var left []uint64
		full := false
		for _, g := range r.groups(m.Waiting, false) {
			switch {
			case !r.groupDue(at, id, m, g):
				left = append(left, g.numbers...)
			case full || len(m.Sent) >= rules.MailsPerHour-1 || r.isFull(false):
				full = true
				left = append(left, g.numbers...)
			default:
				r.send(at, id, m, []group{g}, Mail{})
			}
		}
		slices.Sort(left)
		if m.Waiting = left; full {
			m.WaitingSince = at.UTC()
		}
	}
	if excess := len(m.Waiting) - MaxListed; excess > 0 {
		m.Waiting, m.More = m.Waiting[:MaxListed], m.More+excess
		if m.WaitingSince.IsZero() {
			m.WaitingSince = at.UTC()
		}
	}
	if m.digestDue(at, rules) && !r.isFull(false) {
		groups := r.groups(m.Waiting, false)
		r.send(at, id, m, groups, Mail{Digest: len(groups) > 1 || m.More > 0, More: m.More})
		m.Waiting, m.More, m.WaitingSince = nil, 0, time.Time{}
	}
}

// digestDue reports whether a digest may go now.
func (m *member) digestDue(at time.Time, rules MailRules) bool {
	return !m.WaitingSince.IsZero() && at.Sub(m.WaitingSince) >= DigestDelay &&
		len(lastHour(m.Sent, at)) < rules.MailsPerHour
}

// isFull reports whether no more mails can wait for the queue.
func (r *Record) isFull(urgent bool) bool {
	n := 0
	for _, o := range r.outgoing {
		if o.Urgent == urgent {
			n++
		}
	}
	return n >= MaxOutgoing
}

// send decides a mail about groups, and returns the numbers of its notices. like has its Digest,
// Urgent and More.
func (r *Record) send(
	at time.Time, id string, m *member, groups []group, like Mail,
) (numbers []uint64) {
	at = at.UTC()
	if m.Groups == nil {
		m.Groups = map[string][]time.Time{}
	}
	for _, g := range groups {
		m.Groups[g.key] = append(m.Groups[g.key], at)
		numbers = append(numbers, g.numbers...)
	}
	if like.Urgent {
		m.UrgentSent = append(m.UrgentSent, at)
	} else {
		m.Sent = append(m.Sent, at)
	}
	o := outgoing{
		ID:       hash(id, fmt.Sprint(numbers, like.More), at.Format(time.RFC3339Nano)),
		MemberID: id, At: at, Notices: numbers, More: like.More, Digest: like.Digest,
		Urgent: like.Urgent,
	}
	if excess := len(numbers) - MaxListed; excess > 0 {
		o.Notices, o.More = numbers[:MaxListed], o.More+excess
	}
	if !o.Digest {
		o.Standing = r.standing(id, r.notices[r.find(numbers[0])])
	}
	r.outgoing = append(r.outgoing, o)
	return numbers
}

// standing returns how many conditions of the kind and site of a notice stand and go to a member.
func (r *Record) standing(id string, n Notice) (count int) {
	for _, e := range r.entries {
		if e.Cause != "" && !e.Ended && e.Kind == n.Kind && e.SiteID == n.SiteID && slices.Contains(e.To, id) {
			count++
		}
	}
	return count
}
