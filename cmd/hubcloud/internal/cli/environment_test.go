package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// A misspelt variable was ignored, so that the service ran without the setting.
func TestMisspeltVariables(t *testing.T) {
	for _, c := range []struct {
		command        []string
		variable, says string
	}{
		{[]string{"serve"}, "HUBCLOUD_PUBLIC_ULR", "the name is HUBCLOUD_PUBLIC_URL"},
		{[]string{"serve"}, "HUBCLOUD_SMTPURL", "the name is HUBCLOUD_SMTP_URL"},
		{[]string{"dev"}, "HUBCLOUD_EVENT_RETENTON", "the name is HUBCLOUD_EVENT_RETENTION"},
		{[]string{"serve"}, "HUBCLOUD_COLOUR", "HUBCLOUD_COLOUR: there is no such flag"},
		{[]string{"doctor"}, "HUBCLOUD_DATADIR", "the name is HUBCLOUD_DATA_DIR"},
		// What Kubernetes sets for a service with this name.
		{[]string{"serve", "--nope"}, "HUBCLOUD_SERVICE_PORT_HTTP", "--nope"},
		{[]string{"serve", "--nope"}, "HUBCLOUD_PORT_80_TCP_ADDR", "--nope"},
		// A variable of a person's scripts.
		{[]string{"hubs", "--nope"}, "HUBCLOUD_COLOUR", "--nope"},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Setenv(c.variable, "x")
			printed, code := said(t, c.command...)
			if code != exitUsage || !strings.Contains(printed, c.says) {
				t.Errorf("%v: exit code %d, %q; want 2 and %q", c.command, code, printed, c.says)
			}
		})
	}
}

// The last line of a JSON log was text, which collectors of logs dropped.
func TestLastLineIsJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"flag":     {"serve", "--log-format", "json", "--nope"},
		"equals":   {"serve", "--log-format=json", "--burst", "0"},
		"variable": {"serve", "--burst", "0", "--data-dir", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "variable" {
				t.Setenv("HUBCLOUD_LOG_FORMAT", "json")
			}
			printed, code := said(t, args...)
			var line struct{ Level, Msg, Error string }
			err := json.Unmarshal([]byte(printed), &line)
			if err != nil || code != exitUsage || line.Level != "ERROR" ||
				!strings.Contains(line.Error, "--") {
				t.Errorf("exit code %d, %q, %v; want 2 and a JSON line", code, printed, err)
			}
		})
	}
}
