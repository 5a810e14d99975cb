package portal

// word is the display name of a channel key. True and False are the display names of the values of
// a boolean channel, and empty for other channels.
type word struct {
	Name  string `json:"name"`
	True  string `json:"true,omitempty"`
	False string `json:"false,omitempty"`
}

// words has a Word for each channel key of the contract. It must not be changed. Pages pass it to
// their scripts, so that both show the same text.
var words = map[string]word{
	"lock":             {"Lock", "locked", "unlocked"},
	"barrier":          {"Barrier", "open", "closed"},
	"switch":           {"Switch", "on", "off"},
	"level":            {Name: "Level"},
	"position":         {Name: "Position"},
	"color":            {Name: "Color"},
	"mode":             {Name: "Mode"},
	"heating_setpoint": {Name: "Heat to"},
	"cooling_setpoint": {Name: "Cool to"},
	"fan_mode":         {Name: "Fan mode"},
	"local_protection": {"Buttons on the device", "disabled", "enabled"},
	"operating_state":  {Name: "Operating state"},
	"fan_state":        {Name: "Fan"},
	"temperature":      {Name: "Temperature"},
	"humidity":         {Name: "Humidity"},
	"luminance":        {Name: "Light"},
	"co2":              {Name: "CO₂"},
	"contact":          {"Contact", "open", "closed"},
	"motion":           {"Motion", "detected", "clear"},
	"leak":             {"Water leak", "detected", "clear"},
	"smoke":            {"Smoke", "detected", "clear"},
	"co":               {"Carbon monoxide", "detected", "clear"},
	"heat":             {"Heat", "detected", "clear"},
	"tamper":           {"Tampering", "detected", "clear"},
	"battery":          {Name: "Battery"},
	"energy":           {Name: "Energy"},
	"power":            {Name: "Power"},
	"voltage":          {Name: "Voltage"},
	"current":          {Name: "Current"},
	"water":            {Name: "Water"},
	"gas":              {Name: "Gas"},
	"alarm":            {Name: "Alarm"},
	"scene":            {Name: "Scene"},
}
