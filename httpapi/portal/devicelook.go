package portal

import "slices"

// look is how a device with a main channel of a key looks: its kind, its icon, and for boolean
// channels the icon while the value is true, and the colors of both values. Colors are "bad" for
// danger to people, "active" for what a person wants to see at once, such as an open door, "good" or
// "".
type look struct{ Key, Kind, Icon, TrueIcon, True, False string }

// looks are in the order in which a channel becomes the main one of its device.
var looks = []look{
	{"smoke", "Smoke and heat alarms", "smoke", "smoke", "bad", ""},
	{"co", "Smoke and heat alarms", "smoke", "smoke", "bad", ""},
	{"heat", "Smoke and heat alarms", "flame", "flame", "bad", ""},
	{"leak", "Water leak sensors", "drop", "drop", "bad", ""},
	{"lock", "Locks", "unlocked", "locked", "good", "active"},
	{"barrier", "Barriers", "gate", "gate-open", "active", ""},
	{"contact", "Doors and windows", "door", "door-open", "active", ""},
	{"mode", "Thermostats", "thermostat", "", "", ""},
	{"heating_setpoint", "Thermostats", "thermostat", "", "", ""},
	{"color", "Lights and switches", "bulb", "", "", ""},
	{"switch", "Lights and switches", "power", "power", "active", ""},
	{"motion", "Motion sensors", "motion", "motion", "active", ""},
	{"position", "Shades", "shade", "", "", ""},
	{"level", "Lights and switches", "bulb", "", "", ""},
	{"temperature", "Temperature sensors", "thermostat", "", "", ""},
	{"energy", "Meters", "bolt", "", "", ""}, {"power", "Meters", "bolt", "", "", ""},
	{"water", "Meters", "drop", "", "", ""}, {"gas", "Meters", "flame", "", "", ""},
	{"scene", "Buttons", "keypad", "", "", ""},
}

// deviceKinds are the kinds of looks, in their order.
var deviceKinds = func() (kinds []string) {
	for _, l := range looks {
		if !slices.Contains(kinds, l.Kind) {
			kinds = append(kinds, l.Kind)
		}
	}
	return kinds
}()

// kindOf returns the kind of a device with a main channel of a key; "" for another channel.
func kindOf(key string) string {
	if i := slices.Index(mainChannels, key); i >= 0 {
		return looks[i].Kind
	}
	return ""
}

// mainChannels are the keys of looks.
var mainChannels = func() (keys []string) {
	for _, l := range looks {
		keys = append(keys, l.Key)
	}
	return keys
}()

// stateTag returns the class of the tag of a main channel's value that is a danger or an open way in;
// "" for others.
func stateTag(key, value string) string {
	i := slices.Index(mainChannels, key)
	if i < 0 || !isBool([]byte(value)) || key == "switch" || key == "motion" {
		return ""
	}
	is := looks[i].False
	if value == "true" {
		is = looks[i].True
	}
	return map[string]string{"bad": "bad", "active": "wait"}[is]
}

// stateIcon returns the icon of a device whose main channel has a value; "" for another channel.
func stateIcon(key, value string) string {
	i := slices.Index(mainChannels, key)
	switch {
	case i < 0:
		return ""
	case value == "true":
		return looks[i].TrueIcon
	}
	return looks[i].Icon
}

// deviceLook is the look of a device, with its main channel and the channel's value: "true",
// "false", or "" for others.
type deviceLook struct {
	look
	Channel, Is string
}

// Look returns how the device looks. A light that can be dimmed is a bulb that its switch lights.
func (d hubDevice) Look() deviceLook {
	find := func(key string) int {
		return slices.IndexFunc(d.Channels, func(c deviceChannel) bool { return c.Key == key })
	}
	for _, l := range looks {
		i := find(l.Key)
		if i < 0 {
			continue
		}
		if lit := find("switch"); l.Icon == "bulb" && lit >= 0 {
			i, l.TrueIcon, l.True = lit, l.Icon, "active"
		}
		if l.Key == "switch" && find("level") >= 0 {
			l.Icon, l.TrueIcon = "bulb", "bulb"
		}
		main := deviceLook{look: l, Channel: channelName(d.Channels[i].Key, d.Channels[i].Endpoint)}
		if isBool([]byte(d.Channels[i].Value)) {
			main.Is = d.Channels[i].Value
		}
		return main
	}
	return deviceLook{look: look{Icon: "device"}}
}
