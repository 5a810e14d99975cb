package httpapi

import (
	"math"
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// commandBody is what an accepted command answers.
type commandBody struct {
	HubID    domain.HubID     `json:"hub_id"`
	DeviceID int64            `json:"device_id"`
	Channel  commandedChannel `json:"channel"`
}

// sendCommand refuses what no hub would take before the hub is asked.
func (a *api) sendCommand(x *exchange) error {
	hub, device, err := a.ownDevice(x)
	if err != nil {
		return err
	}
	command := domain.Command{OrgID: x.key.OrgID, HubID: hub, DeviceID: device}
	if command.IdempotencyKey, err = idempotencyKey(x.r.Header); err != nil {
		return err
	}
	if err := x.readCommand(&command); err != nil {
		return err
	}
	if command.Value, err = domain.CheckCommandValue(command.Key, command.Value); err != nil {
		if domain.CodeOf(err) == domain.CodeNotFound {
			return a.refuseKey(x, command, err)
		}
		return err
	}
	channel, err := a.Commands.Send(x.ctx, x.origin(), command)
	if err != nil {
		return err
	}
	return x.writeJSON(
		http.StatusAccepted,
		commandBody{HubID: hub, DeviceID: device, Channel: commandedChannel{
			channelIdentity: identityOf(channel), channelState: stateOf(channel),
			channelReach: channelReach{Available: channel.Available},
		}},
	)
}

// readCommand reads the body into command, its value still as it was sent.
func (x *exchange) readCommand(command *domain.Command) error {
	body, err := x.readObject("key", "value", "endpoint")
	if err != nil {
		return err
	}
	if command.Key, err = body.text("key"); err != nil {
		return err
	}
	if !body.has("value") {
		return invalid("value: is required")
	}
	command.Value = body["value"]
	if body.has("endpoint") {
		command.Endpoint, err = body.count("endpoint")
	}
	return err
}

// refuseKey refuses a command to a channel key that the contract does not name: 404, unless the
// device has a channel of that key, which then is one that takes no commands. Whatever keeps the
// hub from telling leaves it at 404.
func (a *api) refuseKey(x *exchange, command domain.Command, unknown error) error {
	device, err := a.Devices.Get(x.ctx, command.HubID, command.DeviceID)
	if err != nil {
		if gone := x.ctx.Err(); gone != nil {
			return gone
		}
		return unknown
	}
	for _, c := range device.Channels {
		if c.Key == command.Key && c.Endpoint == command.Endpoint {
			return invalid("key: channel %s is read-only", shorten(command.Key))
		}
	}
	return unknown
}

// maxCount is the highest integer that every JSON reader takes for itself (RFC 8259, section 6).
const maxCount = 1<<53 - 1

// count gives a field that must be there and be an integer from 0 on, however it is written: 1.0
// and 1e0 are 1.
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
