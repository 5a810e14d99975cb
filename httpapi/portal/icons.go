package portal

import "html/template"

// icons are the paths of icons, which are 20 units wide and high and drawn as lines.
var icons = map[string]string{
	"overview": "M3 3h6v7H3zM11.5 3h5.5v4h-5.5zM11.5 9.5h5.5V17h-5.5zM3 12.5h6V17H3z",
	"site":     "M4 17V4.5h7V17M11 8.5h5V17M2.5 17h15M6.5 7.5h2M6.5 10.5h2M6.5 13.5h2",
	"device": "" +
		"M6 2.5h8a1 1 0 0 1 1 1v13a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1v-13a1 1 0 0 1 1-1zM8.5 14.5h3",
	"events": "M2.5 10H6l2.5-6 3.5 12 2.5-6h3",
	"people": "M7.5 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6z" +
		"M2.5 16.5c.4-3 2.3-4.5 5-4.5s4.6 1.5 5 4.5M13 4.3a3 3 0 0 1 0 5.4M15 12.4c1.5.7 2.3 2 2.5 4.1",
	"developers": "M6.5 6 2.5 10l4 4M13.5 6l4 4-4 4M11.5 4l-3 12",
	"settings":   "M3 6h7M14 6h3M12 4v4M3 14h3M10 14h7M8 12v4",
	"help": "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15z" +
		"M7.8 8a2.2 2.2 0 1 1 3.3 1.9c-.7.4-1.1.9-1.1 1.6M10 14v.3",
	"menu":      "M3 5.5h14M3 10h14M3 14.5h14",
	"collapse":  "M3.5 3.5h13v13h-13zM8 3.5v13M13 8l-2 2 2 2",
	"out":       "M8 3.5H4v13h4M8.5 10H17M14 7l3 3-3 3",
	"switch":    "m7 7.5 3-3 3 3M7 12.5l3 3 3-3",
	"locked":    "M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 6 0V9M10 12.3v1.7",
	"unlocked":  "M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 5.8-1.1M10 12.3v1.7",
	"door":      "M5.5 17V3h9v14M3.5 17h13M12 10.2v.1",
	"door-open": "M4.5 17V3h11v14M2.5 17h15M4.5 3l6.5 2.5V19l-6.5-2M9 11v.1",
	"gate":      "M3 17V7l7-4 7 4v10M5.5 17V9.5h9V17M5.5 12h9M5.5 14.5h9",
	"gate-open": "M3 17V7l7-4 7 4v10M5.5 17V9.5h9V17M5.5 11.5h9",
	"smoke": "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15z" +
		"M10 12.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM10 4.8v.1M15 10h.1M10 15v.1M5 10h.1",
	"flame": "" +
		"M10 17.5c3 0 5-2.1 5-4.9 0-3.6-3.6-5-3.6-9.1-2.7 1.4-3.4 3.6-3.3" +
		" 5.4-.8-.5-1.2-1.3-1.2-2.1-1.3 1.5-1.9 3.4-1.9 5.8 0 2.8 2 4.9 5 4.9z",
	"drop":       "M10 3c3 3.7 5 6.3 5 9a5 5 0 0 1-10 0c0-2.7 2-5.3 5-9z",
	"bulb":       "M7.5 14.5c0-2-2.5-3-2.5-6.2a5 5 0 0 1 10 0c0 3.2-2.5 4.2-2.5 6.2zM8 17h4",
	"power":      "M10 3v6.5M6 5.5a6 6 0 1 0 8 0",
	"thermostat": "M8 11.8V4.5a2 2 0 0 1 4 0v7.3a3.5 3.5 0 1 1-4 0zM10 8v6.5",
	"motion": "M10 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4z" +
		"M6.3 13.7a5.2 5.2 0 0 1 0-7.4M13.7 6.3a5.2 5.2 0 0 1 0 7.4M3.9 16.1a8.6 8.6 0 0 1" +
		" 0-12.2M16.1 3.9a8.6 8.6 0 0 1 0 12.2",
	"shade": "M3 3.5h14M4.5 3.5v9h11v-9M4.5 6.5h11M4.5 9.5h11M10 12.5v3.5",
	"bolt":  "M11 2.5 4.5 11.5H10L9 17.5l6.5-9H10z",
	"keypad": "M4 3h12v14H4zM7.5 7h.1M10 7h.1M12.5 7h.1M7.5 10h.1M10 10h.1" +
		"M12.5 10h.1M10 13h.1",
	"hub":    "M4 7h12v8H4zM7 11h.1M10 11h.1M13 11h.1M10 7V3.5",
	"search": "M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM13 13l4 4",
}

// icon returns an icon. It is hidden from screen readers: words stand beside it.
func icon(name string) template.HTML {
	// Safe: the paths are constants.
	return template.HTML(
		`<svg class="line" viewBox="0 0 20 20" aria-hidden="true"><path d="` + icons[name] +
			`"/></svg>`,
	)
}
