package text

// Pages are the texts of templates, by name.
var Pages = map[string]string{
	"back-to-form": "Back to the form",
	"draft":        "Check the form and send it again.",
	"draft-title":  "Your session ended before this was saved.",
	"old-form": "You signed in again after the page was loaded. Open the form again: what you " +
		"typed is kept.",
	"old-form-title":     "Your change was not saved",
	"lower":              "Lower",
	"raise":              "Raise",
	"other-mode":         "Other…",
	"other-mode-name":    "Name of another mode",
	"changed":            ChangedTag,
	"charts-need-script": "Charts need JavaScript. The event log has every value.",
}
