package portal

import (
	"context"
	"encoding/json"
	"sync"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

// maxNames is how many devices of a hub have names in texts.
const maxNames = 1000

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

// deviceInfos returns up to 1,000 devices of a hub, by device id: what the hub reported last, with the
// names that members set.
func (p *Portal) deviceInfos(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]deviceInfo, error) {
	last, err := p.lastDevices(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	return p.infosOf(ctx, org, hub, last)
}

// infosOf returns up to 1,000 of a hub's devices, by device id, with the names that members set.
func (p *Portal) infosOf(
	ctx context.Context, org string, hub domain.HubID, devices []hubDevice,
) (map[int64]deviceInfo, error) {
	labels, err := p.ReadModels.DeviceLabels(ctx, org, hub)
	if err != nil {
		return nil, err
	}
	infos := map[int64]deviceInfo{}
	for _, d := range devices[:min(len(devices), maxNames)] {
		infos[d.ID] = infoOf(d)
	}
	for id, label := range labels {
		if info, known := infos[id]; label.Name != nil && (known || len(infos) < maxNames) {
			info.Name = *label.Name
			infos[id] = info
		}
	}
	return infos, nil
}

// deviceInfosOf returns the devices of hubs, by hub and device id, as deviceInfos does.
func (req *request) deviceInfosOf(
	hubs []domain.HubID,
) (map[domain.HubID]map[int64]deviceInfo, error) {
	var mu sync.Mutex
	all := map[domain.HubID]map[int64]deviceInfo{}
	group, ctx := errgroup.WithContext(req.ctx)
	group.SetLimit(concurrentLogReads)
	for _, hub := range hubs {
		group.Go(func() error {
			infos, err := req.deviceInfos(ctx, req.org, hub)
			mu.Lock()
			defer mu.Unlock()
			all[hub] = infos
			return err
		})
	}
	return all, group.Wait()
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
