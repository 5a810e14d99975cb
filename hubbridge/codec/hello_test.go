package codec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestHello(t *testing.T) {
	t.Parallel()
	h, err := ParseHello(
		[]byte(`{"protocol": 1, "log": "b2f0c1", "oldest": 17, "newest": 42, "clock_trusted": true,
		"firmware": {"version": "2.4.1", "build": 7},
		"network": {"type": "ethernet", "interface": "eth0", "ip_address": "10.0.4.7", "ipv6_address": null, "mac_address": "aa:bb",
		"ssid": null, "signal_dbm": -61, "carrier": null, "radio": null, "metered": false, "more": 1}, "more": []}`),
	)
	if err != nil || h.Log != "b2f0c1" || h.Oldest != 17 || h.Newest != 42 {
		t.Fatalf("%+v, %v", h, err)
	}
	if string(h.Firmware) != `{"version":"2.4.1"}` {
		t.Errorf("firmware: got %s", h.Firmware)
	}
	want := `{"type":"ethernet","interface":"eth0","ip_address":"10.0.4.7","ipv6_address":null,"mac_address":"aa:bb","ssid":null,` +
		`"signal_dbm":-61,"carrier":null,"radio":null,"metered":false,"reported_at":"2026-01-02T03:04:05.000000Z"}`
	if got := MarshalNetwork(h.Network, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); string(
		got,
	) != want {
		t.Errorf("network: got\n%s\nwant\n%s", got, want)
	}
}

// TestHelloTolerates: invalid firmware and network never block a hub.
func TestHelloTolerates(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]string{
		"nothing":                 ``,
		"nulls":                   `,"firmware":null,"network":null`,
		"firmware a string":       `,"firmware":"2.4.1"`,
		"version a number":        `,"firmware":{"version":2}`,
		"version with U+0000":     `,"firmware":{"version":"a\u0000"}`,
		"version without end":     `,"firmware":{"version":"` + strings.Repeat("x", 201) + `"}`,
		"network an array":        `,"network":[]`,
		"a type of its own":       `,"network":{"type":"carrier pigeon","interface":"p0"}`,
		"no type":                 `,"network":{"interface":"eth0"}`,
		"clock_trusted a string":  `,"clock_trusted":"x"`,
		"names in the wrong case": `,"Firmware":{"version":"1"},"NETWORK":{"type":"wifi"}`,
	} {
		h, err := ParseHello([]byte(`{"protocol":1,"log":"a","oldest":1,"newest":0` + beside + `}`))
		if err != nil || h.Firmware != nil || h.Network != nil || h.Oldest != 1 {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	h, err := ParseHello(
		[]byte(
			`{"protocol":1,"log":"a","oldest":0,"newest":0,"network":{"type":"wifi","ssid":5,"signal_dbm":"x","metered":true}}`,
		),
	)
	if err != nil || h.Oldest != 1 || h.Network == nil || h.Network.SSID != nil || h.Network.SignalDBM != nil ||
		!h.Network.Metered {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestHelloRejected(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message string
		want    error
	}{
		"not JSON":     {`hello`, ErrHello},
		"null":         {`null`, ErrHello},
		"no protocol":  {`{"log":"a","oldest":1,"newest":0}`, ErrHello},
		"protocol 2":   {`{"protocol":2,"log":"a","oldest":1,"newest":0}`, ErrProtocol},
		"no log":       {`{"protocol":1,"oldest":1,"newest":0}`, ErrHello},
		"an empty log": {`{"protocol":1,"log":"","oldest":1,"newest":0}`, ErrHello},
		"a long log": {
			`{"protocol":1,"log":"` + strings.Repeat("a", 65) + `","oldest":1,"newest":0}`,
			ErrHello,
		},
		"a log with a space":  {`{"protocol":1,"log":"a b","oldest":1,"newest":0}`, ErrHello},
		"no oldest":           {`{"protocol":1,"log":"a","newest":0}`, ErrHello},
		"oldest negative":     {`{"protocol":1,"log":"a","oldest":-1,"newest":0}`, ErrHello},
		"oldest a fraction":   {`{"protocol":1,"log":"a","oldest":1.0,"newest":1}`, ErrHello},
		"oldest after newest": {`{"protocol":1,"log":"a","oldest":7,"newest":5}`, ErrHello},
		"newest beyond": {
			`{"protocol":1,"log":"a","oldest":7,"newest":9007199254740992}`, ErrHello,
		},
		"too big": {
			`{"protocol":1,"log":"a","oldest":1,"newest":0,"x":"` + strings.Repeat("x", maxHelloBytes) + `"}`,
			ErrHello,
		},
	} {
		if h, err := ParseHello([]byte(tc.message)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add(
		[]byte(
			`{"protocol":1,"log":"a","oldest":1,"newest":0,"firmware":{"version":"1"},"network":{"type":"wifi"}}`,
		),
	)
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ParseHello(raw)
		if err != nil {
			return
		}
		if !ValidLog([]byte(h.Log)) || h.Oldest < 1 || h.Oldest > h.Newest+1 {
			t.Fatalf("%+v of %q", h, raw)
		}
		if h.Firmware != nil && !json.Valid(h.Firmware) ||
			h.Network != nil && !json.Valid(MarshalNetwork(h.Network, time.Time{})) {
			t.Fatalf("%+v of %q", h, raw)
		}
	})
}
