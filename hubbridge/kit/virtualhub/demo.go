package virtualhub

import "encoding/json"

// DemoDevices returns the devices of a small house, which have a channel of every key.
func DemoDevices() []DeviceSpec {
	return []DeviceSpec{
		{Kind: "lock", Name: "Front door"},
		{Kind: "thermostat", Name: "Hall thermostat"},
		{Kind: "dimmer", Name: "Dining room light"},
		{Kind: "switch", Name: "Kitchen switches", Gangs: 2},
		{Kind: "shade", Name: "Bedroom shade"},
		{Kind: "garage_door", Name: "Garage"},
		{Kind: "leak_sensor", Name: "Under the sink"},
		{Kind: "electricity_meter", Name: "Main meter"},
		{Kind: "keypad", Name: "Hall keypad"},
		{Kind: "color_bulb", Name: "Reading lamp"},
		{Kind: "climate_sensor", Name: "Living room"},
		{Kind: "smoke_alarm", Name: "Landing alarm"},
		{Kind: "contact_sensor", Name: "Back door"},
		{Kind: "outlet", Name: "Desk outlet"},
		{Kind: "water_meter", Name: "Water"},
		{Kind: "gas_meter", Name: "Gas"},
		{
			Kind:     "lock",
			Name:     "Shed door",
			Insecure: true,
			Values:   map[string]json.RawMessage{"lock": json.RawMessage("false")},
		},
	}
}

// joinableDevices returns devices that are not joined yet, for the pairing windows of a
// demonstration.
func joinableDevices() []DeviceSpec {
	return []DeviceSpec{
		{Kind: "contact_sensor", Name: "Window contact"},
		{Kind: "lock", Name: "Side door"},
		{Kind: "switch", Name: "Porch light"},
		{Kind: "climate_sensor", Name: "Attic"},
	}
}
