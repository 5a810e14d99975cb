package text

// Scripts are the texts of the pages' scripts, by name. The event list and the event log use those
// of "event" and an event's type, of "alarm" and what an alarm reports, and of a boolean channel's
// key with its new value.
var Scripts = map[string]string{
	"event hub.connected":        "Hub connected",
	"event hub.disconnected":     "Hub disconnected: {reason}",
	"event hub.events_skipped":   "The hub lost events {from} to {to}",
	"event device.added":         "Device joined: {name}",
	"event device.updated":       "Device updated: {name}",
	"event device.available":     "Device available again",
	"event device.unavailable":   "Device out of reach",
	"event device.forgotten":     "Device removed",
	"event credential.created":   "Access code added: {label} (slot {slot})",
	"event credential.applied":   "Access code is now {state}",
	"event credential.revoked":   "Access code removed",
	"event rule.created":         "Rule added: {name}",
	"event rule.updated":         "Rule changed: {name}",
	"event rule.fired":           "Rule ran",
	"event rule.deleted":         "Rule removed",
	"alarm jammed":               "Jammed",
	"alarm keypad_code_accepted": "Code accepted",
	"alarm keypad_code_rejected": "Code rejected",
	"alarm manual_lock":          "Locked by hand",
	"alarm manual_unlock":        "Unlocked by hand",
	"alarm tamper":               "Tampering detected",
	"alarm low_battery":          "Low battery",
	"alarm user":                 "{alarm} (user {user})",
	"alarm ended":                "{alarm}: ended",

	"session-ended":  "Your session has ended. What you typed is kept.",
	"signed-in-anew": "You signed in again after this page was loaded. What you typed is kept.",
	"sign-in":        "Sign in",
	"view-device":    "View device",
	"reload":         "Reload the page",
	"draft":          "Your session ended before this was saved. Check the form and send it again.",
}
