package check_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/check"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// newHub returns a virtual hub without a proxy between it and the check.
func newHub(t *testing.T, checked *check.Check, dir string) *virtualhub.Hub {
	t.Helper()
	hub, err := virtualhub.New(virtualhub.Config{
		Config: hub.Config{
			EnrollURL: checked.EnrolURL(), Serial: checked.Serial(), Secret: checked.Secret(),
			Dir: dir, BackoffMax: time.Second, Logger: slog.New(slog.DiscardHandler),
		},
		Devices: []virtualhub.DeviceSpec{{Kind: "outlet"}}, Quiet: true,
	})
	streamstest.Must(t, err)
	return hub
}

// runHub runs a hub until stop is called or the test ends.
func runHub(t *testing.T, hub *virtualhub.Hub) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := hub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func newCheck(t *testing.T, config check.Config) *check.Check {
	t.Helper()
	checked, err := check.New(config)
	streamstest.Must(t, err)
	return checked
}

// run runs a check until stop is called, which returns its report.
func run(t *testing.T, checked *check.Check) (stop func() check.Report) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan check.Report, 1)
	go func() {
		report, err := checked.Run(ctx)
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		ended <- report
	}()
	stop = sync.OnceValue(func() check.Report {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stop
}

// wantAll fails the test unless all lines have the status.
func wantAll(t *testing.T, report check.Report, status check.Status) {
	t.Helper()
	for _, r := range report {
		if r.Status != status {
			t.Errorf("line %s: %s: %q, want %s", r.ID, r.Status, r.Detail, status)
		}
	}
}

// Regression: a hub whose radio was not ready yet got all lines that need it as not seen.
func TestHubBecomesReady(t *testing.T) {
	t.Parallel()
	notes := make(chan string, 10)
	checked := newCheck(t, check.Config{
		Only: []string{
			"pairing.open", "channels.command", "command-after-unavailable", "command-events", "resends",
		},
		Timeout: 4 * time.Minute, OnNote: func(text string) { notes <- text },
	})
	hub := newHub(t, checked, "")
	hub.RadioDown(true)
	runHub(t, hub)
	go func() {
		note := <-notes
		if !strings.Contains(note, "hub_unavailable") {
			t.Errorf("note %q, want hub_unavailable", note)
		}
		hub.RadioDown(false)
	}()
	report, err := checked.Run(t.Context())
	streamstest.Must(t, err)
	wantAll(t, report, check.Passed)
}

// A hub that does not become ready is asked for a limited time, and the lines say why they are not
// seen.
func TestHubDoesNotBecomeReady(t *testing.T) {
	t.Parallel()
	lines := []string{"pairing.open", "channels.command", "command-once", "resends"}
	checked := newCheck(t, check.Config{
		Only: lines, Timeout: 4 * time.Minute, ReadyWait: time.Second,
	})
	hub := newHub(t, checked, "")
	hub.RadioDown(true)
	runHub(t, hub)
	report, err := checked.Run(t.Context())
	streamstest.Must(t, err)
	wantAll(t, report, check.NotSeen)
	for _, r := range report {
		if !strings.Contains(r.Detail, "hub_unavailable") {
			t.Errorf("line %s: %q, want hub_unavailable", r.ID, r.Detail)
		}
	}
}

// Regression: a hub whose devices took seconds for a command got resends-after-gap as not seen, since
// two messages of events had to arrive within 1.5 s.
func TestSlowDevices(t *testing.T) {
	t.Parallel()
	var report check.Report
	for range tries {
		report = checkHub(t, check.Config{Only: []string{"resends-after-gap"}}, faults{
			message: func(_ *link, m *message) bool {
				if m.method == protocol.MethodChannelsCommand {
					time.Sleep(2 * time.Second) // nothing of the hub arrives meanwhile
				}
				return true
			},
		})
		if report[0].Status == check.Passed {
			return
		}
	}
	t.Errorf("got %+v, want passed", report)
}

// Regression: a hub that listed its devices only after a while got most lines as not seen, and a
// thermostat that takes whole degrees Fahrenheit command-events.
func TestThermostatComesLate(t *testing.T) {
	t.Parallel()
	only := []string{"devices.get", "channels.command", "command-events"}
	listed := 0
	report := checkHub(t, check.Config{Only: only}, faults{
		config: func(cfg *virtualhub.Config) {
			cfg.Devices = []virtualhub.DeviceSpec{{Kind: "thermostat"}}
		},
		message: func(_ *link, m *message) bool {
			result, _ := m.body["result"].(map[string]any)
			switch m.method {
			case protocol.MethodDevicesList:
				if listed++; listed == 1 {
					result["devices"] = []any{}
				}
			case protocol.MethodDevicesGet:
				for _, ch := range result["device"].(map[string]any)["channels"].([]any) {
					if ch := ch.(map[string]any); ch["key"] == "heating_setpoint" {
						ch["capabilities"].(map[string]any)["resolution"] = 0.5556
					}
				}
			}
			for _, e := range m.events() {
				data, _ := e["data"].(map[string]any)
				if e["type"] == "channel.observed" && data["key"] == "heating_setpoint" {
					data["value"] = float64(number(data, "value")) + 0.2
				}
			}
			return true
		},
	})
	wantAll(t, report, check.Passed)
}

// Regression: a hub could be checked only once, since each check had an authority of its own.
func TestSecondCheck(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	config := check.Config{
		State: state, Timeout: 4 * time.Minute, Only: []string{
			"enrols", "connects", "renews-certificate", "current-certificate", "survives-cut",
			"channels.command",
		},
	}
	report := func(checked *check.Check) check.Report {
		t.Helper()
		report, err := checked.Run(t.Context())
		if err != nil || !report.OK() {
			t.Fatalf("report %+v, %v, want OK", report, err)
		}
		return report
	}
	first := newCheck(t, config)
	stop := runHub(t, newHub(t, first, dir))
	wantAll(t, report(first), check.Passed)

	second := newCheck(t, config) // with the same hub, which still runs
	if second.EnrolURL() != first.EnrolURL() || second.BrokerURL() != first.BrokerURL() ||
		second.Serial() != first.Serial() || second.Secret() != first.Secret() {
		t.Error("the second check has another address, serial or secret than the first")
	}
	wantAll(t, slices.DeleteFunc(report(second), func(r check.Result) bool {
		return r.ID == "renews-certificate" || r.ID == "current-certificate" // these want a restart
	}), check.Passed)
	stop()

	third := newCheck(t, config)
	runHub(t, newHub(t, third, dir))
	wantAll(t, report(third), check.Passed)
}

// Regression: a hub that has the authority of another check was reported as "no connection came".
func TestHubOfAnotherCheck(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	first := newCheck(t, check.Config{
		State: state, Only: []string{"survives-cut"}, Timeout: 4 * time.Minute,
	})
	runHub(t, newHub(t, first, dir)) // is not restarted, and does not enrol at once
	if _, err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	noted := make(chan string, 10)
	second := newCheck(t, check.Config{
		Serial: first.Serial(), Secret: first.Secret(), HTTPPort: port(t, first.EnrolURL()),
		MQTTPort: port(t, first.BrokerURL()), Only: []string{"connects"}, Timeout: 4 * time.Minute,
		OnNote: func(text string) {
			noted <- text
			cancel()
		},
	})
	report, err := second.Run(ctx)
	streamstest.Must(t, err)
	const want = "the hub ended the TLS handshake: it does not trust this certificate"
	if len(noted) != 1 {
		t.Fatalf("%d notes, want 1; report %+v", len(noted), report)
	}
	if note := <-noted; !strings.HasPrefix(note, want) || report[0].Detail != note {
		t.Errorf("note %q and detail %q, want %q", note, report[0].Detail, want)
	}
}

// Regression: with TLS 1.3 OpenSSL tells without encryption that it does not trust a certificate,
// which the check reported as "bad record MAC".
func TestPlainAlert(t *testing.T) {
	t.Parallel()
	noted := make(chan string, 1)
	checked := newCheck(t, check.Config{
		Only: []string{"connects"}, Timeout: time.Minute, OnNote: func(text string) { noted <- text },
	})
	stop := run(t, checked)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port(t, checked.BrokerURL())))
	raw, err := net.Dial("tcp", address)
	streamstest.Must(t, err)
	defer raw.Close()
	config := &tls.Config{ServerName: "127.0.0.1", RootCAs: x509.NewCertPool()}
	if err := tls.Client(plainAlerts{raw}, config).HandshakeContext(t.Context()); err == nil {
		t.Fatal("the certificate was trusted")
	}
	const want = "the hub ended the TLS handshake: it does not trust this certificate"
	select {
	case note := <-noted:
		if !strings.HasPrefix(note, want) {
			t.Errorf("note %q, want %q", note, want)
		}
		stop()
	case <-time.After(time.Minute):
		t.Error("no note")
	}
}

// plainAlerts writes an alert unknown_ca without encryption in place of all but the ClientHello.
type plainAlerts struct{ net.Conn }

func (c plainAlerts) Write(records []byte) (int, error) {
	const handshake = 22 // and not encrypted
	if records[0] == handshake {
		return c.Conn.Write(records)
	}
	_, err := c.Conn.Write([]byte{21, 3, 3, 0, 2, 2, 48})
	return len(records), err
}

func port(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	streamstest.Must(t, err)
	number, err := strconv.Atoi(u.Port())
	streamstest.Must(t, err)
	return number
}
