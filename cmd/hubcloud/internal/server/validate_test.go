package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hubcloud/streams/streamstest"
)

func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given []string
		want  string // "" for an error
	}{
		{nil, "[]"},
		{[]string{"10.0.0.0/8", "2001:db8::/32"}, "[10.0.0.0/8 2001:db8::/32]"},
		{[]string{"192.0.2.7", "::1"}, "[192.0.2.7/32 ::1/128]"},
		{[]string{"0.0.0.0/0"}, "[0.0.0.0/0]"},
		{[]string{"10.0.0.1/8"}, ""},
		{[]string{"10.0.0.0/33"}, ""},
		{[]string{"10.0.0/8"}, ""},
		{[]string{"::ffff:10.0.0.0/104"}, ""},
		{[]string{"::ffff:10.0.0.1"}, ""},
		{[]string{"fe80::1%eth0"}, ""},
		{[]string{"proxy.example.org"}, ""},
		{[]string{"10.0.0.0/8", ""}, ""},
	} {
		got, err := Config{TrustedProxies: tt.given}.trustedProxies()
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "--trusted-proxies") {
				t.Errorf("%q: got %v, %v; want an error that names the flag", tt.given, got, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%q: got %v, %v; want %s", tt.given, got, err, tt.want)
		}
	}
}

// The limits were checked in random order: with several wrong flags, each run named another one.
func TestValidateAlwaysNamesTheSameFlag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"addresses", func(c *Config) { *c = Config{} }, "--http"},
		{"durations", func(c *Config) { c.InvitationTTL, c.HubTimeout = 0, 0 }, "--hub-timeout"},
		{"limits", func(c *Config) { c.LiveCache, c.SitesPerOrg, c.Burst = 0, 0, 0 }, "--burst"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := validConfig(t)
			if err := cfg.Validate(); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			tt.change(&cfg)
			for range 50 {
				err := cfg.Validate()
				if err == nil || !strings.HasPrefix(err.Error(), tt.want+" ") {
					t.Fatalf("got %v, want an error about %s", err, tt.want)
				}
			}
		})
	}
}

// validConfig returns a configuration with the defaults of the tags.
func validConfig(t *testing.T) Config {
	t.Helper()
	var cfg Config
	parser, err := kong.New(&cfg, kong.Vars{"environment": "dev", "webhookprivate": "false"})
	streamstest.Must(t, err)
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	return cfg
}
