package text

// notifications are the texts of the page of notifications, and of the page that ends alarm mails.
var notifications = map[string]string{
	"alarm-mails":      "Alarm mails",
	"alarm-mails-help": "You get one mail when something begins, and one when it ends.",
	"mails-about":      "Mail me about",
	"mails-alarms":     "Alarms",
	"mails-alarms-help": "Smoke, leaks, tampering, jammed locks and hubs that are offline. " +
		"Owners and admins get these unless they choose otherwise.",
	"mails-all":            "Alarms and warnings",
	"mails-all-help":       "Also low batteries, devices out of reach and failed commands.",
	"mails-none":           "Nothing",
	"mails-none-help":      "You get no alarm mails.",
	"mails-sites":          "Sites",
	"mails-all-sites-help": "Also those that are created later.",
	"mails-chosen-sites":   "Only these sites:",
	"mails-no-sites":       "There are no sites yet.",
	"mails-more-sites":     "The organization has more sites than can be chosen here.",
	"mails-save":           "Save",
	"mails-limit": "You get at most {number} an hour. If more happens, one of them lists the " +
		"rest. Red alarms of devices, such as smoke, leaks and jams, are mailed at once in any case.",
	"notifications":       "Notifications",
	"unsubscribe":         "Stop alarm mails?",
	"unsubscribe-what":    "You will get no more alarm mails from",
	"unsubscribe-do":      "Stop these mails",
	"unsubscribe-not":     "To keep getting them, close this page.",
	"unsubscribed":        "Alarm mails stopped",
	"unsubscribed-what":   "You get no more alarm mails from",
	"unsubscribed-undo":   "Sign in to choose your mails",
	"unsubscribe-unknown": "This link does not work",
	"unsubscribe-unknown-what": "Part of the link may be missing, or you are no longer a member of the " +
		"organization. Members choose their mails after signing in.",
	"unsubscribe-sign-in": "Sign in",
}
