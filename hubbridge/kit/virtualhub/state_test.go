package virtualhub_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestReports(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	t.Run("reports", func(t *testing.T) {
		h := c.requestHub(t, "hub-meth-0000-0010")
		scene := map[string]any{"scene": 2, "attribute": "pressed"}
		for range 2 {
			must(t, h.Report(keypad, virtualhub.ChannelRef{Key: "scene"}, scene))
			must(t, h.Report(keypad, virtualhub.ChannelRef{Key: "tamper"}, true))
		}
		must(t, h.Reachable(keypad)) // no change: no event
		must(
			t,
			h.Rename(
				keypad, "Porch keypad", virtualhub.ChannelRef{Key: "tamper"},
				virtualhub.ChannelRef{Key: "lock"},
			),
		)
		if h.Report(keypad, virtualhub.ChannelRef{Key: "tamper"}, true) == nil ||
			h.Report(99, virtualhub.ChannelRef{Key: "tamper"}, true) == nil {
			t.Error("Report() for a channel or device that does not exist returned no error")
		}
		streamstest.Eventually(t, "events stored", func() bool { return len(c.of(h)) == 4 })
		var data []string
		for _, e := range c.of(h) {
			data = append(data, e.Type+" "+string(e.Data))
		}
		if want := []string{
			`channel.observed {"key":"scene","endpoint":0,"value":{"scene":2,"attribute":"pressed"}}`,
			`channel.observed {"key":"tamper","endpoint":0,"value":true}`,
			`channel.observed {"key":"scene","endpoint":0,"value":{"scene":2,"attribute":"pressed"}}`,
			`device.updated {"name":"Porch keypad","removed_channels":[{"key":"tamper","endpoint":0}]}`,
		}; !slices.Equal(data, want) {
			t.Errorf("%q", data)
		}
	})
}

// TestStateSurvivesKill: a hub that is started from a copy of the directory has the devices and
// command ids, answers a repeated command with the first answer, and completes the pending command.
func TestStateSurvivesKill(t *testing.T) {
	t.Parallel()
	c := startCloud(t)
	credentials := c.register(t, "hub-keep-0000-0001")
	slow := []virtualhub.DeviceSpec{{Kind: "lock", Name: "Front door"}, {Kind: "switch", Gangs: 2}}
	must(t, json.Unmarshal([]byte(`"700ms"`), &slow[0].Latency))
	cfg := virtualhub.Config{
		Config: hub.Config{
			EnrollURL: c.http.URL, Serial: credentials.Serial, Secret: credentials.Secret,
			Dir: t.TempDir(), BackoffMin: 20 * time.Millisecond,
		},
		Quiet: true, Devices: slow,
	}
	h, stop := c.start(t, cfg)
	c.connected(t, h)
	first := c.command(t, h, "once", 1, "lock", false)
	result[struct{}](t, c.call(t, h, protocol.MethodPairingOpen, params{}))
	id, err := h.Join(virtualhub.DeviceSpec{Kind: "leak_sensor", Name: "Boiler"})
	must(t, err)
	must(t, h.Rename(2, "Twins"))
	copied := t.TempDir()
	must(t, os.CopyFS(copied, os.DirFS(cfg.Dir)))
	stop()

	cfg.Dir = copied
	h, _ = c.start(t, cfg)
	c.connected(t, h)
	if again := c.command(t, h, "once", 1, "lock", false); string(
		again.Result,
	) != string(first.Result) {
		t.Errorf("answer %s, want the first, %s", again.Result, first.Result)
	}
	c.becomes(t, h, 1, "lock", "synchronized", false)
	if n := len(c.of(h, "channel.desired")); n != 1 {
		t.Errorf("run %d times, want once", n)
	}
	for device, name := range map[int64]string{2: "Twins", id: "Boiler"} {
		if d, ok := h.Device(device); !ok || d.Name != name {
			t.Errorf("device %d is %+v", device, d)
		}
	}
	must(t, h.FactoryReset())
	if _, ok := h.Device(id); ok {
		t.Error("device that joined still exists after a factory reset")
	}
	c.connected(t, h)
	result[channelAnswer](t, c.command(t, h, "once", 1, "lock", true))
	c.becomes(t, h, 1, "lock", "synchronized", true)
}
