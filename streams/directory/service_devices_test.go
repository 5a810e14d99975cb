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

func show(label domain.DeviceLabel) string {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	return text(label.Name) + " in " + text(label.Room)
}

func TestLabelAndForgetADevice(t *testing.T) {
	t.Parallel()
	w := withHub(t, newWorld(t, streamstest.Start(t)))
	set := func(c domain.LabelDevice, want string) {
		t.Helper()
		c.OrgID, c.HubID, c.DeviceID = w.orgA, hub, 3
		if label, err := w.LabelDevice(t.Context(), origin, c); err != nil || show(label) != want {
			t.Errorf("got %s, %v; want %s", show(label), err, want)
		}
	}
	set(domain.LabelDevice{SetName: true, Name: ptr("  Front door ")}, "Front door in -")
	set(domain.LabelDevice{SetRoom: true, Room: ptr("Hall")}, "Front door in Hall")
	set(domain.LabelDevice{SetName: true}, "- in Hall")
	set(domain.LabelDevice{SetName: true}, "- in Hall")
	if readable, applied := w.waited(); len(readable) != 4 || readable[2] != readable[3] ||
		len(applied) != 0 {
		t.Errorf("waited for %v by the read models, %v by the replicas", readable, applied)
	}
	for _, c := range []domain.LabelDevice{
		{OrgID: w.orgB, HubID: hub, SetName: true},
		{OrgID: w.orgA, HubID: "hub-0000-0000-0000", SetName: true},
		{OrgID: w.orgA, HubID: "hub.>", SetName: true},
	} {
		_, err := w.LabelDevice(t.Context(), origin, c)
		wantCode(t, err, domain.CodeNotFound)
	}
	w.waited()
	for _, devices := range [][]int64{{4, 3, 3}, {3}, nil} { // once there is something to forget
		streamstest.Must(t, w.ForgetDevices(t.Context(), origin, hub, devices))
	}
	if readable, _ := w.waited(); len(readable) != 1 {
		t.Errorf("waited for %v", readable)
	}
	for _, id := range []domain.HubID{"hub-0000-0000-0000", "hub.>"} {
		streamstest.Must(t, w.ForgetDevices(t.Context(), origin, id, []int64{3}))
	}
	set(domain.LabelDevice{SetName: true, Name: ptr("Door")}, "Door in -")
	if err := w.BeginEpoch(t.Context(), origin, hub, domain.BeginEpoch{
		OwnLog: "second",
	}); err != nil {
		t.Fatal(err)
	}
	set(domain.LabelDevice{SetRoom: true, Room: ptr("Attic")}, "- in Attic")
}

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
