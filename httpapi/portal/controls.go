package portal

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// control describes the form control that sets a channel. The zero value stands for no control.
type control struct {
	// Kind is toggle, guarded (a toggle with a confirmation), percent, degrees, choice or color,
	// and "" for no control.
	Kind string
	// On and Off are the labels of the actions of a toggle.
	On, Off string
	// IsOn is the value of a toggle. Unknown reports that the value is unknown; pages then show
	// both actions.
	IsOn, Unknown bool
	// Current is the initial input. Min and Max are the bounds of a number, empty for no bound.
	Current  string
	Min, Max string
	// Bounds is the displayed text of Min and Max.
	Bounds string
	// WarmWhite is the component of a color that a color picker does not have, empty if the color
	// has none.
	WarmWhite string
	// Choices are the modes to choose from, with Current. Hubs may accept others.
	Choices []modeChoice
	// Step is the change of a number by one press of a button.
	Step string
}

// modeChoice is a mode to choose from.
type modeChoice struct{ Value, Text string }

// controlOf returns the control of a writable channel, and none for a channel with an unknown key.
func controlOf(c domain.Channel) control {
	if c.Status == domain.ChannelPending && !isBool(c.Desired) && len(c.Desired) > 0 {
		c.Value = c.Desired // the form keeps what was sent until the device has reported
	}
	switch c.Key {
	case "switch", "local_protection":
		return toggleOf(c, "toggle")
	case "lock", "barrier":
		return toggleOf(c, "guarded")
	case "level", "position":
		control := control{Kind: "percent", Current: numberOf(c), Min: "0", Max: "100"}
		if control.Current == "99" {
			control.Current = control.Max
		}
		return control
	case "heating_setpoint", "cooling_setpoint":
		control := control{Kind: "degrees", Current: numberOf(c), Step: defaultStep}
		var bounds struct{ Min, Max, Step *float64 }
		if json.Unmarshal(c.Capabilities, &bounds) == nil {
			if bounds.Step != nil && *bounds.Step > 0 {
				control.Step = formatBound(bounds.Step)
			}
			control.Min, control.Max = formatBound(bounds.Min), formatBound(bounds.Max)
			control.Bounds = boundsText(control.Min, control.Max)
		}
		return control
	case "mode":
		return choiceOf(c, "off", "heat", "cool", "auto", "eco")
	case "fan_mode":
		return choiceOf(c, "auto_low", "low", "medium", "high")
	case "color":
		control := control{Kind: "color", Current: "#ffffff"}
		var v map[string]any
		if json.Unmarshal(c.Value, &v) == nil && v != nil {
			control.Current = hexColor(v)
			if white, ok := v["warm_white"].(float64); ok {
				control.WarmWhite = strconv.Itoa(int(white))
			}
		}
		return control
	}
	return control{}
}

// boundsText returns the text of the bounds of a number; an empty bound is none.
func boundsText(low, high string) string {
	switch {
	case low == "" && high == "":
		return ""
	case high == "":
		return "from " + low
	case low == "":
		return "to " + high
	}
	return low + " to " + high
}

// defaultStep is the step of a setpoint whose device reports none, in °C.
const defaultStep = "0.5"

// choiceOf returns the control of a mode: the modes that the hub lists, otherwise the usual ones,
// and the current mode.
func choiceOf(c domain.Channel, usual ...string) control {
	control := control{Kind: "choice", Current: nameOf(c)}
	var listed struct{ Values []string }
	if json.Unmarshal(c.Capabilities, &listed) == nil && len(listed.Values) > 0 {
		usual = listed.Values[:min(len(listed.Values), maxChoices)]
	}
	if control.Current != "" && !slices.Contains(usual, control.Current) {
		usual = append([]string{control.Current}, usual...)
	}
	for _, value := range usual {
		control.Choices = append(control.Choices, modeChoice{
			value, truncate(strings.ReplaceAll(value, "_", " "), longestValue),
		})
	}
	return control
}

// maxChoices bounds the modes that a hub may list.
const maxChoices = 50

func toggleOf(c domain.Channel, kind string) control {
	return control{
		Kind:    kind,
		On:      controlTexts[c.Key].On,
		Off:     controlTexts[c.Key].Off,
		IsOn:    string(c.Value) == "true",
		Unknown: string(c.Value) != "true" && string(c.Value) != "false",
	}
}

// numberOf returns the value of a channel as form input, "" if it is not a number.
func numberOf(c domain.Channel) string {
	if n, err := strconv.ParseFloat(string(c.Value), 64); err == nil {
		return strconv.FormatFloat(n+0, 'f', -1, 64) // turns -0 into 0
	}
	return ""
}

// nameOf returns the value of a channel, "" if it is not a string.
func nameOf(c domain.Channel) string {
	var text string
	_ = json.Unmarshal(c.Value, &text) // "" if it is not a string
	return text
}

func formatBound(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n+0, 'f', -1, 64)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// readCommand returns the command of a submitted control. The form's fields are key, endpoint,
// value, idempotency_key, warm_white for a color, and other for a mode that is not in the list.
// Errors are those that the API returns for such a command.
func readCommand(
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
		c.Key, commandValue(
			c.Key, strings.TrimSpace(form.Get("value")), form.Get("warm_white"),
			strings.TrimSpace(form.Get("other")),
		),
	)
	return c, err
}

// commandValue returns form input as JSON. The JSON of invalid input is rejected by
// domain.CheckCommandValue.
func commandValue(key, input, warmWhite, other string) json.RawMessage {
	switch key {
	case "mode", "fan_mode":
		if other != "" {
			input = other
		}
		quoted, err := json.Marshal(input)
		if err != nil {
			return nil
		}
		return quoted
	case "color":
		return colorValue(input, warmWhite)
	}
	if isPercent(key) && input == "100" {
		input = "99"
	}
	input = strings.Replace(input, ",", ".", 1) // the decimal separator of many languages
	if !json.Valid([]byte(input)) {
		return json.RawMessage("null")
	}
	return json.RawMessage(input)
}

// colorValue returns the JSON of a color from #rrggbb.
func colorValue(input, warmWhite string) json.RawMessage {
	rgb, err := strconv.ParseUint(strings.TrimPrefix(input, "#"), 16, 32)
	if err != nil || len(input) != len("#rrggbb") || input[0] != '#' {
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
