package text

// DeviceSearches are the choices of the page that finds devices, by name.
var DeviceSearches = map[string]string{
	"unlocked":      "Unlocked doors",
	"locked":        "Locked doors",
	"open-doors":    "Open doors and windows",
	"open-barriers": "Open barriers",
	"on":            "Switches that are on",
	"smoke":         "Smoke",
	"leaks":         "Water leaks",
	"unreachable":   "Not reachable",
	"low-batteries": "Batteries below 20 %",
	"failed":        "Commands that failed",
	"locks":         "All locks",
	"heating":       "All heating setpoints",
	"temperatures":  "All temperatures",
	"humidity":      "All humidity sensors",
	"batteries":     "All batteries",
	"contacts":      "All door and window contacts",
}
