package schema

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
)

// ReportedHubRow is a row of ReportedHubs.
type ReportedHubRow struct {
	ID      domain.HubID
	Journal int
	*devicestate.Hub
}

// ReportedHubs has what is known of the devices of each hub that has reported any.
var ReportedHubs = newTable(
	Definition{Name: "reported_hubs", Projection: Devices, Key: []string{"hub_id"}},
	[]column[ReportedHubRow]{
		text("hub_id", func(h *ReportedHubRow) string { return string(h.ID) }),
		columnOf("journal", "integer", func(h *ReportedHubRow) int32 { return int32(h.Journal) }),
		text("epoch", func(h *ReportedHubRow) string { return h.EpochID.String() }),
		number("seq", func(h *ReportedHubRow) uint64 { return h.Seq }),
		number("event_seq", func(h *ReportedHubRow) uint64 { return h.EventSeq }),
		timestamp("at", func(h *ReportedHubRow) time.Time { return h.At }),
		timestamp("since", func(h *ReportedHubRow) time.Time { return h.Since }),
		number("doubt", func(h *ReportedHubRow) uint64 { return h.Doubt.Seq }),
		number("doubt_number", func(h *ReportedHubRow) uint64 { return h.Doubt.Number }),
		number("read_after", func(h *ReportedHubRow) uint64 { return h.ReadAfter }),
		number("read_number", func(h *ReportedHubRow) uint64 { return h.ReadNumber }),
		boolean("was_read", func(h *ReportedHubRow) bool { return h.Read }),
		text("forgotten", func(h *ReportedHubRow) string { return forgottenText(h.Hub) }),
		boolean("certain", func(h *ReportedHubRow) bool { return h.Certain() }),
		bigint("channels", func(h *ReportedHubRow) int64 { return int64(h.ChannelCount()) }),
		number("omitted", func(h *ReportedHubRow) uint64 { return h.Omitted }),
	},
).upserting()

// ReportedDeviceRow is a row of ReportedDevices.
type ReportedDeviceRow struct {
	HubID domain.HubID
	*devicestate.Device
}

// ReportedDevices has the last reported state of each device, but for its channels.
var ReportedDevices = newTable(
	Definition{Name: "reported_devices", Projection: Devices, Key: []string{"hub_id", "device_id"}},
	[]column[ReportedDeviceRow]{
		text("hub_id", func(d *ReportedDeviceRow) string { return string(d.HubID) }),
		bigint("device_id", func(d *ReportedDeviceRow) int64 { return d.ID }),
		text("name", func(d *ReportedDeviceRow) string { return d.Name }),
		text("manufacturer", func(d *ReportedDeviceRow) string { return d.Manufacturer }),
		text("model", func(d *ReportedDeviceRow) string { return d.Model }),
		boolean("available", func(d *ReportedDeviceRow) bool { return d.Available }),
		nullableTime("available_since", func(d *ReportedDeviceRow) time.Time { return d.AvailableSince }),
		nanoseconds("available_logged", func(d *ReportedDeviceRow) time.Time { return d.AvailableLogged }),
		number("doubt", func(d *ReportedDeviceRow) uint64 { return d.Doubt.Seq }),
		number("doubt_number", func(d *ReportedDeviceRow) uint64 { return d.Doubt.Number }),
		number("read_after", func(d *ReportedDeviceRow) uint64 { return d.ReadAfter }),
		number("read_number", func(d *ReportedDeviceRow) uint64 { return d.ReadNumber }),
		boolean("was_read", func(d *ReportedDeviceRow) bool { return d.Read }),
		number("named_seq", func(d *ReportedDeviceRow) uint64 { return d.Named.Seq }),
		number("named_number", func(d *ReportedDeviceRow) uint64 { return d.Named.Number }),
		number("reached_seq", func(d *ReportedDeviceRow) uint64 { return d.Reached.Seq }),
		number("reached_number", func(d *ReportedDeviceRow) uint64 { return d.Reached.Number }),
		number("event_seq", func(d *ReportedDeviceRow) uint64 { return d.Event.Seq }),
		number("event_number", func(d *ReportedDeviceRow) uint64 { return d.Event.Number }),
		number("seq", func(d *ReportedDeviceRow) uint64 { return d.Seq }),
		boolean("certain", func(d *ReportedDeviceRow) bool { return d.Certain() }),
	},
).upserting()

