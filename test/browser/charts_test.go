package browser

import (
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
)

// TestCharts checks the charts of a thermostat and of a lock: they have axes, show the value under
// the pointer, and go on with what the device reports.
func TestCharts(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Charts")
	report := func(device int64, key string, value any) {
		t.Helper()
		if err := p.hub.Report(device, virtualhub.ChannelRef{Key: key}, value); err != nil {
			t.Fatal(err)
		}
	}
	report(2, "temperature", 17.5)
	report(2, "humidity", 40)
	p.goTo(p.hubPage())
	p.await(channel(2, "temperature", ".value"), "17.5")
	p.goTo(p.hubPage() + "/devices/2")
	p.await("#connection", "Live")
	const chart = `[data-chart="temperature/0"]`
	p.await("#chart-zone", "Times in")
	p.await(chart+" .u-legend", "Temperature")
	report(2, "temperature", 23.5)
	p.await(chart+" figcaption b", "23.5 °C")
	p.click(chart + " .u-over")
	p.check("charts")
	if scale := eval[string](p.tab, `JSON.stringify(JSON.parse(
		document.getElementById("chart-data").textContent).find((c) => c.key === "humidity").scale)`,
	); scale != "[0,100]" {
		t.Errorf("scale of humidity: got %s, want [0,100]", scale)
	}
	report(1, "lock", false)
	p.goTo(p.hubPage())
	p.await(channel(1, "lock", ".value"), "unlocked")
	p.goTo(p.hubPage() + "/devices/1")
	p.await("#connection", "Live")
	p.await(`[data-chart="lock/0"] figcaption b`, "unlocked")
	report(1, "lock", true)
	streamstest.Eventually(t, "the timeline shows that the door is locked", func() bool {
		return eval[string](
			p.tab, `document.querySelector('[data-chart="lock/0"] figcaption b').textContent`,
		) == "locked"
	})
	p.check("timeline")
}
