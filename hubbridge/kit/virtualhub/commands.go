package virtualhub

import (
	"context"
	"time"

	"hubcloud/hubbridge/kit/hub"
)

// Command starts a command on its device.
func (c *controller) Command(ctx context.Context, cmd *hub.Command) error {
	defer c.answer(ctx)()
	if unavailable := c.unavailable(); unavailable != nil {
		return unavailable
	}
	d, err := c.findDevice(cmd.DeviceID)
	if err != nil {
		return err
	}
	ref := ChannelRef{Key: cmd.Key, Endpoint: cmd.Endpoint}
	value, err := d.Check(ref, cmd.Value)
	if err != nil {
		return err
	}
	if c.faults.RejectCommands {
		return hub.Errorf(hub.ErrorCommandRefused, "the hub will not drive %s", d.Spec.Name)
	}
	before := d.Snapshot()
	channel := d.Command(ref, value, c.now())
	if err := cmd.Accept(channel, hub.Change{Set: c.entries(d)}); err != nil {
		if restored, restoreErr := restoreDevice(before, seed(c.id)); restoreErr == nil {
			restored.Jammed = d.Jammed
			*d = *restored
		}
		return err
	}
	c.wake()
	return nil
}

// unavailable returns the error of a hub that cannot act now, and nil if it can.
func (c *controller) unavailable() error {
	switch {
	case c.faults.RadioDown:
		return hub.Errorf(hub.ErrorHubUnavailable, "the hub's radio is down")
	case c.faults.ClockUnknown:
		return hub.Errorf(hub.ErrorHubUnavailable, "the hub does not know the time yet")
	}
	return nil
}

// answer takes the lock for an answer. The function that it returns releases the lock, and then
// waits for as long as the faults delay answers, or until ctx ends.
func (c *controller) answer(ctx context.Context) (end func()) {
	c.mu.Lock()
	return func() {
		delay := time.Duration(c.faults.LateAnswers)
		c.mu.Unlock()
		if delay == 0 {
			return
		}
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}
