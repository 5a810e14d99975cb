package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/nodejs"
)

// busyLoad is the load for each processor, before the runs, above which the speed of a page says nothing.
const busyLoad = 0.25

// TestLighthouse has Lighthouse judge the dashboard of 500 hubs, on a phone with a network of 1.6 Mbit/s
// and a processor that is four times slower than this machine's. What else the machine does makes
// the page slower too, so the best of three runs counts, and the speed is not tried where the machine is busy.
func TestLighthouse(t *testing.T) {
	server := httptest.NewServer(busyOrg{quiet: true}.serve())
	t.Cleanup(server.Close)
	program := chromium(t)
	tools := nodejs.Install(t, "npm", "browser")
	wanted := map[string]float64{"performance": 0.95, "accessibility": 1, "best-practices": 1}
	var report struct {
		Categories map[string]struct{ Score float64 }
		Audits     map[string]struct {
			ID, Title, DisplayValue string
			Score                   *float64
		}
	}
	load, low := processorLoad(t), false
	busy := load > busyLoad*float64(runtime.NumCPU())
	if busy {
		delete(wanted, "performance")
	}
	for range 3 {
		cmd := nodejs.Program(
			t, tools, t.TempDir(), "lighthouse", server.URL+"/portal/org", "--quiet", "--output=json",
			"--only-categories="+strings.Join(slices.Collect(maps.Keys(wanted)), ","),
			"--throttling.cpuSlowdownMultiplier=4", "--max-wait-for-load=10000",
			"--chrome-flags=--headless=new --no-sandbox",
		)
		cmd.Env = append(os.Environ(), "CHROME_PATH="+program)
		text, err := cmd.Output()
		if err != nil {
			t.Logf("Lighthouse recorded nothing: %v", err) // it does so now and then on a busy machine
			continue
		}
		streamstest.Must(t, os.WriteFile(filepath.Join(artifacts, "lighthouse.json"), text, 0o644))
		streamstest.Must(t, json.Unmarshal(text, &report))
		low = false
		for name, want := range wanted {
			score := report.Categories[name].Score
			t.Logf("%s: %.0f", name, score*100)
			low = low || score < want
		}
		if !low {
			break
		}
	}
	if busy && !low {
		t.Skipf("NOT TRIED: the speed: %.1f processes were running on %d processors", load, runtime.NumCPU())
	}
	if !low && report.Categories != nil {
		return
	}
	for id, audit := range report.Audits {
		if audit.Score != nil && *audit.Score < 1 {
			t.Logf("%s: %s %s", id, audit.Title, audit.DisplayValue)
		}
	}
	t.Errorf("got %+v, want at least %v", report.Categories, wanted)
}

// processorLoad returns how many processes were running or waiting for a processor in the last minute.
func processorLoad(t *testing.T) (load float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	streamstest.Must(t, err)
	return load
}
