package live

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// Control is how a channel is set. The zero value is none.
type Control struct {
	// Kind is toggle, guarded (a toggle that asks once more), percent, degrees, choice or color; ""
	// for none.
	Kind string
	// On and Off are what the two ends of a toggle are called when one brings them about.
	On, Off string
	// IsOn says where a toggle stands, Unknown that nobody knows: then it can be set either way.
	IsOn, Unknown bool
	// Current is the value to begin with; Min and Max are the bounds of a setpoint, empty when the
	// hub names none.
	Current  string
	Min, Max string
	// Bounds says them in words.
	Bounds string
	// WarmWhite is the component of a color that a picker does not have.
	WarmWhite string
	// Choices are names that a mode is known to have: hubs may take others.
	Choices []string
}

// controlOf gives the control that fits a channel that takes commands. A channel of an unknown key
// has none.
func controlOf(c domain.Channel) Control {
	switch c.Key {
	case "switch":
		return toggle(c, "toggle", "Turn on", "Turn off")
	case "local_protection":
		return toggle(c, "toggle", "Lock out", "Let work")
	case "lock":
		return toggle(c, "guarded", "Lock", "Unlock")
	case "barrier":
		return toggle(c, "guarded", "Open", "Close")
	case "level", "position":
		return Control{Kind: "percent", Current: number(c), Min: "0", Max: "99"}
	case "heating_setpoint", "cooling_setpoint":
		control := Control{Kind: "degrees", Current: number(c)}
		var bounds struct{ Min, Max *float64 }
		if json.Unmarshal(c.Capabilities, &bounds) == nil {
			control.Min, control.Max = bound(bounds.Min), bound(bounds.Max)
			switch {
			case bounds.Min != nil && bounds.Max != nil:
				control.Bounds = control.Min + " to " + control.Max
			case bounds.Min != nil:
				control.Bounds = "from " + control.Min
			case bounds.Max != nil:
				control.Bounds = "to " + control.Max
			}
		}
		return control
	case "mode":
		return Control{
			Kind:    "choice",
			Current: name(c),
			Choices: []string{"off", "heat", "cool", "auto", "eco"},
		}
	case "fan_mode":
		return Control{
			Kind:    "choice",
			Current: name(c),
			Choices: []string{"auto_low", "low", "medium", "high"},
		}
	case "color":
		control := Control{Kind: "color", Current: "#ffffff"}
		var v map[string]any
		if json.Unmarshal(c.Value, &v) == nil && v != nil {
			control.Current = hexColor(v)
			if white, ok := v["warm_white"].(float64); ok {
				control.WarmWhite = strconv.Itoa(int(white))
			}
		}
		return control
	}
	return Control{}
}

func toggle(c domain.Channel, kind, on, off string) Control {
	return Control{
		Kind:    kind,
		On:      on,
		Off:     off,
		IsOn:    string(c.Value) == "true",
		Unknown: string(c.Value) != "true" && string(c.Value) != "false",
	}
}

func number(c domain.Channel) string {
	if n, err := strconv.ParseFloat(string(c.Value), 64); err == nil {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return ""
}

func name(c domain.Channel) string {
	var text string
	_ = json.Unmarshal(c.Value, &text) // a value that is no name is none
	return text
}

func bound(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// ReadCommand makes a command of the fields of a control's form: key, endpoint, value, and
// warm_white for a color. The errors are those of domain.CheckCommandValue.
func ReadCommand(
	org string, hub domain.HubID, device int64, form url.Values,
) (domain.Command, error) {
	c := domain.Command{
		OrgID:          org,
		HubID:          hub,
		DeviceID:       device,
		Key:            form.Get("key"),
		IdempotencyKey: form.Get("idempotency_key"),
	}
	var err error
	if c.Endpoint, err = strconv.ParseInt(form.Get("endpoint"), 10, 64); err != nil ||
		c.Endpoint < 0 {
		return c, domain.Errorf(
			domain.CodeInvalidRequest, "endpoint: must be a non-negative integer",
		)
	}
	if err := domain.CheckIdempotencyKey(c.IdempotencyKey); err != nil {
		return c, err
	}
	c.Value, err = domain.CheckCommandValue(
		c.Key, valueOf(c.Key, strings.TrimSpace(form.Get("value")), form.Get("warm_white")),
	)
	return c, err
}

// valueOf writes what was typed as JSON; what is none of the key's values is refused by the domain.
func valueOf(key, typed, warmWhite string) json.RawMessage {
	switch key {
	case "mode", "fan_mode":
		quoted, err := json.Marshal(typed)
		if err != nil {
			return nil
		}
		return quoted
	case "color":
		return colorOf(typed, warmWhite)
	}
	typed = strings.Replace(typed, ",", ".", 1) // as much of the world writes a decimal
	if !json.Valid([]byte(typed)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(typed)
}

// colorOf reads #rrggbb.
func colorOf(typed, warmWhite string) json.RawMessage {
	rgb, err := strconv.ParseUint(strings.TrimPrefix(typed, "#"), 16, 32)
	if err != nil || len(typed) != len("#rrggbb") || typed[0] != '#' {
		return json.RawMessage("null")
	}
	color := map[string]uint64{"red": rgb >> 16, "green": rgb >> 8 & 255, "blue": rgb & 255}
	if white, err := strconv.ParseUint(warmWhite, 10, 16); err == nil {
		color["warm_white"] = white
	}
	text, err := json.Marshal(color)
	if err != nil {
		return nil
	}
	return text
}
