package attention

import (
	"cmp"
	"slices"
	"time"

	"hubcloud/domain"
)

// Change is a condition that has begun or ended, and is to be mailed.
type Change struct {
	// Condition has begun. It is zero for an end.
	Condition Condition
	// Ended is when the condition ended; zero for a begin.
	Ended time.Time
	hub   ObservedHub
	entry *entry
}

// Observe observes the organization's hubs, and returns what is to be mailed now. hubs has the hubs
// with conditions, and the ones in Hubs that the organization still has: conditions of other hubs
// are forgotten. A change is returned again until Apply.
func (r *Record) Observe(at time.Time, hubs map[domain.HubID]ObservedHub) []Change {
	var changes []Change
	standing := map[key]bool{}
	r.left = 0
	for _, c := range conditionsOf(hubs) {
		k := key{c.Hub, c.ID}
		standing[k] = true
		e := r.entry(k, c)
		if e == nil {
			r.left++
			continue
		}
		e.goneSince = time.Time{}
		if e.Cause != "" && !e.Ended {
			e.Device, e.Room = c.Name, c.Room // the name may be known, or another, by now
			continue
		}
		if e.standsSince.IsZero() {
			e.standsSince = at
		}
		if at.Sub(e.standsSince) >= StartHold(c.Kind) {
			changes = append(changes, Change{Condition: c, hub: hubs[c.Hub], entry: e})
		}
	}
	for k, e := range r.entries {
		if standing[k] {
			continue
		}
		hub, known := hubs[k.hub]
		e.standsSince = time.Time{}
		switch {
		case !known, e.Ended && !e.startedAfter(at.Add(-FlapWindow)):
			r.changed = r.changed || e.Cause != ""
			delete(r.entries, k)
		case e.Cause == "":
			delete(r.entries, k)
		case e.Ended:
		case !hub.hasEnded(e):
			e.goneSince = time.Time{}
		case e.goneSince.IsZero():
			e.goneSince = at
		case at.Sub(e.goneSince) >= EndHold(len(e.startsAfter(at.Add(-FlapWindow)))):
			changes = append(changes, Change{Ended: e.goneSince, hub: hub, entry: e})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(
			cmp.Compare(a.entry.Hub, b.entry.Hub), cmp.Compare(a.entry.ID, b.entry.ID),
		)
	})
	return changes
}

// conditionsOf returns the conditions of all hubs, the most urgent first.
func conditionsOf(hubs map[domain.HubID]ObservedHub) []Condition {
	var all []Condition
	for _, hub := range hubs {
		all = append(all, Of(hub.State)...)
	}
	slices.SortFunc(all, Compare)
	return all
}

// entry returns the entry of a condition, a new one if there is none, or nil if there are too many.
func (r *Record) entry(k key, c Condition) *entry {
	if e := r.entries[k]; e != nil {
		return e
	}
	limit := MaxConditions
	switch {
	case c.Kind.Urgent(c.Severity):
		limit += MaxUrgent
	case c.Severity != domain.SeverityAlarm:
		limit = limit * 3 / 4
	}
	if len(r.entries) >= limit {
		return nil
	}
	if r.entries == nil {
		r.entries = map[key]*entry{}
	}
	e := &entry{Hub: k.hub, ID: k.id, DeviceID: c.DeviceID}
	r.entries[k] = e
	return e
}

func (e *entry) startedAfter(at time.Time) bool { return len(e.startsAfter(at)) > 0 }

func (e *entry) startsAfter(at time.Time) []time.Time {
	i := slices.IndexFunc(e.Starts, func(start time.Time) bool { return start.After(at) })
	if i < 0 {
		return nil
	}
	return e.Starts[i:]
}

// Interrupt records that the next observation does not follow the last one: conditions may have
// begun and ended in between.
func (r *Record) Interrupt() {
	for k, e := range r.entries {
		if e.standsSince, e.goneSince = (time.Time{}), (time.Time{}); e.Cause == "" {
			delete(r.entries, k)
		}
	}
}

// Adopt follows the conditions that began before a time as if they had been mailed to nobody. It is
// for an organization whose earlier mails are not known.
func (r *Record) Adopt(hubs map[domain.HubID]ObservedHub, before time.Time) {
	for _, c := range conditionsOf(hubs) {
		if !c.Began.Before(before) {
			continue
		}
		if e := r.entry(key{c.Hub, c.ID}, c); e != nil && e.Cause == "" {
			e.begin(c, hubs[c.Hub], before, "")
			r.changed = true
		}
	}
}
