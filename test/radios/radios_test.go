package radios

import (
	"path/filepath"
	"testing"

	"hubcloud/test/nodejs"
)

// TestPackages runs the packages' own tests. That they pass `hubcloud hub check` is tried with the
// other reference hubs.
func TestPackages(t *testing.T) {
	t.Parallel()
	dir := nodejs.Radios(t)
	for _, name := range []string{"node", "zwave", "zigbee2mqtt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodejs.Run(t, nodejs.Command(t, filepath.Join(dir, name), "node", "--test", "--test-reporter=tap", "test/"))
		})
	}
}
