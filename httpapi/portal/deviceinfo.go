package portal

import (
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// lastTimeout bounds the read of names and units that were reported before.
const lastTimeout = time.Second

// deviceInfo is what texts about a device's events need.
type deviceInfo struct {
	// Name is the name that a member set, or the one that the hub reports.
	Name string `json:"name"`
	// Units are the units of its channels, by key and endpoint: "temperature/0". Channels without
	// a unit are missing.
	Units map[string]string `json:"units,omitempty"`
}

// units are the units of channels that always have the same, by key. Pages pass them to their
// scripts.
var units = map[string]string{
	"battery": "%", "heating_setpoint": "°C", "cooling_setpoint": "°C",
}

// deviceInfos returns up to 1,000 devices of a hub, by device id. If the hub does not answer it
// returns what the hub reported before, and the names that members set.
func (p *Portal) deviceInfos(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]deviceInfo, error) {
	names, err := p.labelNames(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	infos := make(map[int64]deviceInfo, len(names))
	for id, name := range names {
		infos[id] = deviceInfo{Name: name}
	}
	listed, err := p.Devices.List(ctx, hub)
	if err != nil {
		// The names that members set, and what was reported before, do not need the hub.
		statesCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
		defer cancel()
		last, _ := p.lastDevices(statesCtx, org, hub) // a page without some names is better than none
		for _, d := range last[:min(len(last), maxNames)] {
			infos[d.ID] = infoOf(d)
		}
		return infos, nil
	}
	for _, d := range listed {
		info, set := infos[d.ID]
		if !set && len(infos) >= maxNames {
			continue
		}
		if !set && domain.Shows(d.Name) {
			info.Name = truncate(d.Name, longestValue)
		}
		for _, c := range d.Channels {
			if c.Unit == nil || *c.Unit == "" {
				continue
			}
			if info.Units == nil {
				info.Units = map[string]string{}
			}
			info.Units[channelName(c.Key, c.Endpoint)] = truncate(*c.Unit, longestUnit)
		}
		infos[d.ID] = info
	}
	return infos, nil
}

// infoOf returns what texts need of a device.
func infoOf(d hubDevice) deviceInfo {
	info := deviceInfo{Name: truncate(d.Name, longestValue)}
	for _, c := range d.Channels {
		if c.Unit == "" {
			continue
		}
		if info.Units == nil {
			info.Units = map[string]string{}
		}
		info.Units[channelName(c.Key, c.Endpoint)] = truncate(c.Unit, longestUnit)
	}
	return info
}

// unitOf returns the unit of the channel that an event is about, "" if it has none.
func unitOf(event logEvent, devices map[int64]deviceInfo) string {
	var c channelEvent
	if event.DeviceID == nil || json.Unmarshal(event.Data, &c) != nil {
		return ""
	}
	if unit := devices[*event.DeviceID].Units[channelName(c.Key, c.Endpoint)]; unit != "" {
		return unit
	}
	return units[c.Key]
}

// channelName returns a channel's name within its device: "switch/1".
func channelName(key string, endpoint int64) string { return key + "/" + formatInt(endpoint) }
