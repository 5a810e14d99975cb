package statelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams"
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

// errNotComplete reports a read that lacks devices.
var errNotComplete = errors.New("some devices did not answer")

// ask asks a hub for its devices, stores the answer, and plans what follows.
func (k *Keeper) ask(ctx context.Context, id domain.HubID, a *ask) {
	err := k.read(ctx, id)
	if ctx.Err() != nil {
		return
	}
	now := k.cfg.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	a.running = false
	switch {
	case err == nil:
		a.due, a.failures = now.Add(k.cfg.MinInterval), 0
		a.done, a.again = !a.again, false
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

// read asks a hub for its devices and stores the answer.
func (k *Keeper) read(ctx context.Context, id domain.HubID) error {
	access, ok := k.cfg.Hubs.Hub(id)
	if !ok {
		return nil
	}
	answer, err := k.answer(ctx, id, access)
	incomplete := errors.Is(err, errNotComplete)
	if err != nil && (!incomplete || len(answer.Devices) == 0) {
		k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
		return err
	}
	payloads, storeErr := devicestate.MarshalRead(answer)
	if storeErr == nil {
		_, storeErr = k.cfg.Logs.AppendState(ctx, id, access.Epoch.ID, access.OrgID, payloads...)
	}
	switch {
	case storeErr != nil:
		k.metrics.reads.WithLabelValues(outcomeFailed).Inc()
		return fmt.Errorf("store the answer: %w", storeErr)
	case incomplete:
		k.metrics.reads.WithLabelValues(outcomePartial).Inc()
		return err
	}
	k.metrics.reads.WithLabelValues(outcomeStored).Inc()
	return nil
}

// answer asks a hub for its devices. With errNotComplete it returns those that have answered.
func (k *Keeper) answer(
	ctx context.Context, id domain.HubID, access domain.HubAccess,
) (devicestate.Read, error) {
	ctx = telemetry.WithRequest(ctx, RequestPrefix+ulid.Make().String())
	read := devicestate.Read{EpochID: access.Epoch.ID}
	var err error
	if read.After, err = k.cfg.Logs.LastSequence(ctx, id); err != nil {
		return read, err
	}
	listed, err := k.cfg.Devices.List(ctx, id)
	if err != nil {
		k.noteFault(id, err)
		return read, err
	}
	var all []int64
	silent := 0
	for i := range listed[:min(len(listed), devicestate.MaxDevices)] {
		if !streams.Sleep(ctx, k.cfg.Pause) {
			return read, ctx.Err()
		}
		device, err := k.device(ctx, id, listed[i].ID)
		switch {
		case err == nil:
			read.Devices = append(read.Devices, devicestate.ReadOf(device))
			all = append(all, device.ID)
		case domain.CodeOf(err) == domain.CodeNotFound: // forgotten meanwhile
		case ctx.Err() != nil, domain.CodeOf(err) == domain.CodeHubOffline:
			return read, err
		default:
			k.noteFault(id, err)
			if silent++; silent == maxSilent {
				return read, fmt.Errorf("%w: %w", errNotComplete, err)
			}
		}
	}
	if silent > 0 || len(listed) > devicestate.MaxDevices {
		return read, errNotComplete
	}
	slices.Sort(all)
	read.Complete, read.All = true, all
	return read, nil
}

// device asks for a device, again if it does not answer.
func (k *Keeper) device(
	ctx context.Context, id domain.HubID, device int64,
) (found domain.Device, err error) {
	for try := 1; ; try++ {
		found, err = k.cfg.Devices.Get(ctx, id, device)
		code := domain.CodeOf(err)
		again := code == domain.CodeHubTimeout || code == domain.CodeHubUnavailable
		if err == nil || !again || try == deviceTries ||
			!streams.Sleep(ctx, time.Duration(try)*10*k.cfg.Pause) {
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
