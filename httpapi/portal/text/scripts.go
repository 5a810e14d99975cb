package text

// Scripts are the texts of the pages' scripts, by name.
var Scripts = map[string]string{
	"session-ended":  "Your session has ended. What you typed is kept.",
	"signed-in-anew": "You signed in again after this page was loaded. What you typed is kept.",
	"sign-in":        "Sign in",
	"view-device":    "View device",
	"reload":         "Reload the page",
	"draft":          "Your session ended before this was saved. Check the form and send it again.",
}
