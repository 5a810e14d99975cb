package text

// Scopes are what the scopes of API keys allow, by scope.
var Scopes = map[string]string{
	"sites:read":  "list sites and read their details",
	"sites:write": "create and rename sites",
	"hubs:read":   "list hubs, read details and connection status, list and read devices",
	"hubs:write": "add hubs to sites, move and rename them, reset a hub's link; add, remove, name " +
		"and place devices; open and close pairing and removal windows",
	"hubs:command": "send commands and read their outcome",
	"events:read":  "read and stream events",
	"members:read": "list members and pending invitations",
	"members:write": "invite people, withdraw invitations, change admin and member roles, remove " +
		"members",
}
