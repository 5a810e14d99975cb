package virtualhub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hubcloud/hubbridge/kit/hub"
)

// Action is something to do with a hub. Verb is required; each verb uses some of the other fields.
type Action struct {
	// Verb is one of Verbs.
	Verb string `json:"verb"`
	// Device is the id or the name of a device, or a part of its name. For some verbs it defaults
	// to the first device that has the channel of the verb.
	Device string `json:"device,omitempty"`
	// Channel and Endpoint name a channel of the device.
	Channel  string `json:"channel,omitempty"`
	Endpoint int    `json:"endpoint,omitempty"`
	// Value is the value of the channel.
	Value json.RawMessage `json:"value,omitempty"`
	// Off ends the fault of the verb.
	Off bool `json:"off,omitempty"`
	// Delay is for late.
	Delay time.Duration `json:"delay,omitempty"`
	// Count is for drop.
	Count uint64 `json:"count,omitempty"`
	// Name is for rename and join, Kind, Interview and WakesEvery for join.
	Name       string        `json:"name,omitempty"`
	Kind       string        `json:"kind,omitempty"`
	Interview  time.Duration `json:"interview,omitempty"`
	WakesEvery time.Duration `json:"wakes_every,omitempty"`
	// Type and Data are for emit. Data defaults to an example of the type.
	Type string          `json:"type,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// verb does something to a hub and returns what the hub did.
type verb func(context.Context, *Hub, Action) (string, error)

// verbs are the table of what `hubcloud sim` can do to a hub.
var verbs = map[string]verb{
	"offline": toggle((*Hub).Offline, "disconnects and stays offline", "connects again"),
	"reject": toggle(
		(*Hub).RejectCommands, "rejects every command: 422 command_refused", "runs commands again",
	),
	"radio": toggle(
		(*Hub).RadioDown, "cannot reach its devices: 503 hub_unavailable",
		"reaches its devices again",
	),
	"clock": toggle(
		(*Hub).ClockUnknown, "does not know the time: its events have clock_trusted false, and "+
			"commands answer 503 hub_unavailable", "knows the time again",
	),
	"cut": func(_ context.Context, h *Hub, _ Action) (string, error) {
		h.CutConnection()
		return "lost its connection without a goodbye, and connects again", nil
	},
	"restart": func(_ context.Context, h *Hub, _ Action) (string, error) {
		h.Restart()
		return "restarts", nil
	},
	"reset": func(_ context.Context, h *Hub, _ Action) (string, error) {
		const did = "was reset to factory state: it has a new log, and every cursor from before is " +
			"expired"
		return did, h.FactoryReset()
	},
	"drop": func(_ context.Context, h *Hub, a Action) (string, error) {
		from, to, err := h.LoseEvents(a.Count)
		return fmt.Sprintf("lost its events %d to %d: hub.events_skipped follows", from, to), err
	},
	"malform": func(_ context.Context, h *Hub, _ Action) (string, error) {
		_, err := h.EmitMalformed()
		return "sent malformed events, one of each kind: hub.events_skipped follows for each", err
	},
	"jam": jam, "late": late, "unreachable": unreachable, "report": report, "set": set,
	"rename": rename, "join": join, "leave": leave, "emit": emit,
	"code": enterCode,
}

// toggle returns the verb of a fault that Action.Off ends.
func toggle(do func(*Hub, bool), on, off string) verb {
	return func(_ context.Context, h *Hub, a Action) (string, error) {
		do(h, !a.Off)
		if a.Off {
			return off, nil
		}
		return on, nil
	}
}

// run runs the action on a hub.
func (a Action) run(ctx context.Context, h *Hub) (string, error) {
	do, ok := verbs[a.Verb]
	if !ok {
		return "", fmt.Errorf("unknown verb %q", a.Verb)
	}
	return do(ctx, h, a)
}

// device returns the device that the action names, or the first device with a channel of the given
// key if it names none.
func (a Action) device(h *Hub, key string) (hub.Device, error) {
	var devices, found []hub.Device
	for _, id := range h.DeviceIDs() {
		if d, ok := h.Device(id); ok {
			devices = append(devices, d)
		}
	}
	if a.Device == "" {
		for _, d := range devices {
			if channelOf(d, key, 0) != nil {
				return d, nil
			}
		}
		return hub.Device{}, fmt.Errorf("no device of the hub has a channel %s", key)
	}
	for _, d := range devices {
		if strconv.FormatInt(d.ID, 10) == a.Device || strings.EqualFold(d.Name, a.Device) {
			return d, nil
		}
		if _, err := strconv.Atoi(a.Device); err != nil &&
			strings.Contains(strings.ToLower(d.Name), strings.ToLower(a.Device)) {
			found = append(found, d)
		}
	}
	var names []string
	for _, d := range found {
		names = append(names, fmt.Sprintf("%d %s", d.ID, d.Name))
	}
	switch len(found) {
	case 0:
		return hub.Device{}, fmt.Errorf("the hub has no device %q", a.Device)
	case 1:
		return found[0], nil
	default:
		return hub.Device{}, fmt.Errorf(
			"device %q is ambiguous: %s", a.Device, strings.Join(names, ", "),
		)
	}
}

func channelOf(d hub.Device, key string, endpoint int) *hub.Channel {
	for i, c := range d.Channels {
		if c.Key == key && c.Endpoint == endpoint {
			return &d.Channels[i]
		}
	}
	return nil
}

func jam(_ context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, "lock")
	if err != nil {
		return "", err
	}
	if a.Off {
		h.Unjam(d.ID)
		return fmt.Sprintf("device %d (%s) is no longer jammed", d.ID, d.Name), nil
	}
	h.Jam(d.ID)
	return fmt.Sprintf(
		"device %d (%s) is jammed: its commands end with the opposite value", d.ID, d.Name,
	), nil
}

func late(_ context.Context, h *Hub, a Action) (string, error) {
	if a.Delay < 0 {
		return "", errors.New("the delay must not be negative")
	}
	h.LateAnswers(a.Delay)
	if a.Delay == 0 {
		return "answers at once", nil
	}
	return fmt.Sprintf("answers each request %s late", a.Delay), nil
}

func unreachable(_ context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, "lock")
	if err != nil {
		return "", err
	}
	if a.Off {
		return fmt.Sprintf("reaches device %d (%s) again", d.ID, d.Name), h.Reachable(d.ID)
	}
	return fmt.Sprintf("can no longer reach device %d (%s)", d.ID, d.Name), h.Unreachable(d.ID)
}

func report(_ context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, a.Channel)
	if err != nil {
		return "", err
	}
	ref := ChannelRef{Key: a.Channel, Endpoint: a.Endpoint}
	c := channelOf(d, a.Channel, a.Endpoint)
	if c == nil {
		return "", fmt.Errorf("device %d (%s) has no channel %s", d.ID, d.Name, ref)
	}
	before, err := json.Marshal(c.Value)
	if err != nil {
		return "", err
	}
	if err := h.Report(d.ID, ref, a.Value); err != nil {
		return "", err
	}
	if a.Channel != "alarm" && a.Channel != "scene" && bytes.Equal(before, a.Value) {
		return fmt.Sprintf(
			"device %d (%s) reports %s again: no event, since the value has not changed",
			d.ID, d.Name, a.Value,
		), nil
	}
	return fmt.Sprintf("device %d (%s) reports %s %s", d.ID, d.Name, ref, a.Value), nil
}

func set(ctx context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, a.Channel)
	if err != nil {
		return "", err
	}
	ref := ChannelRef{Key: a.Channel, Endpoint: a.Endpoint}
	if err := h.Command(ctx, d.ID, ref, a.Value); err != nil {
		return "", err
	}
	return fmt.Sprintf("sets %s of device %d (%s) to %s", ref, d.ID, d.Name, a.Value), nil
}

func rename(_ context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, "lock")
	if err != nil {
		return "", err
	}
	var removed []ChannelRef
	if a.Channel != "" {
		ref := ChannelRef{Key: a.Channel, Endpoint: a.Endpoint}
		if channelOf(d, a.Channel, a.Endpoint) == nil {
			return "", fmt.Errorf("device %d (%s) has no channel %s", d.ID, d.Name, ref)
		}
		removed = append(removed, ref)
	}
	return fmt.Sprintf("calls device %d (%s) %q", d.ID, d.Name, a.Name),
		h.Rename(d.ID, a.Name, removed...)
}

func join(ctx context.Context, h *Hub, a Action) (string, error) {
	spec := DeviceSpec{
		Kind: a.Kind, Name: a.Name, Interview: Duration(a.Interview),
		WakesEvery: Duration(a.WakesEvery),
	}
	if err := checkSpec(spec); err != nil {
		return "", err
	}
	id, err := h.Join(spec)
	if errors.Is(err, ErrNoWindow) {
		if err := h.OpenPairing(ctx); err != nil {
			return "", err
		}
		id, err = h.Join(spec)
	}
	return fmt.Sprintf("has a new device: %d", id), err
}

func leave(ctx context.Context, h *Hub, a Action) (string, error) {
	d, err := a.device(h, "lock")
	if err != nil {
		return "", err
	}
	err = h.Press(d.ID)
	if errors.Is(err, ErrNoWindow) {
		if err := h.OpenRemoval(ctx); err != nil {
			return "", err
		}
		err = h.Press(d.ID)
	}
	return fmt.Sprintf("has forgotten device %d (%s)", d.ID, d.Name), err
}

// examples are the data of the events that no device causes.
var examples = map[string]string{
	"device.join_failed": `{"reason":"security"}`,
	"credential.created": `{"slot":1,"label":"Cleaner"}`,
	"credential.applied": `{"state":"active"}`,
	"credential.revoked": `{}`,
	"rule.created":       `{"name":"Lock at night","enabled":true}`,
	"rule.updated":       `{"name":"Lock at night","enabled":false}`,
	"rule.fired":         `{}`,
	"rule.deleted":       `{}`,
}

func emit(_ context.Context, h *Hub, a Action) (string, error) {
	if strings.HasPrefix(a.Type, "hub.") {
		return "", errors.New(
			"events of type hub.… are the cloud's own: use offline, online or drop to cause them",
		)
	}
	event := hub.Event{Type: a.Type, Data: json.RawMessage("{}")}
	if a.Device != "" || strings.HasPrefix(a.Type, "credential.") {
		d, err := a.device(h, "lock")
		if err != nil {
			return "", err
		}
		event.DeviceID = d.ID
	}
	if example, ok := examples[a.Type]; ok {
		event.Data = json.RawMessage(example)
	}
	if len(a.Data) > 0 {
		event.Data = a.Data
	}
	last, err := h.Emit(event)
	return fmt.Sprintf("emitted %s as number %d", a.Type, last), err
}
