package attention

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"hubcloud/domain"
)

// Meaning is what a report of an alarm channel stands for: a Kind, or one of the meanings below.
type Meaning string

// The meanings of reports that are no conditions.
const (
	// MeansEvent marks reports that are only events, such as reports about the use of a door, and
	// of all reports whose words are not known.
	MeansEvent Meaning = "event"
	// MeansRejected marks a rejected code: an event that deserves a look. It is a typing error
	// mostly.
	MeansRejected Meaning = "rejected"
	// MeansIdle marks the end of what was reported before.
	MeansIdle Meaning = "idle"
)

// kinds are the kinds that a report of an alarm channel may stand for, with their severities.
var kinds = map[Kind]domain.Severity{
	Smoke: domain.SeverityAlarm, CO: domain.SeverityAlarm, Gas: domain.SeverityAlarm,
	Heat: domain.SeverityAlarm, Leak: domain.SeverityAlarm, Emergency: domain.SeverityAlarm,
	Alarm: domain.SeverityAlarm, Tamper: domain.SeverityAlarm, Jammed: domain.SeverityAlarm,
	NotLocked: domain.SeverityAlarm,
	Fault:     domain.SeverityWarning, Warning: domain.SeverityWarning,
	Battery: domain.SeverityWarning, Service: domain.SeverityWarning,
}

// Severity returns the severity of the condition that a report stands for; false if it stands for
// none.
func (m Meaning) Severity() (domain.Severity, bool) {
	severity, ok := kinds[Kind(m)]
	return severity, ok
}

// notifications is the table of what the words of alarm channels mean.
//
//go:embed notifications.txt
var notifications string

// anyType is the name of the part of the table with words of any type.
const anyType = "*"

// endsPart is the name of the part of the table with the events that end others.
const endsPart = "ends"

// alarmTable is the table of what the words of alarm channels mean.
type alarmTable struct {
	// words are the entries by AlarmKey. A label has an entry without its type too: no two types
	// have the same label with different meanings.
	words map[string]alarmEntry
	// types are the numbers of types by the keys of their names.
	types map[string]string
	// ends are the keys of the events that an event ends, by its key.
	ends map[string][]string
}

var alarms = sync.OnceValue(func() alarmTable {
	words, types, ends := map[string]alarmEntry{}, map[string]string{}, map[string][]string{}
	number := ""
	for line := range strings.Lines(notifications) {
		line = strings.TrimRight(line, "\n")
		entry, indented := strings.CutPrefix(line, "\t")
		if !indented {
			var name string
			if number, name, _ = strings.Cut(line, " "); name != "" {
				types[wordKey(name)] = number
			}
			continue
		}
		if number == endsPart {
			by, ended, _ := strings.Cut(entry, ": ")
			for _, key := range wordKeys(by) {
				ends[key] = append(ends[key], wordKeys(ended)...)
			}
			continue
		}
		fields := strings.SplitN(entry, " ", 3)
		meaning := Meaning(fields[1])
		if number == anyType {
			for word := range strings.SplitSeq(fields[2], ",") {
				key := AlarmKey("", word)
				words[key] = alarmEntry{meaning, strings.TrimSpace(word), words[key].own}
			}
			continue
		}
		words[AlarmKey(number, fields[0])] = alarmEntry{meaning, fields[2], true}
		words[AlarmKey("", fields[2])] = alarmEntry{meaning, fields[2], true}
	}
	return alarmTable{words, types, ends}
})

// wordKeys returns the keys of words with commas between them.
func wordKeys(words string) (keys []string) {
	for word := range strings.SplitSeq(words, ",") {
		keys = append(keys, wordKey(word))
	}
	return keys
}

// alarmEntry is an entry of the table.
type alarmEntry struct {
	meaning Meaning
	label   string
	// own reports that the event is one of a type's, not a word of any type.
	own bool
}

// AlarmWords returns the table of what the words of alarm channels mean, by AlarmKey.
func AlarmWords() iter.Seq2[string, Meaning] {
	return func(yield func(string, Meaning) bool) {
		for key, entry := range alarms().words {
			if !yield(key, entry.meaning) {
				return
			}
		}
	}
}

// AlarmKey returns the key of words in the table: their ASCII letters, in lower case, and digits,
// so that "Smoke detected" and "smoke_detected" are one. An event that is a number has the number
// of its type before it.
func AlarmKey(typ, event string) string {
	if key := wordKey(event); strings.Trim(key, "0123456789") != "" {
		return key
	}
	return wordKey(typ) + "/" + wordKey(event)
}

func wordKey(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(word))
}

// AlarmReport is the value of an alarm channel.
type AlarmReport struct {
	Type, Event alarmWord
	// Active is false when what was reported before has ended.
	Active bool
}

// alarmWord is a text or a number of an alarm. Other values are empty.
type alarmWord string

// UnmarshalJSON implements json.Unmarshaler.
func (w *alarmWord) UnmarshalJSON(value []byte) error {
	var word any
	if err := json.Unmarshal(value, &word); err != nil {
		return err
	}
	switch word.(type) {
	case string, float64:
		*w = alarmWord(fmt.Sprint(word))
	}
	return nil
}

// Meaning returns what the report stands for while it is active, and its event for display.
func (r AlarmReport) Meaning() (m Meaning, event string) {
	entry, _ := r.entry()
	return entry.meaning, entry.label
}

// entry returns the entry of the table for the report, with its event for display, and whether the
// table has one.
func (r AlarmReport) entry() (entry alarmEntry, known bool) {
	words, event := alarms().words, string(r.Event)
	entry, known = words[AlarmKey(string(r.Type), event)]
	if !known && slices.Contains(VagueEvents, wordKey(event)) {
		event = string(r.Type)
		entry, known = words[AlarmKey("", event)]
	}
	switch {
	case !known:
		return alarmEntry{meaning: MeansEvent, label: string(r.Event)}, false
	case strings.Trim(event, "0123456789") != "":
		entry.label = event
	}
	return entry, true
}

// VagueEvents are the events that only say that there is something: their type says what.
var VagueEvents = []string{"", "detected", "alarm", "alert", "active", "triggered"}
