package attention

import (
	"slices"

	"hubcloud/domain"
)

// ObservedHub is a hub of the organization as it is at present.
type ObservedHub struct {
	// State has the devices that have conditions or had some.
	State HubState
	// Certain reports that all devices of the hub are known: a device that is missing in State was
	// removed. Doubtful are the devices whose state may be out of date.
	Certain  bool
	Doubtful map[int64]bool
	// SilenceUnknown reports that it is not known whether the hub reports events.
	SilenceUnknown bool
	// Name is the hub's name, SiteID and Site are its site.
	Name, SiteID, Site string
}

// hasEnded reports whether a condition that does not stand is known to have ended.
func (h ObservedHub) hasEnded(e *entry) bool {
	switch {
	case e.Kind == Offline:
		return h.State.Status == domain.HubOnline
	case e.Kind == NotHeard:
		return h.State.Status == domain.HubOnline && !h.SilenceUnknown
	}
	i := slices.IndexFunc(h.State.Devices, func(d DeviceState) bool {
		return d.ID == e.DeviceID
	})
	if i < 0 {
		return h.Certain
	}
	device := h.State.Devices[i]
	if !h.Doubtful[device.ID] || e.Kind == Device {
		return true
	}
	return slices.ContainsFunc(device.Channels, func(c ChannelState) bool {
		return c.Key == e.Channel && c.Endpoint == e.Endpoint && c.Logged.Observed.After(e.Began)
	})
}
