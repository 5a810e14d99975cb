package portal

// notices are the results of actions that a page can show, by name.
var notices = map[string]string{
	"signed-out":    "You are signed out.",
	"session-ended": "Your session has ended. Sign in again to continue where you were.",
	"form-not-sent": "Your session has ended, so your change was not saved. Sign in again: you " +
		"return to the form, with what you typed.",
	"organization-created": "Organization created. Next, add a site and its hubs.",
	"role-changed":         "Role changed.",
	"member-removed":       "Member removed. They can no longer see the organization.",
	"left":                 "You have left the organization.",
	"invited":              "Invitation sent.",
	"invitation-used":      "The link of the invitation does not sign in any more. Sign in here.",
	"invitation-revoked":   "Invitation withdrawn. Its link no longer works.",
	"key-changed":          "Key changed. Its event streams have ended and begin again.",
	"key-shown": "This key has already been created. It was shown once: if you did not " +
		"copy it, revoke it and create another, or rotate it again.",
	"code-shown": "This code has already been added. It was shown once: if it was not copied, " +
		"revoke it and add another.",
	"code-changed": "Saved. The lock gets the change when its hub is online.",
	"code-revoked": "Code revoked. It opens until the lock has removed it.",
	"key-revoked":  "Key revoked. Its requests are rejected and its streams have ended.",
	"webhook-shown": "This webhook has already been created. Its secret was shown once: if you did " +
		"not copy it, make a new one.",
	"webhook-changed":      "Webhook changed.",
	"webhook-deleted":      "Webhook deleted.",
	"site-created":         "Site created.",
	"site-renamed":         "Site renamed.",
	"organization-renamed": "Organization renamed.",
	"book-saved":           "Saved. The book keeps what happens from now on.",
	"name-saved":           "Your name is saved.",
	"mails-chosen":         "Saved.",
	"test-mail-sent":       "Test mail sent. If it does not arrive, look among unwanted mails.",
	"undone":               "Undone.",
	"undone-partly":        "Undone, except for what somebody has changed again since.",
	"undo-newer":           "Not undone: somebody has changed it again since.",
	"undo-over":            "Not undone: nothing was changed, or it is too late. Change it back yourself.",
	"condition-seen":       "Marked as seen.",
	"condition-unseen":     "Marked as not seen.",
	"hub-removed":          "Hub removed from the organization.",
	// {hub} and {site} are the names of the hub that the notice is about and of its site.
	"hub-added":        "{hub} was added to {site}. Next, pair its devices.",
	"hub-virtual":      "{hub} was added to {site}. The service simulates it: try commands, pairing and events.",
	"hub-moved":        "{hub} was moved to {site}. It was already yours.",
	"hub-renamed":      "Renamed to {hub}, at {site}. It was already yours.",
	"hub-changed":      "Renamed to {hub} and moved to {site}. It was already yours.",
	"hub-unchanged":    "Nothing to change: {hub} was already yours, at {site}.",
	"command-sent":     "Command sent. The channel shows its result.",
	"devices-placed":   "Devices moved.",
	"room-renamed":     "Room renamed.",
	"device-labeled":   "Device saved.",
	"device-forgotten": "Device forgotten.",
	"window-closed":    "Window closed.",
	"hub-placed":       "Hub saved.",
	"link-reset": "Link reset. The hub requests a new certificate within six hours, or at " +
		"once when it is restarted.",
}

// notDone are the notices of what was not done, or not wholly.
var notDone = []string{
	"session-ended", "form-not-sent", "invitation-used", "undone-partly", "undo-newer", "undo-over",
}
