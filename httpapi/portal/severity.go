package portal

import (
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// eventSeverity is how much an event matters to the people who look after a building.
type eventSeverity int

// The severities, in the order of their weight.
const (
	// severityRoutine is for readings, such as a temperature, and of lights and motion.
	severityRoutine eventSeverity = iota
	// severityNotable is for what people do, such as locking a door or sending a command, and
	// of changes of devices, access codes and rules.
	severityNotable
	// severityWarning is for what needs attention soon: a hub or a device that is out of reach,
	// a low battery, a rejected code.
	severityWarning
	// severityAlarm is for what needs attention at once: smoke, leaks, tampering, jams.
	severityAlarm
)

// severityNames are the names of the severities in addresses of pages.
var severityNames = []string{"routine", "notable", "warning", "alarm"}

func (s eventSeverity) String() string { return severityNames[s] }

// severityRules are the rules by which events have severities. Pages pass them to their scripts, so
// that both have the same.
type severityRules struct {
	// Types are the severities of events by type. Other types but channel.observed are notable.
	Types map[string]eventSeverity `json:"types"`
	// Triggered are the severities of boolean channels that are true, by key. Their end is notable.
	Triggered map[string]eventSeverity `json:"triggered"`
	// Reported are the severities of every report of a channel, by key.
	Reported map[string]eventSeverity `json:"reported"`
	// Alarms are the severities of reports of alarm channels, by attention.AlarmKey. Others and the
	// end of an alarm are notable.
	Alarms map[string]eventSeverity `json:"alarms"`
	// Vague are the events of alarm channels for which the type is looked up in Alarms instead.
	Vague []string `json:"vague"`
	// LowBattery is the percentage below which a report of a battery is a warning.
	LowBattery float64 `json:"low_battery"`
}

// severities are the rules of this service. They must not be changed.
var severities = severityRules{
	Types: map[string]eventSeverity{
		"hub.disconnected":   severityWarning,
		"hub.events_skipped": severityWarning,
		"hub.log_reset":      severityWarning,
		"device.unavailable": severityWarning,
		"feed.gap":           severityWarning,
		"portal.away":        severityWarning,
	},
	Triggered: map[string]eventSeverity{
		"smoke": severityAlarm, "co": severityAlarm, "heat": severityAlarm, "leak": severityAlarm,
		"tamper": severityAlarm,
	},
	Reported: map[string]eventSeverity{"lock": severityNotable, "barrier": severityNotable},
	Alarms:   alarmSeverities(), Vague: attention.VagueEvents,
	LowBattery: attention.LowBattery,
}

// severityOf returns the severity of an event.
func severityOf(event logEvent) eventSeverity {
	if event.Type != "channel.observed" {
		if severity, ok := severities.Types[event.Type]; ok {
			return severity
		}
		return severityNotable
	}
	var c channelEvent
	if json.Unmarshal(event.Data, &c) != nil {
		return severityRoutine
	}
	if severity, ok := severities.Triggered[c.Key]; ok {
		if string(c.Value) == "true" {
			return severity
		}
		return severityNotable
	}
	switch c.Key {
	case "battery":
		if n, ok := numberIn(c.Value); ok && n < severities.LowBattery {
			return severityWarning
		}
	case "alarm":
		return severityOfAlarm(c.Value)
	}
	return severities.Reported[c.Key]
}

// alarmSeverities returns the severities of the words of alarm channels that are not notable.
func alarmSeverities() map[string]eventSeverity {
	severities := map[string]eventSeverity{}
	for key, meaning := range attention.AlarmWords() {
		if severity := severityOfMeaning(meaning); severity != severityNotable {
			severities[key] = severity
		}
	}
	return severities
}

func severityOfMeaning(meaning attention.Meaning) eventSeverity {
	severity, ok := meaning.Severity()
	switch {
	case severity == domain.SeverityAlarm:
		return severityAlarm
	case ok, meaning == attention.MeansRejected:
		return severityWarning
	}
	return severityNotable
}

// severityOfAlarm returns the severity of a report of an alarm channel. One of another form is
// notable.
func severityOfAlarm(value json.RawMessage) eventSeverity {
	var alarm struct {
		attention.AlarmReport
		Active *bool
	}
	if json.Unmarshal(value, &alarm) != nil || alarm.Active != nil && !*alarm.Active {
		return severityNotable
	}
	meaning, _ := alarm.Meaning()
	return severityOfMeaning(meaning)
}
