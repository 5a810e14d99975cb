package text

// Pages are the texts of templates, by name.
var Pages = map[string]string{
	"charts-need-script": "Charts need JavaScript. The event log has every value.",
}
