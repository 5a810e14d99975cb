package directory_test

import (
	"context"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// withHub adds a hub to the first organization.
func withHub(t *testing.T, w *world) *world {
	t.Helper()
	w.register(t, hub)
	w.add(t)
	w.waited()
	return w
}

func ptr[T any](v T) *T { return &v }

// TestForgetDevicesWaitsBriefly: the hub's next events wait for ForgetDevices, so it must wait for
// the read models once, and only for a short time.
func TestForgetDevicesWaitsBriefly(t *testing.T) {
	t.Parallel()
	w := withHub(t, newWorld(t, streamstest.Start(t)))
	door := domain.LabelDevice{OrgID: w.orgA, HubID: hub, SetName: true, Name: ptr("Door")}
	var devices []int64
	for device := range int64(5) {
		c := door
		c.DeviceID = device
		_, err := w.LabelDevice(t.Context(), origin, c)
		streamstest.Must(t, err)
		devices = append(devices, device)
	}
	var until time.Time
	standing := directory.NewService(w.log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev,
		AwaitReadModels: func(ctx context.Context, _ uint64) error {
			until, _ = ctx.Deadline()
			return context.DeadlineExceeded
		},
	})
	streamstest.Must(t, standing.ForgetDevices(t.Context(), origin, hub, devices))
	if waits := time.Until(until); until.IsZero() || waits > 2*time.Second {
		t.Errorf("ForgetDevices waits for %s more, want at most 2 s in all", waits)
	}
	if state, _, err := w.Hub(t.Context(), hub); err != nil || len(state.Labels) != 0 {
		t.Errorf("got %v, %v", state.Labels, err)
	}
	// A command of a person waits longer, and succeeds.
	begun := time.Now()
	label, err := standing.LabelDevice(t.Context(), origin, door)
	if err != nil || label.Name == nil || *label.Name != "Door" {
		t.Errorf("got %+v, %v", label, err)
	}
	if waits := until.Sub(begun); waits < 5*time.Second {
		t.Errorf("LabelDevice waits for %s, want more than ForgetDevices", waits)
	}
}
