package text

// Choice is a value of a filter with its label.
type Choice struct {
	Value, Label string
}

// EventTypes are the types of events to filter by: what a type begins with.
var EventTypes = []Choice{
	{"", "All types"},
	{"channel.observed", "Reports of devices"},
	{"channel.desired", "Commands"},
	{"device.", "Devices: joined, removed, out of reach"},
	{"hub.", "Hub: connections"},
	{"credential.", "Access codes"},
	{"rule.", "Rules"},
}

// EventSeverities are the least severities of events to filter by.
var EventSeverities = []Choice{
	{"", "Everything"},
	{"notable", "Important"},
	{"warning", "Alarms and warnings"},
	{"alarm", "Alarms"},
}

// FeedSeverities are the least severities of live events to show, by their numbers.
var FeedSeverities = []Choice{
	{"1", "Important"},
	{"2", "Alarms and warnings"},
	{"3", "Alarms"},
	{"0", "Everything"},
}
