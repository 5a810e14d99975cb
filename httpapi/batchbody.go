package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"hubcloud/domain"
)

// readBatch reads the body of a request that sets several channels. body is what makes a repeated
// request the same.
func (req *request) readBatch() (b batch, body any, err error) {
	f := req.readFields("key", "value", "channels", "select")
	b.key = f.text("key")
	if f.err == nil {
		b.value, f.err = domain.CheckCommandValue(b.key, f.object["value"])
		if domain.CodeOf(f.err) == domain.CodeNotFound {
			f.err = invalid("key: %s is no channel key that commands can set", shorten(b.key))
		}
	}
	f.require(f.has("channels") || f.has("select"), invalid("body: give channels, or select them"))
	if f.err == nil && f.has("channels") {
		b.commands, f.err = readChannels(f.object["channels"])
	}
	if f.err == nil && f.has("select") {
		b.selection, f.err = readSelection(f.object["select"])
	}
	return b, f.object, f.err
}

// readChannels reads the channels of a batch, each of which may be given once.
func readChannels(raw json.RawMessage) ([]domain.Command, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 || len(list) > maxBatch {
		return nil, invalid("channels: must be an array of 1 to %d channels", maxBatch)
	}
	commands, known := make([]domain.Command, len(list)), map[batchChannel]bool{}
	for i, item := range list {
		o, err := decodeObject(item)
		if err == nil {
			err = o.allow([]string{"hub_id", "device_id", "endpoint"})
		}
		if err != nil {
			return nil, within(fmt.Sprintf("channels: item %d", i), err)
		}
		c := &commands[i]
		hub, ok := "", false
		if hub, err = o.stringField("hub_id"); err == nil {
			if c.HubID, ok = domain.ParseHubID(hub); !ok {
				err = invalid("hub_id: must be a hub id")
			}
		}
		if err == nil && !o.has("device_id") {
			err = invalid("device_id: is required")
		}
		if err == nil {
			c.DeviceID, err = o.count("device_id")
		}
		if err == nil && o.has("endpoint") {
			c.Endpoint, err = o.count("endpoint")
		}
		channel := batchChannel{c.HubID, c.DeviceID, c.Endpoint}
		if err == nil && known[channel] {
			err = invalid("the channel must be given once")
		}
		if err != nil {
			return nil, within(fmt.Sprintf("channels: item %d", i), err)
		}
		known[channel] = true
	}
	return commands, nil
}

type batchChannel struct {
	hub              domain.HubID
	device, endpoint int64
}

// readSelection reads what selects channels. An empty selection selects all of the organization.
func readSelection(raw json.RawMessage) (*selection, error) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil, invalid("select: must be an object")
	}
	s := &selection{}
	o, err := decodeObject(raw)
	if err == nil {
		err = o.allow([]string{"site_id", "hub_id", "room"})
	}
	if err != nil {
		return nil, within("select", err)
	}
	for name := range o {
		var text string
		if text, err = o.stringField(name); err != nil {
			return nil, within("select", err)
		}
		switch name {
		case "site_id":
			s.SiteID = &text
		case "hub_id":
			hub := domain.HubID(text)
			s.HubID = &hub
		case "room":
			s.Room = &text
		}
	}
	return s, nil
}

// within returns the error about a part of a body.
func within(part string, err error) error {
	var known *domain.Error
	if errors.As(err, &known) {
		return invalid("%s: %s", part, known.Message)
	}
	return err
}
