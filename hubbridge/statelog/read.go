package statelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

const (
	// deviceTries is how often a device is asked for that does not answer, and maxSilent after how
	// many such devices the others are left out.
	deviceTries = 3
	maxSilent   = 3
	// firstBackoff is the pause after a read that failed. It doubles up to maxBackoff.
	firstBackoff = 2 * time.Second
	maxBackoff   = 10 * time.Minute
)

// RequestPrefix begins the ids of the requests to hubs.
const RequestPrefix = "state-"

var (
	// errNotComplete reports a read that lacks devices.
	errNotComplete = errors.New("some devices did not answer")
	// errNoOwner reports a hub that no organization has.
	errNoOwner = errors.New("no organization has the hub")
)

// ask asks a hub for its devices, stores the answer, and plans what follows.
func (k *Keeper) ask(ctx context.Context, id domain.HubID, a *ask) {
	epoch, err := k.read(ctx, id)
	if ctx.Err() != nil {
		return
	}
	now := k.cfg.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	a.running = false
	switch {
	case err == nil:
		a.epoch, a.notBefore, a.failures = epoch, now.Add(k.cfg.MinInterval), 0
		a.done, a.due = true, a.notBefore
		if a.again {
			a.done, a.again, a.due = false, false, k.nextRead(id, a, k.cfg.Delay)
		}
	case !k.cfg.Online(id) && !a.again:
		delete(k.asks, id) // it is asked when it connects
	default:
		a.again = false
		a.due = now.Add(min(firstBackoff<<min(a.failures, 20), maxBackoff))
		if a.failures == 0 {
			k.cfg.Logger.Warn(
				"hub not asked for all its devices; trying again", "hub_id", id, "error", err,
			)
		}
		a.failures++
	}
}

// read asks a hub for its devices and stores the answer. It returns the epoch of the log that it
// belongs to.
func (k *Keeper) read(ctx context.Context, id domain.HubID) (domain.EpochID, error) {
	access, answer, err := k.answer(ctx, id)
	incomplete := errors.Is(err, errNotComplete)
	switch {
	case errors.Is(err, errNoOwner):
		return access.Epoch.ID, nil
	case err != nil && (!incomplete || len(answer.Devices) == 0):
		k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
		return access.Epoch.ID, err
	}
	payloads, storeErr := devicestate.MarshalRead(answer)
	if storeErr == nil {
		_, storeErr = k.cfg.Logs.AppendState(ctx, id, access.Epoch.ID, access.OrgID, payloads...)
	}
	switch {
	case storeErr != nil:
		k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
		return access.Epoch.ID, fmt.Errorf("store the answer: %w", storeErr)
	case incomplete:
		k.metrics.reads.WithLabelValues(outcomePartial).Inc()
		return access.Epoch.ID, err
	}
	k.metrics.reads.WithLabelValues(outcomeStored).Inc()
	return access.Epoch.ID, nil
}

// answer asks a hub for its devices. With errNotComplete it returns those that have answered.
func (k *Keeper) answer(
	ctx context.Context, id domain.HubID,
) (access domain.HubAccess, read devicestate.Read, err error) {
	if read.After, access, err = k.end(ctx, id); err != nil {
		return access, read, err
	}
	read.EpochID = access.Epoch.ID
	err = k.askDevices(telemetry.WithRequest(ctx, RequestPrefix+ulid.Make().String()), id, &read)
	return access, read, err
}

// end returns the end of a hub's log, and the log's epoch: the epoch of the last event up to there,
// or one that has begun since.
func (k *Keeper) end(
	ctx context.Context, id domain.HubID,
) (last uint64, access domain.HubAccess, err error) {
	if last, err = k.cfg.Logs.LastSequence(ctx, id); err != nil {
		return last, access, err
	}
	// This process may not know yet the epoch of an event that it has.
	refreshing, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if err := k.cfg.Hubs.Refresh(refreshing); err != nil {
		return last, access, fmt.Errorf("the epoch of the log: %w", err)
	}
	access, ok := k.cfg.Hubs.Hub(id)
	if !ok {
		return last, access, errNoOwner
	}
	return last, access, nil
}

// askDevices asks a hub for its devices and adds them to a read. With errNotComplete it has added
// those that have answered.
func (k *Keeper) askDevices(ctx context.Context, id domain.HubID, read *devicestate.Read) error {
	listed, err := k.cfg.Devices.List(ctx, id)
	if err != nil {
		k.noteFault(id, err)
		return err
	}
	var all []int64
	silent := 0
	// What the answers have in common is what the one with the lowest number has.
	var last []*uint64
	for i := range listed[:min(len(listed), devicestate.MaxDevices)] {
		if !streams.Sleep(ctx, k.cfg.Pause) {
			return ctx.Err()
		}
		device, err := k.device(ctx, id, listed[i].ID)
		switch {
		case err == nil:
			read.Devices = append(read.Devices, devicestate.ReadOf(device))
			last = append(last, listed[i].LastEvent, device.LastEvent)
			all = append(all, device.ID)
		case domain.CodeOf(err) == domain.CodeNotFound: // forgotten meanwhile
		case ctx.Err() != nil, domain.CodeOf(err) == domain.CodeHubOffline:
			return err
		default:
			k.noteFault(id, err)
			if silent++; silent == maxSilent {
				return fmt.Errorf("%w: %w", errNotComplete, err)
			}
		}
	}
	if silent > 0 || len(listed) > devicestate.MaxDevices {
		return errNotComplete
	}
	slices.Sort(all)
	read.Complete, read.All, read.LastEvent = true, all, lowest(last)
	return nil
}

// lowest returns the lowest number, or nil if one is missing.
func lowest(numbers []*uint64) *uint64 {
	if len(numbers) == 0 || slices.Contains(numbers, nil) {
		return nil
	}
	return slices.MinFunc(numbers, func(a, b *uint64) int { return cmp.Compare(*a, *b) })
}

// device asks for a device, again if it does not answer.
func (k *Keeper) device(
	ctx context.Context, id domain.HubID, device int64,
) (found domain.Device, err error) {
	for try := 1; ; try++ {
		found, err = k.cfg.Devices.Get(ctx, id, device)
		code := domain.CodeOf(err)
		again := code == domain.CodeHubTimeout || code == domain.CodeHubUnavailable
		if err == nil || !again || try == deviceTries || !streams.Sleep(ctx, time.Duration(try)*10*k.cfg.Pause) {
			return found, err
		}
	}
}

// noteFault reports an answer that is not valid.
func (k *Keeper) noteFault(id domain.HubID, err error) {
	if domain.CodeOf(err) == domain.CodeHubError {
		k.cfg.ReportFault(id, err.Error())
	}
}
