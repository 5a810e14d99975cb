package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// watchedDirectory counts what is forgotten, and fails it as long as fails says so.
type watchedDirectory struct {
	ingest.Directory
	mu        sync.Mutex
	fails     func() error
	forgotten []int64
}

func (d *watchedDirectory) ForgetDevices(
	ctx context.Context, o domain.Origin, hub domain.HubID, devices []int64,
) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten = append(d.forgotten, devices...)
	if d.fails != nil {
		if err := d.fails(); err != nil {
			return err
		}
	}
	return d.Directory.ForgetDevices(ctx, o, hub, devices)
}

func (d *watchedDirectory) asked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.forgotten)
}

func withDirectory(dir *watchedDirectory) change {
	return func(cfg *ingest.Config) { dir.Directory, cfg.Directory = cfg.Directory, dir }
}

func (h *hub) label(device int64, name string) {
	h.r.t.Helper()
	c := domain.LabelDevice{
		OrgID:    h.r.OrgID,
		HubID:    h.id,
		DeviceID: device,
		SetName:  true,
		Name:     &name,
	}
	if _, err := h.r.Directory.LabelDevice(h.r.t.Context(), installationtest.Operator, c); err != nil {
		h.r.t.Fatal(err)
	}
}

func (h *hub) labeled() (devices int) {
	h.r.t.Helper()
	state, _, err := h.r.Directory.Hub(h.r.t.Context(), h.id)
	if err != nil {
		h.r.t.Fatal(err)
	}
	return len(state.Labels)
}

func forgotten(seq uint64, device string) string {
	return fmt.Sprintf(
		`{"seq":%d,"type":"device.forgotten","device_id":%s,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"name":"Lock"}}`,
		seq, device,
	)
}

// TestForgottenDevices: the names of devices go with device.forgotten, once a message, and a repeat
// of an event that is stored leaves alone what was named since.
func TestForgottenDevices(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir := adopted(r), &watchedDirectory{}
	r.shard(h.id, withDirectory(dir))
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	for device := range int64(3) {
		h.label(device, "Door")
	}
	message := []string{
		event(1),
		forgotten(2, "1"),
		forgotten(3, "1"),
		forgotten(4, "7"),
		forgotten(5, "null"),
		forgotten(6, `"2"`),
	}
	h.these("a", message...)
	h.wantAck("a", 6)
	h.wantEventLog("1 device.forgotten device.forgotten device.forgotten device.forgotten skip:6-6")
	if got := dir.asked(); got != "[1 1 7]" || h.labeled() != 2 {
		t.Errorf("forgotten %s, %d devices named", got, h.labeled())
	}
	h.label(1, "Another door")
	h.these("a", message...)
	h.wantAck("a", 6)
	if got := dir.asked(); got != "[1 1 7]" || h.labeled() != 3 {
		t.Errorf("after a repeat: forgotten %s, %d devices named", got, h.labeled())
	}
}

// TestForgottenBeforeStored: a directory that cannot forget withholds the events, and a process
// that ends between the two leaves nothing undone.
func TestForgottenBeforeStored(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir, logs := adopted(r), &watchedDirectory{
		fails: once(errors.New("the directory is away")),
	}, &faultyLogs{}
	s := r.shard(h.id, withDirectory(dir), withLogs(logs))
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	h.label(1, "Door")
	h.these("a", forgotten(1, "1"))
	streamstest.Eventually(t, "it is asked", func() bool { return dir.asked() == "[1]" })
	if got, ok := h.ackWithin(200 * time.Millisecond); ok || h.labeled() != 1 {
		t.Fatalf("ack %+v, %d devices named", got, h.labeled())
	}
	h.wantEventLog("")
	// Now it forgets, and then the process ends.
	logs.set(func() error { return errors.New("killed") }, nil)
	h.these("a", forgotten(1, "1"))
	streamstest.Eventually(t, "it is forgotten", func() bool { return h.labeled() == 0 })
	s.kill()
	h.wantEventLog("")
	r.shard(h.id)
	h.these("a", forgotten(1, "1"))
	h.wantAck("a", 1)
	h.wantEventLog("device.forgotten")
}

// TestForgottenByNobodysHub: what a hub that nobody has added forgets is acknowledged, and the
// directory is left alone.
func TestForgottenByNobodysHub(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir := r.hub(), &watchedDirectory{}
	r.shard(h.id, withDirectory(dir))
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	h.these("a", forgotten(1, "1"))
	h.wantAck("a", 1)
	if got := dir.asked(); got != "[]" {
		t.Errorf("forgotten %s", got)
	}
}
