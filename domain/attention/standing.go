package attention

import (
	"encoding/json"
	"slices"
	"strings"

	"hubcloud/domain"
)

// AlarmChannel is the key of the channels that report alarms in words. All alarms of an endpoint
// share one channel, so its value is only the last report.
const AlarmChannel = "alarm"

// MaxStanding is the most alarms of a channel that stand: the most severe ones, and the newest of
// these.
const MaxStanding = 8

// alarm is a report of an alarm channel in the words of the table.
type alarm struct {
	// typ and label identify what is reported.
	typ, label string
	// entry has the text to display.
	entry alarmEntry
	// active reports that it stands, and ended that it has ended. A report may be neither.
	active, ended bool
	// whole reports that the report is about its whole type: it names no event, or an unknown one.
	whole bool
}

// alarmOf returns what a value of an alarm channel reports; false if it is no report.
func alarmOf(value json.RawMessage) (alarm, bool) {
	var r struct {
		AlarmReport
		Active *bool
	}
	if json.Unmarshal(value, &r) != nil {
		return alarm{}, false
	}
	entry, known := r.entry()
	vague := slices.Contains(VagueEvents, wordKey(string(r.Event)))
	idle := entry.meaning == MeansIdle || r.Event == "0" // the number of Idle is 0 in every type
	a := alarm{
		typ: wordKey(string(r.Type)), entry: entry,
		label:  strings.TrimSuffix(wordKey(entry.label), "locationprovided"),
		active: r.Active != nil && *r.Active && !idle,
		ended:  r.Active != nil && !*r.Active || idle,
		whole:  !known || vague || idle,
	}
	if number, ok := alarms().types[a.typ]; ok {
		a.typ = number
	}
	return a, true
}

// Stand returns the alarms of a channel that stand after a report, oldest first, from those that
// stood before it, which it does not change. An alarm stands until a report ends it that has the
// same type: its end, the end of its whole type, or an event that ends it by the table. Of the
// report it uses the value and when that was observed.
func Stand(standing []domain.StandingAlarm, report domain.StandingAlarm) []domain.StandingAlarm {
	a, ok := alarmOf(report.Value)
	if !ok {
		return standing
	}
	_, raises := a.entry.meaning.Severity()
	is := func(s domain.StandingAlarm, which func(alarm) bool) bool {
		stands, _ := alarmOf(s.Value)
		return stands.typ == a.typ && which(stands)
	}
	without := func(which func(alarm) bool) []domain.StandingAlarm {
		return slices.DeleteFunc(slices.Clone(standing), func(s domain.StandingAlarm) bool {
			return is(s, which)
		})
	}
	same := func(stands alarm) bool { return stands.label == a.label }
	switch {
	case a.ended && a.whole:
		return without(func(alarm) bool { return true })
	case a.ended && !raises:
		return standing // the end of an event
	case a.ended:
		return without(func(stands alarm) bool {
			// Words of any type are not as exact: they may name what was reported in other words.
			exact := stands.entry.own && a.entry.own
			return same(stands) || !exact && stands.entry.meaning == a.entry.meaning
		})
	case !a.active:
		return standing
	}
	standing = without(func(stands alarm) bool {
		return slices.Contains(alarms().ends[a.label], stands.label)
	})
	if !raises {
		return standing
	}
	i := slices.IndexFunc(standing, func(s domain.StandingAlarm) bool { return is(s, same) })
	if i >= 0 {
		report.ChangedAt, report.Logged.Changed = standing[i].ChangedAt, standing[i].Logged.Changed
		standing[i] = report
		return standing
	}
	report.ChangedAt, report.Logged.Changed = report.ObservedAt, report.Logged.Observed
	if standing = append(standing, report); len(standing) > MaxStanding {
		least := 0
		for i, s := range standing {
			if Compare(urgency(s), urgency(standing[least])) > 0 {
				least = i
			}
		}
		standing = slices.Delete(standing, least, least+1)
	}
	return standing
}

// urgency returns a condition with what orders an alarm among others, besides times.
func urgency(s domain.StandingAlarm) Condition {
	a, _ := alarmOf(s.Value)
	severity, _ := a.entry.meaning.Severity()
	return Condition{Kind: Kind(a.entry.meaning), Severity: severity}
}

// alarms returns the conditions of the alarms of a channel that stand. The newest alarm of a kind
// counts.
func (d DeviceState) alarms(c ChannelState) (found []Condition) {
	for _, s := range slices.Backward(c.Standing) {
		a, _ := alarmOf(s.Value)
		severity, _ := a.entry.meaning.Severity()
		at := ChannelState{ObservedAt: s.ObservedAt, ChangedAt: s.ChangedAt, Logged: s.Logged}
		condition := Condition{
			Kind: Kind(a.entry.meaning), Severity: severity, Value: s.Value, Event: a.entry.label,
			Since: at.began(), Began: s.Logged.Changed,
		}
		hasNewer := slices.ContainsFunc(found, func(newer Condition) bool {
			return newer.Kind == condition.Kind
		})
		isOver := slices.ContainsFunc(d.Channels, func(c ChannelState) bool { return c.Ends(s) })
		if !hasNewer && !isOver {
			found = append(found, condition)
		}
	}
	return found
}