// ReportedChannelRow is a row of ReportedChannels.
type ReportedChannelRow struct {
	HubID    domain.HubID
	DeviceID int64
	*devicestate.Channel
}

// ReportedChannels has the last reported state of each channel.
var ReportedChannels = newTable(
	Definition{
		Name: "reported_channels", Projection: Devices,
		Key: []string{"hub_id", "device_id", "key", "endpoint"},
	},
	[]column[ReportedChannelRow]{
		text("hub_id", func(c *ReportedChannelRow) string { return string(c.HubID) }),
		bigint("device_id", func(c *ReportedChannelRow) int64 { return c.DeviceID }),
		text("key", func(c *ReportedChannelRow) string { return c.Key }),
		bigint("endpoint", func(c *ReportedChannelRow) int64 { return c.Endpoint }),
		boolean("was_read", func(c *ReportedChannelRow) bool { return c.Read }),
		text("kind", func(c *ReportedChannelRow) string { return c.Kind }),
		nullableText("unit", func(c *ReportedChannelRow) *string { return c.Unit }),
		boolean("readable", func(c *ReportedChannelRow) bool { return c.Readable }),
		boolean("writable", func(c *ReportedChannelRow) bool { return c.Writable }),
		nullableJSON("capabilities", func(c *ReportedChannelRow) []byte { return c.Capabilities }),
		boolean("available", func(c *ReportedChannelRow) bool { return c.Available }),
		nullableJSON("value", func(c *ReportedChannelRow) []byte { return c.Value }),
		nullableText("standing", func(c *ReportedChannelRow) *string { return standingText(c.Standing) }),
		nullableTime("observed_at", func(c *ReportedChannelRow) time.Time { return c.ObservedAt }),
		nullableTime("changed_at", func(c *ReportedChannelRow) time.Time { return c.ChangedAt }),
		nullableJSON("desired", func(c *ReportedChannelRow) []byte { return c.Desired }),
		nullableTime("desired_at", func(c *ReportedChannelRow) time.Time { return c.DesiredAt }),
		text("status", func(c *ReportedChannelRow) string { return string(c.Status) }),
		boolean("suspect", func(c *ReportedChannelRow) bool { return c.IsSuspect() }),
		boolean("unsure", func(c *ReportedChannelRow) bool { return c.Unsure }),
		text("basis", func(c *ReportedChannelRow) string { return string(c.Basis) }),
		nanoseconds("observed_logged", func(c *ReportedChannelRow) time.Time { return c.Logged.Observed }),
		nanoseconds("changed_logged", func(c *ReportedChannelRow) time.Time { return c.Logged.Changed }),
		nanoseconds("desired_logged", func(c *ReportedChannelRow) time.Time { return c.Logged.Desired }),
		number("seq", func(c *ReportedChannelRow) uint64 { return c.Seq }),
		number("event_seq", func(c *ReportedChannelRow) uint64 { return c.Event.Seq }),
		number("event_number", func(c *ReportedChannelRow) uint64 { return c.Event.Number }),
	},
).upserting()

// forgottenText returns the devices that a hub has forgotten as they are stored.
func forgottenText(h *devicestate.Hub) string {
	if len(h.Forgotten) == 0 {
		return "[]"
	}
	encoded, _ := json.Marshal(h.Forgotten) // numbers only
	return string(encoded)
}

// LoggedAt returns a time of the log from its stored form.
func LoggedAt(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// standingText returns alarms that stand as they are stored.
func standingText(standing []domain.StandingAlarm) *string {
	if len(standing) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(standing) // JSON and times that were read from JSON
	text := string(encoded)
	return &text
}

// Standing returns alarms that stand from their stored form.
func Standing(text *string) (standing []domain.StandingAlarm) {
	if text != nil {
		_ = json.Unmarshal([]byte(*text), &standing) // as standingText has written it
	}
	return standing
}
