package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

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
		streamstest.Must(t, p.hub.Report(device, virtualhub.ChannelRef{Key: key}, value))
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
	// A part of the time that is drawn over is shown in all charts, until a double click.
	shown := `(() => [...document.querySelectorAll("[data-chart] .u-axis")].length && uPlot.sync("device").plots
		.map((plot) => Math.round((plot.scales.x.max - plot.scales.x.min) / 60)).join())()`
	drag := fmt.Sprintf(`{ const over = document.querySelector(%q), box = over.getBoundingClientRect();
		const at = (share) => ({ bubbles: true, clientX: box.left + box.width * share, clientY: box.top + 20, movementX: 9, button: 0 });
		over.dispatchEvent(new MouseEvent("mousedown", at(0.25)));
		for (const where of [document, over]) where.dispatchEvent(new MouseEvent("mousemove", at(0.75)));
		document.dispatchEvent(new MouseEvent("mouseup", at(0.75))); } 0`, chart+" .u-over")
	p.do("draw over a chart", chromedp.Evaluate[chromedp.Void](drag))
	if got := eval[string](p.tab, shown); strings.ReplaceAll(strings.ReplaceAll(got, "30", ""), ",", "") != "" {
		t.Errorf("half of an hour was drawn over: got charts of %s minutes, want 30 each", got)
	}
	// The page said that it shows the last hour, and its address could not be shared.
	if said := eval[string](p.tab, `document.querySelector(".steps [aria-current]")?.textContent ?? ""`); said != "" {
		t.Errorf("zoomed in: the page says that it shows %s", said)
	}
	zoomed := eval[string](p.tab, "location.href")
	p.do("show all", chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
		`document.querySelector(%q).dispatchEvent(new MouseEvent("dblclick", { bubbles: true })); 0`, chart+" .u-over",
	)))
	if got := eval[string](p.tab, shown); !strings.HasPrefix(got, "60") {
		t.Errorf("after a double click: got charts of %s minutes, want 60", got)
	}
	p.await(".steps [aria-current]", "1 hour")
	p.goTo(zoomed) // of a time in which nothing was reported
	p.await("main", "Nothing to chart was reported in this period.")
	if from, to := p.valueOf("#from"), p.valueOf("#to"); from == "" || to == "" {
		t.Errorf("the shared address: the page says from %q to %q, want two times", from, to)
	}
	begin := time.Now().Add(-20 * time.Minute).UTC().Format(time.RFC3339)
	p.goTo(p.hubPage() + "/devices/2?from=" + begin)
	p.await(chart+" .u-legend", "Temperature")
	if got := eval[string](p.tab, shown); !strings.HasPrefix(got, "2") {
		t.Errorf("from 20 minutes ago: got charts of %s minutes", got)
	}
	p.goTo(p.hubPage() + "/devices/2")
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
	p.await("#history td:last-child", "at the device")
	p.check("timeline")
}
