package radios

import (
	"os"
	"path/filepath"
	"testing"

	"hubcloud/test/nodejs"
)

// TestPackages runs the packages' own tests, and a building on what a release packs. That they pass
// `hubcloud hub check` is tried with the other reference hubs.
func TestPackages(t *testing.T) {
	t.Parallel()
	sources, packed := nodejs.Radios(t)
	files, err := filepath.Glob(filepath.Join(packed, "hubcloud-*-1.0.0.tgz"))
	if err != nil || len(files) != 4 {
		t.Fatalf("packed: %v, %v", files, err)
	}
	if text, err := os.ReadFile(filepath.Join(packed, "hubcloud-npm-licences.txt")); err != nil || len(text) < 10_000 {
		t.Errorf("licences of the modules: %d bytes, %v", len(text), err)
	}
	// The API's client is packed too: a project that installs the file can import it.
	nodejs.Run(t, nodejs.Command(
		t, t.TempDir(), "sh", "-ec", `npm install --offline --silent "$1/hubcloud-client-1.0.0.tgz"
			node --input-type=module -e 'import { Client } from "hubcloud-client"; new Client({ baseUrl: "http://127.0.0.1/v1", apiKey: "x" })'`,
		"sh", packed,
	))
	for n, tests := range []string{
		"gateway/zwave/test", "kit/node/test", "gateway/devices/test", "gateway/zigbee2mqtt/test",
	} {
		t.Run(tests, func(t *testing.T) {
			if n > 0 { // S2 must answer in time: nothing else runs beside it
				t.Parallel()
			}
			files, err := filepath.Glob(filepath.Join(sources, tests, "*.test.mjs"))
			if err != nil || len(files) == 0 {
				t.Fatalf("tests: %v, %v", files, err)
			}
			arguments := append([]string{"--test", "--test-reporter=tap"}, files...)
			nodejs.Run(t, nodejs.Command(t, sources, "node", arguments...))
		})
	}
	t.Run("building", func(t *testing.T) {
		t.Parallel()
		building(t, sources, packed)
	})
}
