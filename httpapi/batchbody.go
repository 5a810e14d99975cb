package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
	f.targets(&b)
	return b, f.object, f.err
}

// targets reads which channels a batch is for.
func (f *fields) targets(b *batch) {
	f.require(f.has("channels") || f.has("select"), invalid("body: give channels, or select them"))
	if f.err == nil && f.has("channels") {
		b.commands, f.err = readChannels(f.object["channels"])
	}
	if f.err == nil && f.has("select") {
		b.selection, f.err = readSelection(f.object["select"])
	}
}

// readChannels reads the channels of a batch, each of which may be given once.
func readChannels(raw json.RawMessage) ([]domain.Command, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 || len(list) > maxBatch {
		return nil, invalid("channels: must be an array of 1 to %d channels", maxBatch)
	}
	commands, known := make([]domain.Command, len(list)), map[batchChannel]bool{}
	for i, item := range list {
		f := decodeFields(item, "hub_id", "device_id", "endpoint")
		c, ok := &commands[i], false
		c.HubID, ok = domain.ParseHubID(f.text("hub_id"))
		f.require(ok, invalid("hub_id: must be a hub id"))
		f.require(f.has("device_id"), invalid("device_id: is required"))
		c.DeviceID = read(f, "device_id", f.count)
		if f.has("endpoint") {
			c.Endpoint = read(f, "endpoint", f.count)
		}
		channel := batchChannel{c.HubID, c.DeviceID, c.Endpoint}
		f.require(!known[channel], invalid("the channel must be given once"))
		if f.err != nil {
			return nil, within(fmt.Sprintf("channels: item %d", i), f.err)
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
	f, s := decodeFields(raw, "site_id", "hub_id", "room"), &selection{}
	s.SiteID, s.Room = f.given("site_id"), f.given("room")
	if hub := f.given("hub_id"); hub != nil {
		s.HubID = (*domain.HubID)(hub)
	}
	if f.err != nil {
		return nil, within("select", f.err)
	}
	return s, nil
}

// given returns a text, nil if the field is absent.
func (f *fields) given(name string) *string {
	if !f.has(name) {
		return nil
	}
	text := f.text(name)
	return &text
}

// within returns the error about a part of a body, which names the part in place of the body.
func within(part string, err error) error {
	var known *domain.Error
	if errors.As(err, &known) {
		return invalid("%s: %s", part, strings.TrimPrefix(known.Message, "body: "))
	}
	return err
}
