package virtualhub

import (
	"context"
	"strings"
	"time"

	"hubcloud/hubbridge/kit/hub"
)

// Devices returns all devices.
func (c *controller) Devices(ctx context.Context) ([]hub.Device, error) {
	defer c.answer(ctx)()
	views := make([]hub.Device, len(c.devices))
	for i, d := range c.devices {
		views[i] = d.View()
	}
	return views, nil
}

// Device returns a device.
func (c *controller) Device(ctx context.Context, id int64) (hub.Device, error) {
	defer c.answer(ctx)()
	d, err := c.findDevice(id)
	if err != nil {
		return hub.Device{}, err
	}
	return d.View(), nil
}

// Forget removes a device that the radio cannot reach. Others leave through a removal window.
func (c *controller) Forget(ctx context.Context, id int64) error {
	defer c.answer(ctx)()
	d, err := c.findDevice(id)
	if err != nil {
		return err
	}
	if d.Available {
		return hub.Errorf(
			hub.ErrorInvalidRequest,
			"%s is still on the hub's network: remove it through a removal window", d.Spec.Name,
		)
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return unavailable // the radio cannot tell whether the device is gone
	}
	c.remove(d, c.now())
	return nil
}

// smartStartPrefix begins the text of the QR code of a device that can join by itself.
const smartStartPrefix = "90"

// OpenPairing opens the pairing window.
func (c *controller) OpenPairing(ctx context.Context, setupCode string) (time.Duration, error) {
	defer c.answer(ctx)()
	remaining, err := c.open(&c.pairing, setupCode)
	if err == nil {
		c.smartStart = strings.HasPrefix(setupCode, smartStartPrefix)
	}
	return remaining, err
}

// ClosePairing closes the pairing window.
func (c *controller) ClosePairing(ctx context.Context) error {
	defer c.answer(ctx)()
	c.pairing, c.smartStart = window{}, false
	return nil
}

// OpenRemoval opens the removal window.
func (c *controller) OpenRemoval(ctx context.Context) (time.Duration, error) {
	defer c.answer(ctx)()
	return c.open(&c.removal, "")
}

// CloseRemoval closes the removal window.
func (c *controller) CloseRemoval(ctx context.Context) error {
	defer c.answer(ctx)()
	c.removal = window{}
	return nil
}

// findDevice returns the device with the given id, or ErrorNotFound.
func (c *controller) findDevice(id int64) (*device, error) {
	d := c.device(id)
	if d == nil {
		return nil, hub.Errorf(hub.ErrorNotFound, "no device %d", id)
	}
	return d, nil
}
