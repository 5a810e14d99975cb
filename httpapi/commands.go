package httpapi

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// commandBody is the answer to an accepted command.
type commandBody struct {
	HubID    domain.HubID     `json:"hub_id"`
	DeviceID int64            `json:"device_id"`
	Channel  commandedChannel `json:"channel"`
}

// sendCommand sends a command to a hub and answers 202 with the channel. It rejects invalid bodies
// and values itself. For an unknown channel key it asks the hub whether the device has such a
// channel (rejectKey).
func (a *api) sendCommand(req *request, hub domain.HubID, device int64) (err error) {
	command := domain.Command{OrgID: req.key.Reach.OrgID, HubID: hub, DeviceID: device}
	if command.IdempotencyKey, err = req.idempotencyKey(); err != nil {
		return err
	}
	endpointGiven, err := req.readCommand(&command)
	if err != nil {
		return err
	}
	if command.Value, err = domain.CheckCommandValue(command.Key, command.Value); err != nil {
		if domain.CodeOf(err) == domain.CodeNotFound {
			return a.rejectKey(req, command, err)
		}
		return err
	}
	sent, err := a.Commands.Send(req.ctx, req.origin(), command)
	if domain.CodeOf(err) == domain.CodeNotFound {
		return a.rejectEndpoint(req, command, endpointGiven, err)
	}
	if err != nil {
		return err
	}
	req.setReplayed(sent.Replayed)
	channel := sent.Channel
	req.w.Header()["Command-Id"] = []string{commandID(hub, sent.ID)}
	return req.writeJSON(
		http.StatusAccepted,
		commandBody{HubID: hub, DeviceID: device, Channel: commandedChannel{
			channelIdentity: identityOf(channel), channelState: stateOf(channel),
			channelAvailability: channelAvailability{Available: channel.Available},
		}},
	)
}

// readCommand reads the body into command, with the value unchecked.
func (req *request) readCommand(command *domain.Command) (endpointGiven bool, err error) {
	body := req.readFields("key", "value", "endpoint")
	command.Key, command.Value = body.text("key"), body.object["value"]
	body.require(body.has("value"), invalid("value: is required"))
	if body.has("endpoint") {
		command.Endpoint = read(body, "endpoint", body.count)
	}
	return body.has("endpoint"), body.err
}

// rejectKey returns the error for a channel key that commands do not know. If the device has a
// channel with this key, the channel is read-only and the error is invalid_request. Otherwise, and
// if the hub cannot be asked, the error is notFound.
func (a *api) rejectKey(req *request, command domain.Command, notFound error) error {
	device, err := a.Devices.Get(req.ctx, command.HubID, command.DeviceID)
	if err != nil {
		if err := req.ctx.Err(); err != nil {
			return err
		}
		return notFound
	}
	for _, c := range device.Channels {
		if c.Key == command.Key && c.Endpoint == command.Endpoint {
			return invalid("key: channel %s is read-only", shorten(command.Key))
		}
	}
	return notFound
}

// maxEndpoints is how many endpoints of a key rejectEndpoint reads.
const maxEndpoints = 100

// rejectEndpoint returns the error for a command that its hub answered with notFound. If the device
// is known to have the key at other endpoints only, the error names them. It asks the read models,
// since the hub has just been asked.
func (a *api) rejectEndpoint(
	req *request, command domain.Command, endpointGiven bool, notFound error,
) error {
	states, err := a.ReadModels.States(
		req.ctx, req.key.Reach,
		domain.StateFilter{HubID: &command.HubID, Key: &command.Key}, maxEndpoints,
		domain.StatePosition{HubID: command.HubID, DeviceID: command.DeviceID},
	)
	if err != nil {
		return notFound
	}
	var endpoints []string
	for _, state := range states.Data {
		switch {
		case state.DeviceID != command.DeviceID:
		case state.Channel.Endpoint == command.Endpoint:
			return notFound
		default:
			endpoints = append(endpoints, strconv.FormatInt(state.Channel.Endpoint, 10))
		}
	}
	if len(endpoints) == 0 {
		return notFound
	}
	mistake := "no such channel"
	if !endpointGiven {
		mistake = "endpoint: is required here"
	}
	return domain.Errorf(
		domain.CodeNotFound, "%s: the device has %s at endpoint %s", mistake, command.Key,
		strings.Join(endpoints, " and "),
	)
}

// maxCount is the highest integer that all JSON decoders read exactly (RFC 8259, section 6).
const maxCount = 1<<53 - 1

// count returns a required non-negative integer, in any notation: 1.0 and 1e0 are 1.
func (o object) count(name string) (int64, error) {
	raw := string(o[name])
	n, err := strconv.ParseFloat(raw, 64)
	if err != nil || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || n != math.Trunc(n) ||
		n < 0 ||
		n > maxCount {
		return 0, invalid("%s: must be a non-negative integer", name)
	}
	return int64(n), nil
}
