package portal

import (
	"cmp"
	"time"

	"hubcloud/domain"
)

// exportDevices answers with all devices that a search finds, as CSV.
func (req *request) exportDevices() error {
	view, search, err := req.deviceSearch()
	if err != nil {
		return err
	}
	var devices []foundDevice
	after := domain.StatePosition{}
	for range exportReads {
		found, next, err := req.foundDevices(view, search, findPage, after)
		if err != nil {
			return err
		}
		devices = append(devices, found...)
		if after = parsePosition(next); next == "" {
			break
		}
	}
	sortFound(devices, search)
	zone := req.zone()
	req.csvHeaders("devices-"+cmp.Or(search.Name, "all"), zone)
	out := NewCSV(req.w)
	_ = out.Row( // a write that fails makes the next one fail
		"Device", "Device number", "Model", "Battery type", "Value",
		"Since ("+zone.String()+")", "Room", "Hub", "Hub ID", "Site", "Hub offline since",
	)
	for _, d := range devices {
		value := d.Value
		if d.OutOfReach {
			value = "out of reach"
		}
		if err := out.Row(
			d.Name, formatInt(d.DeviceID), d.Model, d.Battery, value,
			csvTime(d.Since, zone), d.Room, d.HubName, string(d.Hub), d.Site,
			csvTime(d.OfflineSince, zone),
		); err != nil {
			return nil // the client has gone
		}
	}
	_ = out.Flush() // the client has gone
	return nil
}

// csvTime returns a time for spreadsheets, "" for the zero time.
func csvTime(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return at.In(zone).Format("2006-01-02 15:04:05")
}
