package portal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// describeEvent returns a description of an event. unit is the unit of the channel that the event
// is about, "" if it has none or if it is unknown. For an event of an unknown type describe returns
// the data.
func describeEvent(event logEvent, unit string) string {
	var data map[string]any
	_ = json.Unmarshal(event.Data, &data) // without fields, the text names none
	switch event.Type {
	case "channel.observed", "channel.desired":
		var c channelEvent
		if json.Unmarshal(event.Data, &c) == nil {
			return describeChannel(c, unit, event.Type == "channel.desired")
		}
	case "hub.disconnected":
		reason, _ := data["reason"].(string)
		return fill(
			scriptTexts["event hub.disconnected"], "reason", disconnectText(&reason),
		)
	case "hub.log_reset":
		reason, _ := data["reason"].(string)
		if known, ok := scriptTexts["reset "+reason]; ok {
			data = map[string]any{"reason": known}
		} else if reason == "" {
			data = map[string]any{"reason": scriptTexts["reason unknown"]}
		}
	case "hub.events_skipped":
		if _, ok := data["reason"].(string); ok {
			return fillEvent(scriptTexts["event hub.events_skipped one"], data)
		}
	case "device.added", "device.updated":
		if name, _ := data["name"].(string); strings.TrimSpace(name) == "" {
			data = map[string]any{"name": scriptTexts["unnamed device"]}
		}
	case "device.forgotten":
		if name, _ := data["name"].(string); strings.TrimSpace(name) == "" {
			return scriptTexts["event device.forgotten nobody"]
		}
	}
	if pattern, ok := scriptTexts["event "+event.Type]; ok {
		return fillEvent(pattern, data)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, event.Data) != nil || compact.String() == "{}" {
		return ""
	}
	return truncate(compact.String(), 10*longestValue)
}

// describeChannel returns the text of a report of a channel, or of a command.
func describeChannel(c channelEvent, unit string, command bool) string {
	if (c.Key == "alarm" || c.Key == "scene") && !command {
		return formatValue(c.Key, "", c.Value)
	}
	name, kind, prefix := keyName(c.Key), "observed", ""
	if command {
		kind, prefix = "desired", "command "
	}
	if sentence, ok := scriptTexts[prefix+c.Key+" "+string(c.Value)]; ok {
		if c.Endpoint == 0 {
			return sentence
		}
		return fill(
			scriptTexts["channel endpoint"],
			"name", name, "endpoint", formatInt(c.Endpoint), "text", sentence,
		)
	}
	if c.Endpoint > 0 {
		name += " " + formatInt(c.Endpoint)
	}
	return fill(
		scriptTexts["channel "+kind], "name", name, "value", formatValue(c.Key, unit, c.Value),
	)
}

// fillEvent returns the text of an event with the texts and numbers of its data.
func fillEvent(pattern string, data map[string]any) string {
	var pairs []string
	for _, name := range []string{"name", "label", "state", "slot", "from", "to", "reason"} {
		value := "–"
		switch v := data[name].(type) {
		case string:
			if strings.TrimSpace(v) != "" {
				value = truncate(v, longestValue)
			}
		case float64:
			value = strconv.FormatFloat(v, 'f', -1, 64)
		}
		pairs = append(pairs, name, value)
	}
	return truncate(fill(pattern, pairs...), 10*longestValue)
}
