package portal

import (
	"context"
	"time"

	"hubcloud/domain"
)

// problemsTimeout is how long a hub's page waits for what the hub does wrong. Without an answer the
// page is shown without it.
const problemsTimeout = 500 * time.Millisecond

// hubProblem is what a hub does wrong, in words for the people who look after the building.
type hubProblem struct {
	Reason, Title, Text string
	Since               time.Time
}

// hubProblems returns what a hub does wrong at present.
func (req *request) hubProblems(hub domain.Hub) (problems []hubProblem) {
	if hub.ChannelsOmitted {
		problems = append(problems, hubProblem{
			Reason: "too_many_channels", Title: "Not everything that this hub has is kept.",
			Text: "It reports more devices and channels than the cloud keeps, or your organization's " +
				"hubs do together. New ones are missing among what was last reported, and nothing is " +
				"mailed about them; its events are in the event log. If it has no more than a few " +
				"hundred devices, its firmware has a fault: ask its maker.",
		})
	}
	ctx, cancel := context.WithTimeout(req.ctx, problemsTimeout)
	defer cancel()
	faults, err := req.Faults.HubFaults(ctx, req.hub)
	if err != nil {
		req.Logger.DebugContext(
			ctx, "faults of hub unknown", "hub_id", req.hub, "request_id", req.info.RequestID,
			"error", err,
		)
		return problems
	}
	for _, fault := range faults {
		title, text := problemText(fault.Reason)
		problems = append(problems, hubProblem{fault.Reason, title, text, fault.Since})
	}
	return problems
}

// problemText returns a title and a text for the reason of a fault.
func problemText(reason string) (title, text string) {
	const restart = " Restart the hub. If this message comes back, the hub needs a new firmware: ask " +
		"its maker."
	switch reason {
	case "no_hello":
		return "This hub does not report to the cloud.",
			"It is connected, but sends nothing: new events are missing here." + restart
	case "no_progress":
		return "New events of this hub do not arrive.",
			"It is connected, but does not send the events that come next. What its devices did since " +
				"is missing here." + restart
	case "malformed_events":
		return "Some events of this hub cannot be read.",
			"They are missing in the event log. The hub's firmware has a fault: ask its maker."
	case "unreadable_messages":
		return "Some messages of this hub cannot be read.",
			"Events may be missing here. The hub's firmware has a fault: ask its maker."
	case "too_much_data":
		return "This hub sends more than the cloud keeps.",
			"New events wait in the hub until there is room for them, and are lost when its memory is " +
				"full. Find out which of its devices reports all the time. If other hubs show this " +
				"too, ask the operator of this service."
	case "foreign_topic":
		return "This hub sends messages that it may not send.",
			"They are dropped. The hub's firmware has a fault, or somebody has changed it: ask its maker."
	case "qos2", "mqtt_violation":
		return "The connection of this hub breaks again and again.",
			"The hub sends in a way that the cloud does not accept. Its firmware has a fault: ask its maker."
	}
	return "This hub does not work as it should.", "Ask its maker."
}
