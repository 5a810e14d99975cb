package live

import (
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// Severity is how much an event matters to the people who look after a building.
type Severity int

// The severities, in the order of their weight.
const (
	// SeverityRoutine is that of readings, such as a temperature, and of lights and motion.
	SeverityRoutine Severity = iota
	// SeverityNotable is that of what people do, such as locking a door or sending a command, and
	// of changes of devices, access codes and rules.
	SeverityNotable
	// SeverityWarning is that of what needs attention soon: a hub or a device that is out of reach,
	// a low battery, a rejected code.
	SeverityWarning
	// SeverityAlarm is that of what needs attention at once: smoke, leaks, tampering, jams.
	SeverityAlarm
)

// SeverityNames are the names of the severities in addresses of pages.
var SeverityNames = []string{"routine", "notable", "warning", "alarm"}

// ParseSeverity returns the severity of that name.
func ParseSeverity(name string) (Severity, bool) {
	for i, known := range SeverityNames {
		if name == known {
			return Severity(i), true
		}
	}
	return SeverityRoutine, false
}

func (s Severity) String() string { return SeverityNames[s] }

// SeverityRules are the rules by which events have severities. Pages pass them to their scripts, so
// that both have the same.
type SeverityRules struct {
	// Types are those of events by type. Other types but channel.observed are notable.
	Types map[string]Severity `json:"types"`
	// Triggered are those of boolean channels that are true, by key. Their end is notable.
	Triggered map[string]Severity `json:"triggered"`
	// Reported are those of every report of a channel, by key.
	Reported map[string]Severity `json:"reported"`
	// Alarms are those of reports of alarm channels, by attention.AlarmKey. Others and the end of
	// an alarm are notable.
	Alarms map[string]Severity `json:"alarms"`
	// Vague are the events of alarm channels for which the type is looked up in Alarms instead.
	Vague []string `json:"vague"`
	// LowBattery is the percentage below which a report of a battery is a warning.
	LowBattery float64 `json:"low_battery"`
}

// Severities are the rules of this service. They must not be changed.
var Severities = SeverityRules{
	Types: map[string]Severity{
		"hub.disconnected":   SeverityWarning,
		"hub.events_skipped": SeverityWarning,
		"hub.log_reset":      SeverityWarning,
		"device.unavailable": SeverityWarning,
		"feed.gap":           SeverityWarning,
		"portal.away":        SeverityWarning,
	},
	Triggered: map[string]Severity{
		"smoke": SeverityAlarm, "co": SeverityAlarm, "heat": SeverityAlarm, "leak": SeverityAlarm,
		"tamper": SeverityAlarm,
	},
	Reported: map[string]Severity{"lock": SeverityNotable, "barrier": SeverityNotable},
	Alarms:   alarmSeverities(), Vague: attention.VagueEvents,
	LowBattery: attention.LowBattery,
}

// severityOf returns the severity of an event.
func severityOf(event Event) Severity {
	if event.Type != "channel.observed" {
		if severity, ok := Severities.Types[event.Type]; ok {
			return severity
		}
		return SeverityNotable
	}
	var c channelEvent
	if json.Unmarshal(event.Data, &c) != nil {
		return SeverityRoutine
	}
	if severity, ok := Severities.Triggered[c.Key]; ok {
		if string(c.Value) == "true" {
			return severity
		}
		return SeverityNotable
	}
	switch c.Key {
	case "battery":
		if n, ok := numberIn(c.Value); ok && n < Severities.LowBattery {
			return SeverityWarning
		}
	case "alarm":
		return severityOfAlarm(c.Value)
	}
	return Severities.Reported[c.Key]
}

// alarmSeverities returns the severities of the words of alarm channels that are not notable.
func alarmSeverities() map[string]Severity {
	severities := map[string]Severity{}
	for key, meaning := range attention.AlarmWords() {
		if severity := severityOfMeaning(meaning); severity != SeverityNotable {
			severities[key] = severity
		}
	}
	return severities
}

func severityOfMeaning(meaning attention.Meaning) Severity {
	severity, ok := meaning.Severity()
	switch {
	case severity == domain.SeverityAlarm:
		return SeverityAlarm
	case ok, meaning == attention.MeansRejected:
		return SeverityWarning
	}
	return SeverityNotable
}

// severityOfAlarm returns the severity of a report of an alarm channel. One of another form is
// notable.
func severityOfAlarm(value json.RawMessage) Severity {
	var alarm struct {
		attention.AlarmReport
		Active *bool
	}
	if json.Unmarshal(value, &alarm) != nil || alarm.Active != nil && !*alarm.Active {
		return SeverityNotable
	}
	meaning, _ := alarm.Meaning()
	return severityOfMeaning(meaning)
}
