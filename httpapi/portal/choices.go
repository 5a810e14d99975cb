package portal

// filterChoice is a value of a filter with its label.
type filterChoice struct {
	Value, Label string
}

// eventTypes are the types of events to filter by: what a type begins with.
var eventTypes = []filterChoice{
	{"", "All types"},
	{"channel.observed", "Reports of devices"},
	{"channel.desired", "Commands"},
	{"device.", "Devices: joined, removed, out of reach"},
	{"hub.", "Hub: connections"},
	{"credential.", "Access codes"},
	{"rule.", "Rules"},
}

// feedSeverities are the least severities of live events to show, by their numbers.
var feedSeverities = []filterChoice{
	{"1", "Important"},
	{"2", "Alarms and warnings"},
	{"3", "Alarms"},
	{"0", "Everything"},
}
