package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// recordingDirectory records the devices of ForgetDevices, which fails while fails returns an
// error.
type recordingDirectory struct {
	ingest.Directory
	mu        sync.Mutex
	fails     func() error
	forgotten []int64
}

func (d *recordingDirectory) ForgetDevices(
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

// recorded returns the devices of all calls.
func (d *recordingDirectory) recorded() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.forgotten)
}

func withDirectory(dir *recordingDirectory) change {
	return func(cfg *ingest.Config) { dir.Directory, cfg.Directory = cfg.Directory, dir }
}

// label sets the name of a device.
func (h *hub) label(device int64, name string) {
	h.r.t.Helper()
	c := domain.LabelDevice{OrgID: h.r.OrgID, HubID: h.id, DeviceID: device, SetName: true, Name: &name}
	if _, err := h.r.Directory.LabelDevice(h.r.t.Context(), installationtest.Operator, c); err != nil {
		h.r.t.Fatal(err)
	}
}

// labeled returns the number of devices with a name.
func (h *hub) labeled() (devices int) {
	h.r.t.Helper()
	state, _, err := h.r.Directory.Hub(h.r.t.Context(), h.id)
	streamstest.Must(h.r.t, err)
	return len(state.Labels)
}

// forgotten returns the event device.forgotten number seq.
func forgotten(seq uint64, device string) string {
	return fmt.Sprintf(
		`{"seq":%d,"type":"device.forgotten","device_id":%s,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"name":"Lock"}}`,
		seq, device,
	)
}

// TestForgottenDevices holds that device.forgotten deletes the names of devices, and that a repeat
// of the stored event keeps the names set since.
func TestForgottenDevices(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir := adopted(r), &recordingDirectory{}
	r.shard(h.id, withDirectory(dir))
	h.helloAcked("a", 1, 0, 0)
	for device := range int64(3) {
		h.label(device, "Door")
	}
	message := []string{
		event(1),
		forgotten(2, "1"),
		forgotten(3, "1"),
		strings.Replace(forgotten(4, "7"), "forgotten", `forgott\u0065n`, 1),
		forgotten(5, "null"),
		forgotten(6, `"2"`),
		strings.Replace(forgotten(7, "2"), "forgotten", "forgotten2", 1),
	}
	h.sendEvents("a", message...)
	h.wantAck("a", 7)
	h.wantEventLog("1 device.forgotten device.forgotten device.forgotten device.forgotten skip:6-6 device.forgotten2")
	if got := dir.recorded(); got != "[1 1 7]" || h.labeled() != 2 {
		t.Errorf("forgotten %s and %d named devices, want [1 1 7] and 2", got, h.labeled())
	}
	h.label(1, "Another door")
	h.sendEvents("a", message...)
	h.wantAck("a", 7)
	if got := dir.recorded(); got != "[1 1 7]" || h.labeled() != 3 {
		t.Errorf(
			"after a repeat: forgotten %s and %d named devices, want [1 1 7] and 3", got,
			h.labeled(),
		)
	}
}

// TestForgottenBeforeStored holds that the names are deleted before the events are stored: a
// directory that fails withholds the events, and a process that ends in between leaves no name
// behind.
func TestForgottenBeforeStored(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir, logs := adopted(r), &recordingDirectory{
		fails: once(errors.New("the directory is away")),
	}, &faultyLogs{}
	s := r.shard(h.id, withDirectory(dir), withLogs(logs))
	h.helloAcked("a", 1, 0, 0)
	h.label(1, "Door")
	h.sendEvents("a", forgotten(1, "1"))
	streamstest.Eventually(
		t, "ForgetDevices is called", func() bool { return dir.recorded() == "[1]" },
	)
	h.wantAck("a", 0)
	if h.labeled() != 1 {
		t.Fatalf("%d named devices, want 1", h.labeled())
	}
	h.wantEventLog("")
	// Now the directory deletes the name, and the process ends before it stores the event.
	logs.set(func() error { return errors.New("killed") }, nil)
	h.sendEvents("a", forgotten(1, "1"))
	streamstest.Eventually(t, "the name is deleted", func() bool { return h.labeled() == 0 })
	s.kill()
	h.wantEventLog("")
	r.shard(h.id)
	h.sendEvents("a", forgotten(1, "1"))
	h.wantAck("a", 1)
	h.wantEventLog("device.forgotten")
}

// TestForgottenByUnownedHub holds that device.forgotten of a hub without an organization is
// acknowledged and counted, and changes nothing in the directory.
func TestForgottenByUnownedHub(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, dir := r.hub(), &recordingDirectory{}
	r.shard(h.id, withDirectory(dir))
	h.helloAcked("a", 1, 0, 0)
	h.sendEvents("a", forgotten(1, "1"))
	h.wantAck("a", 1)
	if got := dir.recorded(); got != "[]" || r.count("events_unowned_total") != 1 {
		t.Errorf("forgotten %s, unowned %v, want [] and 1", got, r.count("events_unowned_total"))
	}
}
