package statelog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/telemetry"
)

// deviceInterval is the least time between two reads of single devices of a hub.
const deviceInterval = 5 * time.Second

// requestDevice notes that a hub must be asked for the device of an event, soon and whenever the
// hub was asked last: a device that has just joined tells its channels one after the other, while
// somebody waits for it.
func (k *Keeper) requestDevice(id domain.HubID, event []byte) {
	var device struct {
		ID *int64 `json:"device_id"`
	}
	if json.Unmarshal(event, &device) != nil || device.ID == nil {
		return // an event without a device changes no device
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.asks[id]
	if a == nil {
		a = &ask{done: true}
		k.asks[id] = a
	}
	if len(a.devices) == 0 {
		a.devices = map[int64]struct{}{}
		if due := k.cfg.Now().Add(k.cfg.Delay); due.After(a.devicesDue) {
			a.devicesDue = due
		}
	}
	a.devices[*device.ID] = struct{}{}
}

// askForDevices asks a hub for the devices that were requested and stores what it answers. If a
// device does not answer, all are asked for.
func (k *Keeper) askForDevices(ctx context.Context, id domain.HubID, a *ask) {
	k.mu.Lock()
	devices := a.devices
	a.devices = nil
	k.mu.Unlock()
	err := k.readDevices(ctx, id, devices)
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	a.running = false
	a.devicesDue = k.cfg.Now().Add(deviceInterval)
	again := a.again
	a.again = false
	k.mu.Unlock()
	if err != nil || again {
		k.request(id, k.cfg.Delay)
	}
}

// readDevices asks a hub for devices and stores the answer as a part of a read.
func (k *Keeper) readDevices(
	ctx context.Context, id domain.HubID, devices map[int64]struct{},
) (err error) {
	var read devicestate.Read
	var access domain.HubAccess
	if read.After, access, err = k.end(ctx, id); err != nil {
		return err
	}
	read.EpochID = access.Epoch.ID
	ctx = telemetry.WithRequest(ctx, RequestPrefix+ulid.Make().String())
	for device := range devices {
		found, err := k.device(ctx, id, device)
		switch {
		case err == nil:
			read.Devices = append(read.Devices, devicestate.ReadOf(found))
		case domain.CodeOf(err) != domain.CodeNotFound: // otherwise forgotten meanwhile
			k.noteFault(id, err)
			k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
			return err
		}
	}
	if len(read.Devices) == 0 {
		return nil
	}
	payloads, err := devicestate.MarshalRead(read)
	if err == nil {
		_, err = k.cfg.Logs.AppendState(ctx, id, access.Epoch.ID, access.OrgID, payloads...)
	}
	if err != nil {
		k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
		return err
	}
	k.metrics.reads.WithLabelValues(outcomeDevice).Inc()
	return nil
}
